"""What still runs beside the cells, and which names of the notebook it can change (DESIGN 5, Valid; C19, traps 18).

Threads, jobs of thread pools, tasks and timers of event loops. What one of them can reach is found by looking: at
the locals of its frames, at what it was given, and at the globals that its code names. Nothing of it is executed.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import io
import os
import sys
import threading
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec import Struct

from keel_notebook.capture.namespace import persons_names
from keel_notebook.capture.parts import MOST, may_change, parts
from keel_notebook.capture.threads import KERNEL, at_work
from keel_notebook.core.atwork import NOBODY, AtWork

_MOST_OF_A_NAME = 1000
_PLUMBING = (*KERNEL, "asyncio", "_asyncio", "concurrent", "anyio", "functools")
"""Whose timers of an event loop are nobody's work: they wake a task, which is met as itself."""
_LOOPS_OWN = ("asyncio", "selectors", "threading")
"""Whose frames a thread has that turns an event loop."""


class Worker(Struct, frozen=True):
    """Something that goes on by itself."""

    name: str
    """For people: ``thread fill``, ``task train``."""
    holds: tuple[Any, ...]
    """The objects that it has at hand."""
    codes: tuple[types.CodeType, ...] = ()
    """The notebook's own code in it."""


def now_at_work(shell: Any) -> AtWork:
    """What threads and tasks that are at work right now can change. Main thread."""
    loops = _loops()
    found = [*_threads(shell.user_ns, loops), *(worker for loop in loops for worker in _tasks(loop, shell.user_ns))]
    return _reach(found, shell) if found else NOBODY


# ---- who is at work ------------------------------------------------------------------------------------------


def _threads(namespace: Mapping[str, Any], loops: list[asyncio.AbstractEventLoop]) -> Iterator[Worker]:
    """The threads; one that runs an event loop is no worker itself, and its loop is added to ``loops``."""
    busy = at_work(threading.enumerate())
    frames = sys._current_frames() if busy else {}
    for thread in busy:
        stack = list(_stack(frames.get(thread.ident or 0)))
        turning = [frame.f_locals.get("self") for frame in stack if frame.f_code.co_name == "run_forever"]
        loops += [loop for loop in turning if isinstance(loop, asyncio.AbstractEventLoop)]
        modules = [str(frame.f_globals.get("__name__")) for frame in stack]
        own = [f for f, module in zip(stack, modules, strict=True) if not _is_plumbing(module, _LOOPS_OWN)]
        if own or not any(module.startswith("asyncio") for module in modules):
            yield _worker(_called(thread, stack), [vars(thread)], own, namespace)


def _called(thread: threading.Thread, stack: Iterable[types.FrameType]) -> str:
    for frame in stack:
        if frame.f_code.co_name == "_worker" and (item := frame.f_locals.get("work_item")) is not None:
            return f"job {getattr(item.fn, '__name__', '')}".rstrip()
    target = getattr(thread, "_target", None) or getattr(thread, "function", None)
    return f"thread {getattr(target, '__name__', '') or thread.name}"


