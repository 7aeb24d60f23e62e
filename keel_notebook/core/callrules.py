"""The other layers around a call: a rate, a breaker, a kept result, a poll; and how a policy spells them (pure).

Layers are asked in the order cache, rate, breaker, poll, retry, with the timeout inside retry. All arithmetic is in
whole milliseconds, so that every waits and every opening can be told exactly beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from keel_notebook.core.attempts import DEFAULT_ON, DEFAULT_SCHEDULE, Retry, ms, schedule
from keel_notebook.errors import SettingsError

_UNITS = {"s": 1_000, "sec": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "hour": 3_600_000, "d": 86_400_000}


class TokenBucket(Struct):
    """At most ``limit`` calls in ``window_ms``, with a burst of ``limit``; a call beyond is delayed, never failed."""

    limit: int
    window_ms: int
    _level: int = -1
    _at: int = 0

    def admit(self, now_ms: int) -> int:
        """Take one token, and tell how long to wait for it. A token is ``window_ms`` units; refill is exact."""
        full = self.limit * self.window_ms
        level = full if self._level < 0 else min(full, self._level + (now_ms - self._at) * self.limit)
        self._at = now_ms
        short = max(0, self.window_ms - level)
        wait = -(-short // self.limit)
        self._level = level - self.window_ms + wait * self.limit
        self._at = now_ms + wait
        return wait


class Breaker(Struct):
    """Leaves a target alone that keeps failing. Counts failures in a row, or their share in a window."""

    failures: int | None = 5
    window_ms: int = 0
    failure_rate: float = 1.0
    min_calls: int = 10
    cooldown_ms: int = 15_000
    opens: int = 0
    state: str = "closed"
    _row: int = 0
    _opened_at: int = 0
    _outcomes: list[tuple[int, bool]] = field(default_factory=list)

    def admits(self, now_ms: int) -> bool:
        """Whether a call may go out: not while open, but one probe after the cool-down."""
        if self.state == "open":
            if now_ms - self._opened_at < self.cooldown_ms:
                return False
            self.state = "half_open"
        return True

    def left_ms(self, now_ms: int) -> int:
        """How long it stays open."""
        return max(0, self.cooldown_ms - (now_ms - self._opened_at))

    def saw(self, now_ms: int, *, ok: bool) -> None:
        """A call ended, after all of its retries."""
        if self.state == "half_open":
            self._row, self._outcomes = 0, []
            if ok:
                self.state = "closed"
            else:
                self._open(now_ms)
            return
        self._row = 0 if ok else self._row + 1
        if self.failures is None:
            self._outcomes = [(at, good) for at, good in self._outcomes if now_ms - at < self.window_ms]
            self._outcomes.append((now_ms, ok))
        if not ok and self._trips():
            self._open(now_ms)

    def _trips(self) -> bool:
        if self.failures is not None:
            return self._row >= self.failures
        total = len(self._outcomes)
        failed = sum(not good for _, good in self._outcomes)
        return total >= self.min_calls and failed / total >= self.failure_rate

    def _open(self, now_ms: int) -> None:
        self.state, self._opened_at = "open", now_ms
        self._row, self._outcomes = 0, []
        self.opens += 1


class Poll(Struct, frozen=True):
    """Ask again until a field of the answer says that it is done."""

    interval_ms: int
    deadline_ms: int
    field: str
    terminal: tuple[str, ...]


ONCE = Retry()
"""No second attempt."""


class Layers(Struct, frozen=True):
    """The policy of one target. None: that layer is not there."""

    retry: Retry = ONCE
    ttl_ms: int | None = None
    rate: tuple[int, int] | None = None
    breaker: Mapping[str, Any] | None = None
    poll: Poll | None = None
    timeout_s: float | None = None


def layer(policy: Mapping[str, Any], target: str, name: str) -> Any:
    """One layer of a target as it is spelled: its own, else that of ``llm:`` targets, else the default of all.

    A layer at a nearer place replaces the whole layer; nothing is mixed.
    """
    own = policy.get("target", {}).get(target, {})
    if name in own:
        return own[name]
    defaults = policy.get("defaults", {})
    if target.startswith("llm:") and name in defaults.get("llm", {}):
        return defaults["llm"][name]
    return defaults.get("outbound", {}).get(name)


def layers(policy: Mapping[str, Any], target: str) -> Layers:
    """The layers of one target. Raises SettingsError (E001) for what cannot be read."""
    cache, rate, timeout = (layer(policy, target, name) for name in ("cache", "rate", "timeout"))
    breaker, poll = layer(policy, target, "breaker"), layer(policy, target, "poll")
    if breaker is not None:
        breaker_of(breaker)
    return Layers(
        retry=_retry(layer(policy, target, "retry")),
        ttl_ms=None if not cache or "ttl" not in cache else ms(cache["ttl"]),
        rate=None if rate is None else _rate(rate),
        breaker=breaker,
        poll=None if poll is None else _poll(poll),
        timeout_s=None if timeout is None else ms(timeout) / 1000,
    )


def check(policy: Mapping[str, Any]) -> None:
    """Read all of a policy, so that a mistake in it is found when it is set. Raises SettingsError (E001)."""
    for target in policy.get("target", {}):
        layers(policy, target)
    for name in ("llm:", ""):
        layers({"defaults": policy.get("defaults", {})}, name)


def _retry(raw: Mapping[str, Any] | None) -> Retry:
    if raw is None:
        return Retry()
    attempts = raw.get("attempts", 3)
    if not isinstance(attempts, int) or isinstance(attempts, bool):
        raise SettingsError(where="retry.attempts", detail="a whole number, 1 or more")
    return Retry(attempts, schedule(raw.get("schedule", DEFAULT_SCHEDULE)), tuple(raw.get("on", DEFAULT_ON)))


def _rate(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)\s*/\s*(\d*)([a-z]+)", text)
    if found is None or found[3] not in _UNITS or int(found[1]) < 1:
        raise SettingsError(where=f"the rate {text!r}", detail="reads like 2/s or 100/min")
    return int(found[1]), int(found[2] or 1) * _UNITS[found[3]]


def breaker_of(raw: Mapping[str, Any]) -> Breaker:
    """A closed breaker as a policy spells it: ``failures`` counts in a row, else ``window`` and ``failure_rate``."""
    cooldown = ms(raw.get("cooldown", "15s"))
    knobs = {"window", "failure_rate", "min_calls"} & raw.keys()
    if "failures" in raw or not knobs:
        failures = raw.get("failures", 5)
        if not isinstance(failures, int) or failures < 1:
            raise SettingsError(where="breaker.failures", detail="a whole number, 1 or more")
        return Breaker(failures=failures, cooldown_ms=cooldown)
    if not {"window", "failure_rate"} <= raw.keys():
        raise SettingsError(where="breaker", detail="window and failure_rate go together")
    return Breaker(None, ms(raw["window"]), float(raw["failure_rate"]), int(raw.get("min_calls", 10)), cooldown)


def _poll(raw: Mapping[str, Any]) -> Poll:
    until = raw.get("until", {})
    interval, deadline = ms(raw["interval"]), ms(raw["deadline"])
    terminal = tuple(until.get("terminal", ()))
    if interval < 1 or not terminal or "field" not in until:
        raise SettingsError(where="poll", detail="needs an interval, a field, and the values that end it")
    return Poll(interval, deadline, until["field"], terminal)
