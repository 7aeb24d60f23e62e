"""When a call is tried again: schedules of waits and the decision after a failed attempt (K40, K45; pure).

A schedule is one or more segments joined by ``andThen``; each is ``exp(BASE, xFACTOR, max CAP)`` or ``fixed(WAIT)``
and, but for the last, bounded by ``upTo TOTAL``. A wait is a pure function of the number of the failed attempt.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from keel_notebook.core.options import duration_s
from keel_notebook.errors import SettingsError

DEFAULT_SCHEDULE: Final = "exp(200ms, x2, max 30s)"
DEFAULT_ON: Final = ("conn", "timeout", "429", "5xx")


class Segment(Struct, frozen=True):
    """One part of a schedule; milliseconds."""

    base_ms: int
    factor: float
    cap_ms: int | None
    upto_ms: int | None
    jitter: bool

    def wait(self, attempt: int) -> int:
        """The natural wait after the segment's own ``attempt``, from 1."""
        grown = self.base_ms * self.factor ** (attempt - 1)
        return int(grown if self.cap_ms is None else min(grown, self.cap_ms))


_EXP = re.compile(
    r"exp\(\s*([^,\s]+)\s*,\s*x(\d+(?:\.\d+)?)\s*(?:,\s*max\s+([^,\s)]+)\s*)?(?:,\s*(jitter)\s*)?\)\s*(jitter)?"
)
_FIXED = re.compile(r"fixed\(\s*([^,\s)]+)\s*(?:,\s*(jitter)\s*)?\)\s*(jitter)?")
_UPTO = re.compile(r"(.*?)\s+upTo\s+(\S+)")


def ms(text: str) -> int:
    """Milliseconds in a duration. Raises SettingsError (E001)."""
    try:
        return round(duration_s(text) * 1000)
    except ValueError as error:
        raise SettingsError(where=f"the duration {text!r}", detail=str(error)) from None


def schedule(text: str) -> tuple[Segment, ...]:
    """The segments of a schedule. Raises SettingsError (E001) for what cannot be read or could not be carried out."""
    parts = [part.strip() for part in re.split(r"\s+andThen\s+", text.strip())]
    segments = tuple(_segment(part) for part in parts)
    bounded = [segment.upto_ms is not None for segment in segments]
    if bounded[-1] or not all(bounded[:-1]):
        raise SettingsError(where=f"the schedule {text!r}", detail="every part but the last needs upTo, the last none")
    return segments


def _segment(text: str) -> Segment:
    bound = _UPTO.fullmatch(text)
    body, upto = (bound[1].strip(), ms(bound[2])) if bound else (text, None)
    if found := _EXP.fullmatch(body):
        cap = ms(found[3]) if found[3] else None
        return Segment(ms(found[1]), float(found[2]), cap, upto, bool(found[4] or found[5]))
    if found := _FIXED.fullmatch(body):
        return Segment(ms(found[1]), 1.0, None, upto, bool(found[2] or found[3]))
    raise SettingsError(where=f"the schedule {text!r}", detail="reads like exp(200ms, x2, max 30s) or fixed(1s)")


def wait_ms(segments: tuple[Segment, ...], attempt: int) -> tuple[int, bool]:
    """The natural wait after the failed attempt number ``attempt`` (from 1), and whether it takes jitter."""
    at, local, emitted = 0, 1, 0
    for number in range(1, attempt + 1):
        wait = segments[at].wait(local)
        while (bound := segments[at].upto_ms) is not None and emitted + wait > bound:
            at, local, emitted = at + 1, 1, 0
            wait = segments[at].wait(local)
        if number == attempt:
            return wait, segments[at].jitter
        local, emitted = local + 1, emitted + wait
    raise ValueError("attempts count from 1")


class Retry(Struct, frozen=True):
    """How often, after which errors, and when a call is tried again."""

    attempts: int = 1
    segments: tuple[Segment, ...] = schedule(DEFAULT_SCHEDULE)
    on: tuple[str, ...] = DEFAULT_ON

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise SettingsError(where="retry.attempts", detail="a whole number, 1 or more")


class Failed(Struct, frozen=True):
    """How an attempt failed, as far as the decision needs it."""

    kind: str
    """``conn``, ``timeout``, ``http``, ``cancelled``, ``other``."""
    status: int | None = None
    """Of HTTP."""
    retry_after_ms: int | None = None

    def matches(self, on: tuple[str, ...]) -> bool:
        """Whether this is one of the errors that may pass."""
        if "any" in on or self.kind in on:
            return True
        if self.kind != "http" or self.status is None:
            return False
        return str(self.status) in on or f"{self.status // 100}xx" in on


class Wait(Struct, frozen=True):
    """Try again after so many milliseconds; ``jitter`` lets it be varied."""

    ms: int
    jitter: bool


class GiveUp(Struct, frozen=True):
    """Do not try again; the code says why (E010, E014, E015)."""

    code: str


def after_failure(retry: Retry, attempt: int, failed: Failed, *, repeatable: bool) -> Wait | GiveUp:
    """What comes after the failed attempt number ``attempt``. Pure.

    ``repeatable``: running it again does no harm: it is idempotent, or the other side knows its idempotency key.
    """
    if not failed.matches(retry.on):
        return GiveUp("E015")
    if attempt >= retry.attempts:
        return GiveUp("E010")
    if not repeatable:
        return GiveUp("E014")
    natural, jitter = wait_ms(retry.segments, attempt)
    return Wait(max(natural, failed.retry_after_ms or 0), jitter and failed.retry_after_ms is None)