def _stack(frame: types.FrameType | None) -> Iterator[types.FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _tasks(loop: asyncio.AbstractEventLoop, namespace: Mapping[str, Any]) -> Iterator[Worker]:
    for task in asyncio.all_tasks(loop):
        if task is _own_task() or _is_plumbing(_module(coro := task.get_coro()), KERNEL):
            continue
        yield _worker(f"task {getattr(coro, '__name__', task.get_name())}", [coro], _awaiting(coro), namespace)
    for handle in (*getattr(loop, "_scheduled", ()), *getattr(loop, "_ready", ())):
        callback, given = getattr(handle, "_callback", None), getattr(handle, "_args", None)
        if callback is not None and not _is_plumbing(_module(callback), _PLUMBING):
            yield _worker(f"timer {getattr(callback, '__name__', '')}", [callback, given], (), namespace)


def _own_task() -> asyncio.Task[Any] | None:
    """The task in which this is asked."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _loops() -> list[asyncio.AbstractEventLoop]:
    """The loops that cells may have given work to: the one that runs, and the one that IPython runs cells on."""
    found = [getattr(sys.modules.get("IPython.core.async_helpers"), "_asyncio_event_loop", None)]
    with contextlib.suppress(RuntimeError):
        found.append(asyncio.get_running_loop())
    return list({id(loop): loop for loop in found if loop is not None and not loop.is_closed()}.values())


def _awaiting(coro: Any) -> Iterator[types.FrameType]:
    """The frames of a coroutine and of those that it waits for."""
    seen = 0
    while coro is not None and (seen := seen + 1) < _MOST_OF_A_NAME:
        frame = getattr(coro, "cr_frame", None) or getattr(coro, "gi_frame", None) or getattr(coro, "ag_frame", None)
        if frame is not None:
            yield frame
        coro = getattr(coro, "cr_await", None) or getattr(coro, "gi_yieldfrom", None) or getattr(coro, "ag_await", None)


def _module(thing: Any) -> str:
    while isinstance(thing, functools.partial):
        thing = thing.func
    frame = getattr(thing, "cr_frame", None) or getattr(thing, "gi_frame", None)
    if frame is not None:
        return str(frame.f_globals.get("__name__", ""))
    owner = getattr(thing, "__self__", None)
    if owner is not None and not isinstance(owner, types.ModuleType):
        return (owner if isinstance(owner, type) else type(owner)).__module__
    return str(getattr(thing, "__module__", "") or "")


def _is_plumbing(module: str, whose: tuple[str, ...]) -> bool:
    return module.startswith(whose)


# ---- what it can reach ---------------------------------------------------------------------------------------


def _worker(name: str, given: Iterable[Any], frames: Iterable[types.FrameType], namespace: Mapping[str, Any]) -> Worker:
    holds, codes = list(given), []
    for frame in frames:
        if frame.f_locals is not namespace:
            holds.append(dict(frame.f_locals))
        if frame.f_globals is namespace:
            codes.append(frame.f_code)
    return Worker(name, tuple(holds), tuple(codes))


def _reach(workers: Iterable[Worker], shell: Any) -> AtWork:
    namespace: dict[str, Any] = shell.user_ns.copy()
    own = persons_names(shell)
    without = {id(shell), id(shell.user_ns), *map(id, workers)}
    names: dict[str, str] = {}
    everything: set[int] = set()
    files: set[str] = set()
    for worker in workers:
        held, stored = _held(worker, namespace, shell.user_ns, without, files)
        everything |= held
        for name in own:
            if name in names:
                continue
            if name in stored or _shares(namespace[name], held, without):
                names[name] = worker.name
    return AtWork(names, tuple(sorted(files)), lambda value: _shares(value, everything, without))


def _shares(value: Any, held: Collection[int], without: Iterable[int]) -> bool:
    return any(id(part) in held for part, _ in islice(parts(value, without), _MOST_OF_A_NAME))


def _held(
    worker: Worker, namespace: dict[str, Any], globals_: Any, without: set[int], files: set[str]
) -> tuple[set[int], set[str]]:
    """The ids of what the worker may change, and the global names that it may bind. Adds files that it writes."""
    held: set[int] = set()
    stored: set[str] = set()
    asked: set[str] = set()
    codes, todo = list(worker.codes), list(worker.holds)
    nothing: set[int] = set()  # the empty attributes that every function has
    seen: set[int] = set()
    while codes or todo:
        while todo:
            for part, _ in islice(parts(todo.pop(), without), MOST):
                if may_change(part):
                    held.add(id(part))
                files.update(_written(part))
                if isinstance(part, types.FunctionType):
                    if not part.__dict__:
                        nothing.add(id(part.__dict__))
                    if part.__globals__ is globals_:
                        codes.append(part.__code__)
        while codes:
            code = codes.pop()
            if id(code) in seen:
                continue
            seen.add(id(code))
            codes += [inner for inner in code.co_consts if isinstance(inner, types.CodeType)]
            stored |= _bound(code) & namespace.keys()
            for name in set(code.co_names) & namespace.keys() - asked:
                asked.add(name)
                value = namespace[name]
                if isinstance(value, type):
                    codes += [m.__code__ for m in vars(value).values() if isinstance(m, types.FunctionType)]
                else:
                    todo.append(value)
    return held - nothing, stored


def _written(part: Any) -> Iterator[str]:
    """The file that an open one writes; not a log that is appended to."""
    if type(part) is io.FileIO and not part.closed and part.writable() and "a" not in part.mode:
        path = "" if isinstance(part.name, int) else os.path.abspath(os.fsdecode(part.name))
        if os.path.isfile(path):
            yield path


@functools.lru_cache(maxsize=1024)
def _bound(code: types.CodeType) -> frozenset[str]:
    import dis  # noqa: PLC0415 - only where something is at work

    return frozenset(i.argval for i in dis.get_instructions(code) if i.opname in {"STORE_GLOBAL", "DELETE_GLOBAL"})
