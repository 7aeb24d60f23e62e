"""The Python interface: ``import keel_notebook as keel`` (DESIGN 3.2).

Every function here finds the step that is running and hands on to the engine. Where nothing is recorded (a plain
script, ``KEEL_MODE=off``, a forked child) calls run as if keel were not there.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import random as _random
import time as _time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from keel_notebook.core.arguments import check_function, check_items, check_wait
from keel_notebook.core.effects import OnAmbiguous
from keel_notebook.core.model import Effect
from keel_notebook.core.options import duration_s
from keel_notebook.engine import invoke, loops, parallel, scope, undoing, values, waits
from keel_notebook.engine.callparts import PLAIN_OPTIONS, CallOptions
from keel_notebook.engine.calls import Calls
from keel_notebook.engine.failure import Failure
from keel_notebook.engine.host import installed
from keel_notebook.errors import NotNowError, SettingsError

if TYPE_CHECKING:
    from keel_notebook.engine.parallel import Deferred
    from keel_notebook.engine.waits import Promise

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

__all__ = [
    "Failure",
    "asleep",
    "call",
    "defer",
    "durable",
    "gather",
    "idempotency_key",
    "loop",
    "map",
    "now",
    "promise",
    "randbytes",
    "random",
    "sleep",
    "time",
    "undo",
    "uuid4",
]


def _calls(*, needed: bool = False) -> Calls | None:
    host = installed()
    return None if host is None else host.calls(needed=needed)


_DEFAULTS = ("idempotent", "fail", 0, None, "raise", False)
"""The options of a call that says nothing, in the order in which ``_options`` takes them."""


@functools.lru_cache(maxsize=256)
def _options(  # noqa: PLR0913 - the options of keel.call
    effect: str, on_ambiguous: str, retries: int, timeout: str | float | None, on_error: str, *, trust_key: bool
) -> CallOptions:
    try:
        seconds = duration_s(timeout) if isinstance(timeout, str) else timeout
        word, doubt = Effect(effect), OnAmbiguous(on_ambiguous)
    except ValueError as error:
        raise SettingsError(where="keel.call", detail=str(error)) from None
    if on_error not in {"raise", "keep"}:
        raise SettingsError(where="keel.call", detail='on_error is "raise" or "keep"')
    if retries < 0:
        raise SettingsError(where="keel.call", detail="retries is 0 or more")
    made = CallOptions(word, doubt, retries, seconds, on_error, trust_key)
    return PLAIN_OPTIONS if made == PLAIN_OPTIONS else made


def _trusted(key: Any, *, trust_key: bool) -> bool:
    if trust_key and key is None:
        raise SettingsError(where="keel.call", detail="trust_key vouches for a key: give one")
    return trust_key


def call(  # noqa: PLR0913 - pinned by DESIGN 3.2
    fn: Callable[..., R],
    /,
    *args: Any,
    key: Any = None,
    effect: str = "idempotent",
    retries: int = 0,
    timeout: str | float | None = None,
    on_error: str = "raise",
    on_ambiguous: str = "fail",
    trust_key: bool = False,
    **kwargs: Any,
) -> Any:
    """Call ``fn(*args, **kwargs)`` once for this step: its result is journaled before it is given back.

    A later attempt finds it by key (or arguments) and gets the recorded result, if the function, every value that
    it reads, and the arguments are still the same. An ``async def`` gives an awaitable.

    Args:
        fn: the function. What it changes in place among its arguments is recorded and put back too.
        *args: its arguments.
        key: names the call (``key=i``); it does not vouch, unless ``trust_key`` says so.
        effect: ``idempotent``, ``at_least_once`` or ``exactly_once`` (Z19).
        retries: further attempts after an error that may pass, with backoff and jitter.
        timeout: seconds, or ``"30s"``, for each attempt (E011).
        on_error: ``"keep"`` gives a ``keel.Failure`` instead of raising.
        on_ambiguous: of ``exactly_once``: ``fail``, ``skip`` or ``rerun`` (Z21).
        trust_key: the key alone finds the record, whatever function and arguments are now.
        **kwargs: its keyword arguments.
    """
    __tracebackhide__ = True  # a person wants to see their own lines
    check_function("keel.call", fn, "keel.call(fn, *args)")
    options = PLAIN_OPTIONS
    if (effect, on_ambiguous, retries, timeout, on_error, trust_key) != _DEFAULTS:
        trusted = _trusted(key, trust_key=trust_key)
        options = _options(effect, on_ambiguous, retries, timeout, on_error, trust_key=trusted)
    fn = getattr(fn, "__keel_function__", fn)
    calls = _calls(needed=options.effect is not Effect.IDEMPOTENT)
    if calls is None:
        return fn(*args, **kwargs)
    return invoke.run(calls, fn, args, kwargs, options, key)


def defer(  # noqa: PLR0913 - the options of keel.call
    fn: Callable[..., Any],
    /,
    *args: Any,
    key: Any = None,
    effect: str = "idempotent",
    retries: int = 0,
    timeout: str | float | None = None,
    on_error: str = "raise",
    on_ambiguous: str = "fail",
    trust_key: bool = False,
    **kwargs: Any,
) -> Deferred:
    """A call for ``keel.gather``: its place is given now, it runs when it is awaited (Z2)."""
    __tracebackhide__ = True
    check_function("keel.defer", fn, "keel.defer(fn, *args)")
    options = _options(effect, on_ambiguous, retries, timeout, on_error, trust_key=_trusted(key, trust_key=trust_key))
    fn = getattr(fn, "__keel_function__", fn)
    calls = _calls(needed=options.effect is not Effect.IDEMPOTENT)
    if calls is None:
        return parallel.Deferred(lambda: _plainly(fn, args, kwargs), getattr(fn, "__name__", "call"))
    return parallel.defer(calls, calls.claim(fn, args, kwargs, options, key))


async def _plainly(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    value = fn(*args, **kwargs)
    return await value if inspect.isawaitable(value) else value


_GATHERS = "keel.gather(keel.defer(fn, 1), keel.defer(fn, 2))"


async def gather(*calls: Awaitable[Any] | Iterable[Awaitable[Any]]) -> list[Any]:
    """Run deferred calls side by side; their results in order.

    A failure is raised after all others have ended and are recorded, so that the next run calls only what is missing.
    """
    __tracebackhide__ = True
    given: Iterable[Any] = calls
    if len(calls) == 1 and not isinstance(calls[0], Awaitable):
        check_items("keel.gather", calls[0], _GATHERS)
        given = calls[0]
    deferred = list(given)
    if others := [type(call).__name__ for call in deferred if not isinstance(call, Awaitable)]:
        raise TypeError(f"keel.gather takes what can be awaited, not a value of type {others[0]}: {_GATHERS}")
    return await parallel.gather(deferred)


def durable(fn: Callable[P, R]) -> Callable[P, R]:
    """Make every call of ``fn`` a durable call, as with ``keel.call``."""
    __tracebackhide__ = True
    check_function("keel.durable", fn, "keel.durable(fn)")

    @functools.wraps(fn)
    def journaled(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True
        calls = _calls()
        if calls is None:
            return fn(*args, **kwargs)
        result: R = invoke.run(calls, fn, args, kwargs, PLAIN_OPTIONS)
        return result

    journaled.__keel_function__ = fn  # type: ignore[attr-defined]
    return journaled


def map(  # noqa: A001, PLR0913 - pinned by DESIGN 3.2
    fn: Callable[[Any], R],
    items: Iterable[Any],
    /,
    *,
    key: Callable[[Any], Any] | Sequence[Any] | None = None,
    max_workers: int = 8,
    executor: Executor | None = None,
    retries: int = 0,
    timeout: str | float | None = None,
    on_error: str = "raise",
    progress: bool = True,
    trust_key: bool = False,
) -> list[Any]:
    """A durable call of ``fn`` for every item, side by side; the results in the order of the items.

    Results are journaled as they arrive: whatever kills the kernel, only the missing ones are called again. Threads
    by default; ``executor`` is any ``concurrent.futures.Executor`` (processes, Dask, …). ``key`` is a function of
    the item, or one key for each.
    """
    __tracebackhide__ = True
    check_function("keel.map", fn, reads := "keel.map(fn, items)")
    check_items("keel.map", items, reads)
    trusted = _trusted(key, trust_key=trust_key)
    options = _options("idempotent", "fail", retries, timeout, on_error, trust_key=trusted)
    fn = getattr(fn, "__keel_function__", fn)
    calls = _calls()
    if calls is None:
        return _plain_map(fn, list(items), executor, max_workers)
    mapped = parallel.Map(calls, fn, options=options, executor=executor, max_workers=max_workers, progress=progress)
    return mapped.run(items, key)


def _plain_map(fn: Callable[[Any], R], items: list[Any], executor: Executor | None, workers: int) -> list[R]:
    if executor is not None:
        return list(executor.map(fn, items))
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only a map without keel needs it here

    with ThreadPoolExecutor(workers) as threads:
        return list(threads.map(fn, items))


def loop(items: Iterable[T], *, state: Sequence[str], key: str = "") -> Iterator[T]:
    """The items, one turn each; after a death the loop goes on after its last finished turn.

    ``state`` names the notebook variables that a turn changes: they are recorded after every turn, and put back.
    """
    __tracebackhide__ = True
    check_items("keel.loop", items, 'keel.loop(items, state=["total"])')
    calls = _calls()
    return iter(items) if calls is None else loops.loop(calls, items, state, key)


def now() -> datetime:
    """The time as the first attempt of this step saw it, aware, in UTC (K43)."""
    calls = _calls()
    return datetime.now(UTC) if calls is None else values.now(calls)  # noqa: TID251 - nothing is recorded here


def time() -> float:
    """Seconds since the epoch as the first attempt of this step saw them (K43)."""
    calls = _calls()
    return _time.time() if calls is None else values.time(calls)  # noqa: TID251 - nothing is recorded here


def random() -> float:
    """A random number from 0 to 1, the same in every attempt of this step (K43)."""
    calls = _calls()
    return _random.random() if calls is None else values.random(calls)  # noqa: S311 - as random.random


def randbytes(n: int, /) -> bytes:
    """``n`` random bytes, the same in every attempt of this step (K43)."""
    calls = _calls()
    return os.urandom(n) if calls is None else values.randbytes(calls, n)


def uuid4() -> uuid.UUID:
    """A random UUID, the same in every attempt of this step (K43, C76)."""
    calls = _calls()
    return uuid.uuid4() if calls is None else values.uuid4(calls)


def sleep(duration: str | float, /) -> None:
    """Wait, over restarts: until the instant that the first attempt wrote down (O24). ``"2h"``, or seconds."""
    __tracebackhide__ = True
    check_wait("keel.sleep", duration)
    calls = _calls()
    if calls is None:
        _time.sleep(duration_s(duration) if isinstance(duration, str) else duration)
    else:
        waits.sleep(calls, duration)


async def asleep(duration: str | float, /) -> None:
    """``keel.sleep`` for asynchronous code."""
    __tracebackhide__ = True
    check_wait("keel.asleep", duration)
    calls = _calls()
    if calls is None:
        await asyncio.sleep(duration_s(duration) if isinstance(duration, str) else duration)
    else:
        await waits.asleep(calls, duration)


def promise(name: str, /) -> Promise:
    """Something that a person or another program decides: ``.id``, ``.token`` (only when new), ``.result()``.

    ``engine.waits.resolve`` answers it, from any process, while the kernel is dead or alive.
    """
    calls = _calls(needed=True)
    if calls is None:
        raise NotNowError(where="keel.promise", detail="a promise needs a journal", case="no_journal")
    return waits.promise(calls, name)


def undo(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """Register how to take back what this step does: ``fn(*args, **kwargs)``, when `%keel undo` asks for it (O26).

    Journaled: after a restart and a replay it is registered as before. Undos run last registered first, each once.
    """
    __tracebackhide__ = True
    check_function("keel.undo", fn, "keel.undo(fn, *args)")
    calls = _calls(needed=True)
    if calls is None:
        raise NotNowError(where="keel.undo", detail="it needs a journal", case="no_journal")
    undoing.register(calls, fn, args, kwargs)


def idempotency_key() -> str:
    """The key of the durable call inside which this is asked, else of the step: equal in every attempt (Z23, K40)."""
    calls = _calls(needed=True)
    if calls is None:
        raise NotNowError(where="keel.idempotency_key", detail="it is asked inside a step", case="outside")
    inside = scope.inside()
    if inside is not None:
        return calls.key_of(inside)
    here = calls.records()[0]
    return here.idempotency_key or calls.step_key(here)
