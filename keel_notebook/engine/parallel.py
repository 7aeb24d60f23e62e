"""``keel.map`` and ``keel.gather``: many durable calls at once, ids given when they are made (Z1, Z2; C71, C74).

Every call claims its place in the order of the items, before any of them runs. Results are journaled as they arrive,
by the thread that waits; workers only compute. A kernel that dies in the middle owes exactly the missing ones.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any

from keel_notebook.core.attempts import GiveUp
from keel_notebook.core.model import NotStored
from keel_notebook.engine.callparts import CallOptions, Claim, Given, Going
from keel_notebook.engine.callpolicy import next_try, retry_of
from keel_notebook.engine.calls import Calls
from keel_notebook.engine.failure import Failure
from keel_notebook.engine.invoke import in_time, named, run_async
from keel_notebook.engine.progress import Progress
from keel_notebook.engine.tracebacks import WorkerTraceback, in_text, note, own_lines, which

_AHEAD = 2
"""Calls handed out per worker: more would have to be taken back when one fails."""


class Deferred:
    """A call that was made and has not been begun: its place is taken (Z2). Await it, or give it to ``gather``."""

    def __init__(self, begin: Callable[[], Awaitable[Any]], place: str, shown: Callable[[], str] = lambda: "") -> None:
        """``shown``: what may be seen of its arguments, once it ran."""
        self._begin = begin
        self.place = place
        self.shown = shown

    def __await__(self) -> Iterator[Any]:
        return self._begin().__await__()

    def __repr__(self) -> str:
        return f"<keel.defer {self.place}>"


def defer(calls: Calls, claim: Claim) -> Deferred:
    """A call for later."""
    return Deferred(lambda: run_async(calls, claim), f"{claim.place.call} {claim.place.key}", lambda: claim.shown)


async def gather(deferred: Sequence[Awaitable[Any]]) -> list[Any]:
    """All results, in order. Raises the first failure (in order) after every other call has ended and is recorded."""
    __tracebackhide__ = True
    ended = await asyncio.gather(*deferred, return_exceptions=True)
    for at, (call, result) in enumerate(zip(deferred, ended, strict=True), 1):
        error = result.error if isinstance(result, Failure) else result
        if isinstance(error, Exception) and isinstance(call, Deferred):
            note(error, f"keel: {which(at, len(deferred), call.shown())}, of keel.gather")
    for result in ended:
        if isinstance(result, BaseException):
            raise own_lines(result)
    return list(ended)


class Map:
    """One ``keel.map``."""

    def __init__(  # noqa: PLR0913 - the parameters of keel.map, all by name
        self,
        calls: Calls,
        function: Callable[..., Any],
        *,
        options: CallOptions,
        executor: Executor | None,
        max_workers: int,
        progress: bool,
    ) -> None:
        self._calls = calls
        self._function = function
        self._options = options
        self._executor = executor
        self._workers = max_workers
        self._progress = Progress(getattr(function, "__name__", "map"), wanted=progress, clock=calls.parts.clock)
        self._running: dict[Future[Any], tuple[int, Going]] = {}
        self._results: list[Any] = []
        self._failure: BaseException | None = None
        self._changed = False

    def run(self, items: Iterable[Any], keys: Callable[[Any], Any] | Sequence[Any] | None) -> list[Any]:
        """Carry all calls out; the results in the order of the items."""
        __tracebackhide__ = True
        wanted = list(items)
        named_by = _keys(wanted, keys)
        claims = [
            self._calls.claim(self._function, (item,), {}, self._options, key)
            for item, key in zip(wanted, named_by, strict=True)
        ]
        missing: list[tuple[int, Going]] = []
        for at, claim in enumerate(claims):
            go = self._calls.begin(claim)
            self._results.append(go.value if isinstance(go, Given) else None)
            if isinstance(go, Going):
                missing.append((at, go))
        self._progress.begin(total=len(claims), done=len(claims) - len(missing))
        try:
            if missing:
                self._work(missing)
        finally:
            self._progress.end()
        if self._failure is not None:
            raise self._failure
        return self._results

    def _work(self, missing: list[tuple[int, Going]]) -> None:
        if self._executor is not None:
            self._hand_out(self._executor, missing)
            return
        with ThreadPoolExecutor(self._workers, thread_name_prefix="keel-map") as threads:
            self._hand_out(threads, missing)

    def _hand_out(self, executor: Executor, missing: list[tuple[int, Going]]) -> None:
        waiting = iter(missing)
        before = self._calls.prints.of(self._function)
        ahead = _AHEAD * (getattr(executor, "_max_workers", None) or self._workers)
        try:
            while True:
                while len(self._running) < ahead and self._failure is None:
                    nxt = next(waiting, None)
                    if nxt is None:
                        break
                    self._running[self._submit(executor, nxt[1])] = nxt
                if not self._running:
                    return
                done, _ = wait(self._running, return_when=FIRST_COMPLETED)
                self._changed = self._changed or (bool(before.changing) and self._calls.prints.moved(before))
                for future in done:
                    self._arrived(executor, future)
        except BaseException:
            for future in self._running:
                future.cancel()
            raise

    def _submit(self, executor: Executor, go: Going) -> Future[Any]:
        clock = self._calls.parts.clock
        go.started, go.began = clock.now(), clock.monotonic()
        if isinstance(executor, ThreadPoolExecutor):
            context = contextvars.copy_context()  # the step is found in the worker as well
            return executor.submit(context.run, in_time, go.claim, self._options.timeout_s)
        return executor.submit(away, packed_call(go.claim))

    def _arrived(self, executor: Executor, future: Future[Any]) -> None:
        at, go = self._running.pop(future)
        error = None if future.cancelled() else future.exception()
        value = None
        if error is None and not future.cancelled():
            value = future.result()
            if not isinstance(executor, ThreadPoolExecutor):
                value, error = opened(value)
        if error is None and not future.cancelled():
            if self._changed:
                self._mark(go)
            self._results[at] = self._calls.finish(go, value)
            self._progress.step()
            return
        if isinstance(error, Exception) and self._failure is None and self._again(executor, at, go, error):
            return
        if error is not None:
            self._calls.fail(go, error)
            self._settle(at, go, error)

    def _settle(self, at: int, go: Going, error: BaseException) -> None:
        named(own_lines(error), go.claim, f": {which(at + 1, len(self._results), go.claim.shown)}")
        if self._options.on_error == "keep" and isinstance(error, Exception):
            self._results[at] = self._calls.kept(go, error)
            self._progress.step(failed=True)
        elif self._failure is None:
            self._failure = error  # no more are handed out; those that run end and are recorded

    def _again(self, executor: Executor, at: int, go: Going, error: Exception) -> bool:
        parts = self._calls.parts
        rule = retry_of(self._options.retries)
        answer = next_try(rule, go.attempts, error, repeatable=True, chance=parts.chance)
        if isinstance(answer, GiveUp):
            return False
        parts.sleep(answer)
        go.attempts += 1
        self._running[self._submit(executor, go)] = (at, go)
        return True

    def _mark(self, go: Going) -> None:
        name = go.claim.place.call
        why = "the function changes it while other calls run; return it instead"
        go.unreplayable = (NotStored(f"a value that {name} reads", "", why),)


def _keys(items: list[Any], keys: Callable[[Any], Any] | Sequence[Any] | None) -> list[Any]:
    if keys is None:
        return [None] * len(items)
    if callable(keys):
        return [keys(item) for item in items]
    found = list(keys)
    if len(found) != len(items):
        raise ValueError(f"{len(found)} keys for {len(items)} items")
    return found


def packed_call(claim: Claim) -> bytes:
    """A call for another process: functions of the notebook go along by value."""
    import cloudpickle  # noqa: PLC0415 - only calls that leave the process need it

    packed: bytes = cloudpickle.dumps((claim.function, claim.args, dict(claim.kwargs)))
    return packed


def away(call: bytes) -> bytes:
    """Run a packed call in another process and pack what it gives."""
    import cloudpickle  # noqa: PLC0415 - only calls that leave the process need it

    function, args, kwargs = cloudpickle.loads(call)
    try:
        value = function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - given back, and raised in the kernel
        try:
            raised: bytes = cloudpickle.dumps((None, error, in_text(error)))
        except Exception:  # noqa: BLE001 - it does not go along: the executor says what it can of it
            raise error from None
        return raised
    packed: bytes = cloudpickle.dumps((value, None, ""))
    return packed


def opened(packed: bytes) -> tuple[Any, Exception | None]:
    """The value that another process gave, or the error that was raised there."""
    import cloudpickle  # noqa: PLC0415 - only calls that leave the process need it

    value, error, text = cloudpickle.loads(packed)
    if error is not None:
        error.__cause__ = WorkerTraceback(text)
    return value, error
