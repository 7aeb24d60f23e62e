"""Carries out a call's policy: cache, rate, breaker, poll, retry, with the timeout inside retry (DESIGN 3.2; K40, K45).

Own code rather than tenacity: the decision after a failed attempt is needed three times (a plain call, an awaited
one, and the futures of ``keel.map``), with waits that are a pure function of the attempt number and can be asserted
exactly. tenacity brings loops of its own, whose waits read the clock and whose stop rules cannot say *why* (E010,
E014, E015); what is left of it after taking those out is a ``for`` loop.

Clock, sleep and chance are arguments. Nothing here knows the journal: attempts of a call and attempts of a flow
never mix (K23).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from keel_notebook.core.attempts import Failed, GiveUp, Retry, after_failure, schedule
from keel_notebook.core.callrules import Breaker, Layers, TokenBucket, breaker_of, check, layers
from keel_notebook.engine.answers import pending
from keel_notebook.errors import UnansweredError


def failed(error: BaseException) -> Failed:
    """What the exception of a library says about itself: HTTP status, Retry-After, a time-out, a lost connection."""
    status = _status(error)
    if status is not None:
        return Failed("http", status, _retry_after_ms(error))
    if isinstance(error, TimeoutError) or "timeout" in type(error).__name__.lower():
        return Failed("timeout")
    if isinstance(error, ConnectionError):
        return Failed("conn")
    return Failed("other")


def _status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    for owner in (error, response):
        for name in ("status_code", "status", "code"):
            found = getattr(owner, name, None)
            if isinstance(found, int) and 100 <= found <= 599:
                return found
    return None


def _retry_after_ms(error: BaseException) -> int | None:
    for owner in (error, getattr(error, "response", None)):
        headers = getattr(owner, "headers", None)
        if headers is None or not hasattr(headers, "get"):
            continue
        text = headers.get("Retry-After") or headers.get("retry-after")
        try:
            return None if text is None else round(float(text) * 1000)
        except ValueError:
            return None  # a date: without a clock of the server it says too little
    return None


def retry_of(retries: int, backoff: str | None = None) -> Retry:
    """The rule behind ``retries=N``: N more attempts after any error that may pass, with backoff and jitter.

    An answer of the other side that another try would not change (4xx but 408, 409, 425, 429) is final.
    """
    return Retry(retries + 1, schedule(backoff or "exp(200ms, x2, max 30s, jitter)"), ("any",))


def backoff(first_s: float | None) -> str | None:
    """The schedule behind ``--backoff 2s``: that long first, twice as long each time, at most a minute (or that)."""
    if first_s is None:
        return None
    first = round(first_s * 1000)
    return f"exp({first}ms, x2, max {max(first, 60_000)}ms, jitter)"


_FINAL = frozenset(range(400, 500)) - {408, 409, 425, 429}


def next_try(
    retry: Retry, attempt: int, error: BaseException, *, repeatable: bool, chance: Callable[[], float]
) -> float | GiveUp:
    """Seconds to wait before trying again after an exception, or why not. ``chance`` gives numbers from 0 to 1."""
    seen = failed(error)
    if seen.status in _FINAL:
        return GiveUp("E015")
    answer = after_failure(retry, attempt, seen, repeatable=repeatable)
    if isinstance(answer, GiveUp):
        return answer
    # Between half and all of it: spread over a crowd of callers, and never so short that it is no wait.
    varied = answer.ms * (0.5 + chance() / 2) if answer.jitter else answer.ms
    return varied / 1000


class Reported(Struct):
    """Counts of one target."""

    calls: int = 0
    attempts: int = 0
    retries: int = 0
    successes: int = 0
    failures: int = 0
    cache_hits: int = 0
    throttled: int = 0


class _Target(Struct):
    layers: Layers
    bucket: TokenBucket | None
    breaker: Breaker | None
    kept: dict[str, tuple[int, Any]] = field(default_factory=dict)
    report: Reported = field(default_factory=Reported)


class Request(Struct, frozen=True):
    """One call to a target. ``args`` is the digest of its arguments, None where there is none to keep a result by."""

    target: str
    op: str = ""
    idempotent: bool = True
    args: str | None = None


Attempt = Callable[[int], Mapping[str, Any]]
"""Gets the number of the attempt; gives ``{"status": "ok", "payload": …}`` or ``{"status": "error", "class": …}``."""


class PolicyEngine:
    """Policies by target, as data. ``now_ms`` and ``sleep_ms`` are the clock."""

    def __init__(
        self,
        policy: Mapping[str, Any],
        *,
        now_ms: Callable[[], int],
        sleep_ms: Callable[[int], None],
        chance: Callable[[], float],
    ) -> None:
        check(policy)
        self._policy = policy
        self._now = now_ms
        self._sleep = sleep_ms
        self._chance = chance
        self._targets: dict[str, _Target] = {}

    def configure(self, policy: Mapping[str, Any]) -> None:
        """Use another policy from now on. Counts go on; rates and breakers start anew. Raises SettingsError (E001)."""
        check(policy)
        self._policy = policy
        for name, target in self._targets.items():
            self._targets[name] = self._made(name, target.report)

    def call(self, request: Request, attempt: Attempt) -> dict[str, Any]:
        """One call through all layers. The outcome is data: result, payload or error, attempts, waits and flags."""
        target = self._targets.get(request.target)
        if target is None:
            target = self._targets[request.target] = self._made(request.target, Reported())
        report = target.report
        report.calls += 1
        out: dict[str, Any] = {"attempts": 0, "waits_ms": [], "from_cache": False, "throttled": False}
        out["throttle_wait_ms"] = 0
        kept = target.kept.get(request.args) if request.args is not None else None
        if kept is not None and kept[0] > self._now():
            report.cache_hits += 1
            report.successes += 1
            return self._ended(target, out | {"result": "ok", "payload": kept[1], "from_cache": True})
        self._throttle(target, out)
        if target.breaker is not None and not target.breaker.admits(self._now()):
            report.failures += 1
            message = f"the breaker of {request.target} is open"
            return self._ended(target, out | _error({"class": "other", "message": message}, "E012"))
        out |= self._polled(target, request, attempt, out)
        ok = out["result"] == "ok"
        if target.breaker is not None:
            target.breaker.saw(self._now(), ok=ok)
        report.successes += ok
        report.failures += not ok
        if ok and target.layers.ttl_ms is not None and request.args is not None:
            target.kept[request.args] = (self._now() + target.layers.ttl_ms, out["payload"])
        return self._ended(target, out)

    def report(self) -> dict[str, Any]:
        """The counts of every target, and the clock."""
        targets = {}
        for name, target in sorted(self._targets.items()):
            counts = {key: getattr(target.report, key) for key in Reported.__struct_fields__}
            breaker = target.breaker
            state = {
                "breaker_opens": breaker.opens if breaker else 0,
                "breaker_state": breaker.state if breaker else "closed",
            }
            targets[name] = counts | state
        return {"v": 1, "clock_ms": self._now(), "targets": targets}

    def _made(self, name: str, report: Reported) -> _Target:
        found = layers(self._policy, name)
        bucket = None if found.rate is None else TokenBucket(*found.rate)
        breaker = None if found.breaker is None else breaker_of(found.breaker)
        return _Target(found, bucket, breaker, report=report)

    def _throttle(self, target: _Target, out: dict[str, Any]) -> None:
        wait = 0 if target.bucket is None else target.bucket.admit(self._now())
        if wait:
            target.report.throttled += 1
            out["throttled"], out["throttle_wait_ms"] = True, wait
            self._sleep(wait)

    @staticmethod
    def _ended(target: _Target, out: dict[str, Any]) -> dict[str, Any]:
        return out | {"breaker": target.breaker.state if target.breaker else "closed"}

    def _polled(self, target: _Target, request: Request, attempt: Attempt, out: dict[str, Any]) -> dict[str, Any]:
        poll, began = target.layers.poll, self._now()
        asks = poll is not None and request.idempotent and request.op.startswith(("GET ", "HEAD "))
        while True:
            ended = self._retried(target, request, attempt, out)
            if not asks or ended["result"] != "ok" or poll is None or not pending(ended["payload"], poll):
                return ended
            if self._now() - began + poll.interval_ms > poll.deadline_ms:
                message = f"{request.op} poll deadline exceeded: '{poll.field}' not terminal after {poll.deadline_ms}ms"
                return _error({"class": "other", "message": message}, UnansweredError.code)
            self._sleep(poll.interval_ms)

    def _retried(self, target: _Target, request: Request, attempt: Attempt, out: dict[str, Any]) -> dict[str, Any]:
        number = 0
        while True:
            number += 1
            out["attempts"] += 1
            target.report.attempts += 1
            answer = attempt(out["attempts"])
            if answer["status"] == "ok":
                return {"result": "ok", "payload": answer.get("payload")}
            seen = Failed(answer.get("class", "other"), answer.get("http_status"), answer.get("retry_after_ms"))
            next_step = after_failure(target.layers.retry, number, seen, repeatable=request.idempotent)
            if isinstance(next_step, GiveUp):
                return _error(answer, next_step.code)
            wait = round(next_step.ms * (0.5 + self._chance() / 2)) if next_step.jitter else next_step.ms
            out["waits_ms"].append(wait)
            target.report.retries += 1
            self._sleep(wait)


def _error(answer: Mapping[str, Any], code: str) -> dict[str, Any]:
    kept = {name: value for name, value in answer.items() if name != "status"}
    return {"result": "error", "error": {"code": f"KEEL-{code}", **kept}}
