"""Whose thread is it: the kernel's own, a pool's idle worker, or one that a cell started and left running (C19)."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any
from weakref import ref

KERNEL = ("ipykernel", "IPython", "jupyter_client", "tornado", "zmq", "debugpy", "_pydev", "pydevd", "keel_notebook")
_ATTENDANTS = (
    "tqdm",
    "joblib.externals.loky",
    "concurrent.futures.process",
    "multiprocessing.pool",
    "multiprocessing.queues",
    "multiprocessing.managers",
)
"""Threads that libraries keep for themselves: they do nothing of their own."""
_known: dict[ref[threading.Thread], bool] = {}
"""Whether it is the kernel's, by thread: asked some sixty times in a step, so no ``WeakKeyDictionary`` in Python."""


def is_kernels(thread: threading.Thread) -> bool:
    """Whether a thread belongs to the kernel or to keel, and not to the person's code."""
    found = _known.get(ref(thread))
    if found is None:
        found = _module_of(thread).startswith(KERNEL) or thread.name.startswith("keel")
        _known[ref(thread, _forget)] = found
    return found


def _forget(gone: ref[threading.Thread]) -> None:
    _known.pop(gone, None)


def kernel_idents(threads: Iterable[threading.Thread]) -> frozenset[int | None]:
    """The idents of those of the threads that are the kernel's."""
    return frozenset(thread.ident for thread in threads if is_kernels(thread))


def lingering(before: Iterable[threading.Thread]) -> list[threading.Thread]:
    """Threads that run now, did not run before, and will go on doing something by themselves.

    A pool's worker that waits for work is none of them: what it does next, it does for a later cell. Neither is what
    turns an event loop (``%%bash`` has one): the loop's tasks are met as themselves.
    """
    known = set(before)
    fresh = (thread for thread in threading.enumerate() if thread not in known)
    return at_work(thread for thread in fresh if not _module_of(thread).startswith("asyncio"))


def at_work(threads: Iterable[threading.Thread]) -> list[threading.Thread]:
    """Those of the threads that are a person's and may do something without being asked again."""
    main = threading.main_thread()
    candidates = [
        thread
        for thread in threads
        if thread is not main and not is_kernels(thread) and not _module_of(thread).startswith(_ATTENDANTS)
    ]
    if not candidates:
        return []
    frames = sys._current_frames()
    return [thread for thread in candidates if not _waits_in_pool(frames.get(thread.ident or 0))]


def _module_of(thread: threading.Thread) -> str:
    module: str = type(thread).__module__
    if module != "threading":
        return module
    target: Any = getattr(thread, "_target", None)
    owner = getattr(target, "__self__", None)
    if owner is None:
        return str(getattr(target, "__module__", None))
    return (owner if isinstance(owner, type) else type(owner)).__module__


def _waits_in_pool(frame: FrameType | None) -> bool:
    """Whether a thread is a pool's worker that has nothing to do: no job at hand, and none in its queue."""
    while frame is not None:
        for file, name, is_idle in _WORKERS:
            if frame.f_code.co_name == name and frame.f_code.co_filename.endswith(file):
                return is_idle(frame.f_locals)
        frame = frame.f_back
    return False


def _has_no_future(worker: Mapping[str, Any]) -> bool:
    item, waiting = worker.get("work_item"), worker.get("work_queue")
    over = item is None or item.future.done()  # its result is out: what is left to do is the pool's own affair
    return over and waiting is not None and bool(waiting.empty())


def _has_no_task(worker: Mapping[str, Any]) -> bool:
    over = worker.get("task") is None or worker.get("result") is not None
    return over and bool(worker["inqueue"].empty())


_WORKERS: tuple[tuple[str, str, Callable[[Mapping[str, Any]], bool]], ...] = (
    (os.path.join("concurrent", "futures", "thread.py"), "_worker", _has_no_future),
    (os.path.join("multiprocessing", "pool.py"), "worker", _has_no_task),
)
