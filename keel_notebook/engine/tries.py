"""How often the body of a whole step is tried, and how long one try may take (DESIGN 3.1; K23, K40, E011, E014).

All tries belong to one attempt of the step: one intent, one idempotency key, one record. They never count as deaths
of the kernel (K23). Before each further try the inputs are as they were before the first one.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import threading
from collections.abc import Callable
from time import sleep
from types import FrameType, TracebackType
from typing import Any, Self

from msgspec import Struct

from keel_notebook.core.attempts import GiveUp, Retry
from keel_notebook.core.units import duration
from keel_notebook.core.words import Effect
from keel_notebook.engine.attempt import Attempt
from keel_notebook.engine.callpolicy import backoff, next_try, retry_of
from keel_notebook.engine.scope import StepScope
from keel_notebook.engine.stepparts import Look
from keel_notebook.engine.stepper import Stepper
from keel_notebook.errors import CallTimeoutError, KeelError, NotNowError


class TryRules(Struct, frozen=True):
    """How a step is tried."""

    name: str
    retry: Retry
    timeout_s: float | None
    repeatable: bool
    """Whether a second try does no harm: it is not guarded, or the other side knows its ``--key``."""
    chance: Callable[[], float]
    sleep: Callable[[float], None]
    say: Callable[[str], None]
    as_before: Callable[[], str]
    """Puts the inputs back as they were; why that cannot be done, or ""."""


class Tries:
    """The tries of one body. The wrapped cell asks it (``capture.trying``)."""

    def __init__(self, rules: TryRules) -> None:
        self._rules = rules
        self.number = 1
        self.last: Any = None

    def limit(self) -> Limit:
        """One try's time."""
        return Limit(self._rules.name, self._rules.timeout_s)

    def again(self) -> bool:
        """Whether to try again after the exception at hand; waits its time."""
        wait = self._next()
        if wait is not None:
            self._rules.sleep(wait)
        return wait is not None

    async def again_later(self) -> bool:
        """The same without blocking the event loop."""
        wait = self._next()
        if wait is not None:
            await asyncio.sleep(wait)
        return wait is not None

    def _next(self) -> float | None:
        error, rules = sys.exc_info()[1], self._rules
        assert isinstance(error, Exception)
        if isinstance(error, KeelError) and not isinstance(error, CallTimeoutError):
            return None  # keel's own refusals stay
        answer = next_try(rules.retry, self.number, error, repeatable=rules.repeatable, chance=rules.chance)
        if isinstance(answer, GiveUp):
            if rules.retry.attempts > 1:
                error.add_note(f"KEEL-{answer.code}: {_WHY[answer.code]} (step {rules.name}, try {self.number})")
            return None
        if lost := rules.as_before():
            error.add_note(f"keel: step {rules.name} is not tried again: {lost}")
            return None
        left = rules.retry.attempts - self.number
        kind = type(error).__name__
        rules.say(f"{rules.name}: {kind}; again in {duration(answer)}, {left} more")
        self.number += 1
        return answer


def tries_of(look: Look, attempt: Attempt, here: StepScope, *, stepper: Stepper, say: Callable[[str], None]) -> Tries:
    """The tries of a body that is about to run, as its step line says."""
    options = look.cell.options

    def as_before() -> str:
        here.restart()
        attempt.retries += 1
        return stepper.as_before(look, attempt.step)

    return Tries(
        TryRules(
            name=attempt.step.name,
            retry=retry_of(options.retries, backoff(options.backoff_s)),
            timeout_s=options.timeout_s,
            repeatable=options.effect is not Effect.EXACTLY_ONCE or bool(options.key),
            chance=random.Random().random,  # noqa: S311 - spreads waits; not the notebook's own generator
            sleep=sleep,
            say=say,
            as_before=as_before,
        )
    )


_WHY = {
    "E010": "all tries failed",
    "E014": "not tried again: it may have happened; give it a --key that the other side honours",
    "E015": "not tried again: this error stays",
}


class Limit:
    """A time limit around one try: an alarm of the main thread, or the event loop's own where the cell waits."""

    def __init__(self, name: str, timeout_s: float | None) -> None:
        self._name = name
        self._timeout_s = timeout_s
        self._over = False
        self._before: Any = None
        self._loop: asyncio.Timeout | None = None

    def _error(self) -> CallTimeoutError:
        return CallTimeoutError(what=f"step {self._name}", timeout=duration(self._timeout_s or 0.0))

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        self._over = True
        raise self._error()

    def __enter__(self) -> Self:
        if self._timeout_s is None:
            return self
        if threading.current_thread() is not threading.main_thread():
            raise NotNowError(
                where="--timeout",
                detail="a step with a time limit runs in the main thread only",
                next="Take `--timeout` off its line, or run the cell of a front end, not in a subshell.",
            )
        self._before = signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, self._timeout_s)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._timeout_s is None:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)
        if self._over and error is None:  # the body caught it and went on: it took too long all the same
            raise self._error()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.timeout(self._timeout_s)
        await self._loop.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        assert self._loop is not None
        try:
            await self._loop.__aexit__(kind, error, at)
        except TimeoutError:
            if self._loop.expired():
                raise self._error() from None
            raise
