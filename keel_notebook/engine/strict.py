"""Strict flows: durable calls matched by position and key, with statuses, attempts and a lease (K1-K38; DESIGN 5).

``enter`` decides whether the flow may be entered and as what; the handle then carries out one call after another.
The write order is in sight: ``running`` before the effect (K8), the outcome before the result is released (K9).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol, assert_never

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.core import flowstate as f
from keel_notebook.core.decide import Response
from keel_notebook.core.model import Entry, FlowId, Kind, Payload, Problem, Status, entry_id
from keel_notebook.core.ports import Clock, Journal
from keel_notebook.engine import plain
from keel_notebook.errors import DeadError, DivergenceError, KeelError, LeaseError, StepCapError, VersionError


class FlowLease(Protocol):
    """The lease of one flow."""

    fence: int

    def acquire(self) -> int:
        """Take it, or raise LeaseError (E030)."""

    def lost(self) -> LeaseError | None:
        """The loss, if another holder stands in its place (K34)."""

    def release(self) -> None:
        """Give it back."""


class NoLease:
    """Stands for the lease of a store that has none: everybody may go in, and nothing is coordinated (O20)."""

    fence = 0

    def acquire(self) -> int:
        """Always free."""
        return 0

    def lost(self) -> LeaseError | None:
        """Never."""
        return None

    def release(self) -> None:
        """Nothing to give back."""


class Identity(Struct, frozen=True):
    """Which strict flow: these three are its id (K1); the code is not (K2)."""

    entrypoint: str
    args_hash: str
    key: str = ""
    code_hash: str | None = None
    version: str = ""
    """The version of the application, where it tells one: a flow of another one is not gone on with (O29)."""

    @property
    def flow(self) -> FlowId:
        """The flow's id."""
        return f.strict_flow(self.entrypoint, self.args_hash, self.key)


class Rules(Struct, frozen=True):
    """How a strict flow is run."""

    response: Response = Response.FAIL
    max_attempts: int = 3
    most_steps: int = f.MOST_STEPS
    """Positions of one flow; 0: as many as there are. The one above it aborts the flow (Z26)."""


Outcome = dict[str, Any]
"""``result`` ok or error, ``payload`` or ``error``, ``attempts``: what PolicyEngine gives, and what is recorded."""


class StrictFlow:
    """A strict flow that was entered. One thread at a time; positions are claimed in the order of calling (K4)."""

    def __init__(  # noqa: PLR0913 - made by ``enter`` only
        self,
        *,
        journal: Journal,
        clock: Clock,
        lease: FlowLease | None,
        identity: Identity,
        rules: Rules,
        state: f.FlowState,
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._lease = lease
        self._identity = identity
        self._state = state
        self._most = rules.most_steps
        self._response = f.effective(rules.response, recorded_code=state.code, code=identity.code_hash)
        self._position = 0
        self._abandoned = False
        self._recoveries = state.recoveries
        self._status = state.status or f.FlowStatus.RUNNING
        self._lock = threading.RLock()
        self.warnings: list[str] = []

    @property
    def pure(self) -> bool:
        """Whether everything comes from the record (K13, K26)."""
        return self._lease is None

    @property
    def recoveries(self) -> int:
        """How often the flow was entered again before this handle, this time included; the first is none (K24)."""
        return self._recoveries

    @property
    def lane(self) -> str:
        """The lane that is written; empty for the first one."""
        return self._state.lane

    # ---- calls

    def peek_key(self, key: str) -> str | None:
        """The idempotency key that a crashed attempt of the next call left behind. Moves nothing (K38, K39)."""
        position = f.skip_markers(self._state, self._position + 1)
        return f.recorded_key(self._answer(position, key, Kind.CALL))

    def call(self, key: str, effect: Callable[[], Outcome], *, idempotency_key: str = "") -> Outcome:
        """One durable call. ``effect`` runs it under its policy and gives its outcome."""
        with self._lock:
            answer = self._claim(key, Kind.CALL)
            match answer:
                case f.Recorded(entry):
                    return self._recorded(entry)
                case f.Ungrown(position, observed):
                    return _refused(self._divergence(position, "the end", observed))
                case f.Parted(position, response, expected, observed):
                    if response is Response.FAIL:
                        return _refused(self._divergence(position, expected, observed))
                    return self._live(key, effect, self._leave(answer), idempotency_key)
                case f.Live(position, crashed):
                    kept = crashed.idempotency_key if crashed is not None else ""
                    return self._live(key, effect, position, idempotency_key or kept, crashed)
                case _:
                    assert_never(answer)

    def value(self, kind: Kind, key: str, live: Any) -> Any:
        """One value step: the recorded value, or ``live``, recorded now. Raises DivergenceError (K19)."""
        with self._lock:
            answer = self._claim(key, kind)
            match answer:
                case f.Recorded(entry):
                    return self._payload(entry)
                case f.Ungrown(position, observed):
                    raise self._divergence(position, "the end", observed)
                case f.Parted(position, response, expected, observed):
                    if response is Response.FAIL:
                        raise self._divergence(position, expected, observed)
                    position = self._leave(answer)
                case f.Live(position, _):
                    pass
                case _:
                    assert_never(answer)
            self._within_cap(position)
            self._still_mine()
            self._append(replace(self._entry(kind, key, position, live), attempt=0, ended_at=self._clock.now()))
            return live

    def _claim(self, key: str, kind: Kind) -> f.CallAnswer:
        # K4: the position is taken before anything else happens.
        self._position = f.skip_markers(self._state, self._position + 1) if not self._abandoned else self._position + 1
        return self._answer(self._position, key, kind)

    def _answer(self, position: int, key: str, kind: Kind) -> f.CallAnswer:
        return f.decide_strict(
            self._state, position, key=key, kind=kind, response=self._response, abandoned=self._abandoned,
            pure=self.pure,
        )  # fmt: skip

    def _leave(self, parted: f.Parted) -> int:
        """Write the marker of a divergence and stop replaying (K15, K16); the position at which to go on."""
        self._abandoned = True
        lane = self._state.lane
        if parted.response is Response.BRANCH:
            lane = f"lane.{self._journal.run}"  # a run leaves a lane at most once
            self._state.forks[lane] = (self._state.lane, parted.position)
            self._state.lane = lane
        marker = self._entry(Kind.MARKER, f.BRANCH + parted.response, parted.position, None)
        kept = f.marker_payload(parted.response, parted.expected, parted.observed)
        self._append(replace(marker, ambient=kept, ended_at=self._clock.now()))
        self._position = parted.position + 1
        return self._position

    def _live(
        self, key: str, effect: Callable[[], Outcome], position: int, idempotency_key: str, crashed: Entry | None = None
    ) -> Outcome:
        try:
            self._within_cap(position)
            self._still_mine()  # K35
        except (LeaseError, StepCapError) as error:
            return _refused(error)
        running = self._entry(Kind.CALL, key, position, None)
        if crashed is not None:
            running = replace(running, attempt=crashed.attempt)
        running = replace(running, status=Status.RUNNING, payload=None, idempotency_key=idempotency_key)
        self._append(running)  # K8: before the effect starts
        outcome = effect()
        try:
            self._still_mine()
        except LeaseError as error:
            return _refused(error)  # O14: the result of a holder that lost its lease is not recorded
        self._append(self._ended(running, outcome))  # K9: before the result is released
        return outcome

    def _within_cap(self, position: int) -> None:
        if not self._most or position <= self._most:
            return
        self._end(f.FlowStatus.ABORTED)
        raise StepCapError(run=self._journal.run, count=self._most, cap=self._most)

    def _ended(self, running: Entry, outcome: Outcome) -> Entry:
        ended = replace(running, attempt=outcome["attempts"], ended_at=self._clock.now())
        if outcome["result"] == "ok":
            return replace(ended, status=Status.OK, payload=self._packed(outcome.get("payload")))
        error: Mapping[str, Any] = outcome["error"]
        code = str(error.get("code", "")).removeprefix("KEEL-")
        return replace(ended, status=Status.FAILED, error=Problem(str(error.get("class", "other")), code))

    def _recorded(self, entry: Entry) -> Outcome:
        """K11, K12: what is recorded, with the attempts that it took then (K23)."""
        out: Outcome = {"attempts": entry.attempt, "waits_ms": [], "from_cache": False, "throttled": False}
        out |= {"throttle_wait_ms": 0, "breaker": "closed", "replayed": True}
        if entry.status is Status.OK:
            return out | {"result": "ok", "payload": self._payload(entry)}
        kind = entry.error.type if entry.error is not None else "other"
        return out | {"result": "error", "error": {"code": "KEEL-E015", "class": kind, "message": "recorded"}}

    # ---- the end

    def complete(self) -> None:
        """The flow is done. Twice is harmless, and a completed flow stays completed (K28, K30)."""
        self._end(f.FlowStatus.COMPLETED)

    def fail(self) -> None:
        """The flow failed in order: it may be entered again (K25)."""
        self._end(f.FlowStatus.FAILED)

    def abort(self) -> None:
        """The flow gives itself up (Z14, Z16): only the first end counts."""
        self._end(f.FlowStatus.ABORTED)

    def _end(self, status: f.FlowStatus) -> None:
        with self._lock:
            if self._lease is None or self._status is not f.FlowStatus.RUNNING:
                return  # Z16: only the first transition out of running applies; pure replay changes nothing
            self._status = status
            try:
                self._still_mine()
                self._mark(f.STATUS, {"status": str(status)})
            except KeelError as error:
                self.warnings.append(str(error))  # K30: a failed status write only warns
            self._lease.release()  # O15

    # ---- entries

    def _still_mine(self) -> None:
        if self._lease is not None and (loss := self._lease.lost()) is not None:
            raise loss

    def _entry(self, kind: Kind, key: str, position: int, value: Any) -> Entry:
        journal = self._journal
        seq = journal.next_seq()
        return Entry(
            entry=entry_id(journal.run, seq), flow=self._identity.flow, run=journal.run, seq=seq, step="", kind=kind,
            status=Status.OK, lane=self._state.lane, occurrence=position, key=key, payload=self._packed(value),
            started_at=self._clock.now(), fence=self._lease.fence if self._lease else 0,
        )  # fmt: skip

    def _mark(self, key: str, ambient: Mapping[str, Any], *, attempt: int = 0) -> None:
        entry = self._entry(Kind.MARKER, key, 0, None)
        self._append(replace(entry, lane="", ambient=ambient, attempt=attempt, ended_at=self._clock.now()))

    def _append(self, entry: Entry) -> None:
        try:
            self._journal.append(entry)
        except KeelError as error:
            self.warnings.append(str(error))  # K42: warn and go on; the replay loses this, not its correctness

    def _packed(self, value: Any) -> Payload:
        raw = plain.envelope(value)
        if raw is None:
            raise TypeError(f"a strict flow records plain values, not {type(value).__qualname__}")  # O21
        return Payload(self._journal.blob(raw), (), (), len(raw))

    def _payload(self, entry: Entry) -> Any:
        return None if entry.payload is None else plain.opened(self._journal.read(entry.payload.head))

    def _divergence(self, position: int, expected: str, observed: str) -> DivergenceError:
        detail = f"flow {self._identity.entrypoint}, position {position}: recorded is {expected}, called was {observed}"
        return DivergenceError(step=observed, detail=detail, case="order")  # K14, O8: all four

    def begin(self, decision: f.Enter) -> None:
        """Write that the flow was entered: opened once, back to running, one more attempt (K2, K3, K21, K25)."""
        if self._state.status is None:
            about = self._identity
            self._mark(
                f.OPENED,
                {"entrypoint": about.entrypoint, "args_hash": about.args_hash, "key": about.key}
                | ({} if about.code_hash is None else {"code_hash": about.code_hash}),
            )
        elif decision.reopen:
            self._mark(f.STATUS, {"status": str(f.FlowStatus.RUNNING)})
        self._status = f.FlowStatus.RUNNING
        if (stamp := f.stamp(self._identity.version)) and stamp != self._state.version:
            self._mark(f.VERSION, {"version": stamp})
        self._mark(f.ATTEMPT, {}, attempt=decision.attempt)
        self._recoveries = decision.attempt - 1

    def die(self, attempts: int) -> None:
        """Mark the flow dead: its attempts are used up (K21)."""
        self._mark(f.STATUS, {"status": str(f.FlowStatus.DEAD), "attempts": attempts})

    def outlive(self, recorded: str, current: str) -> VersionError:
        """Mark the flow failed: it is of another version (O29). The error that names both."""
        error = VersionError(flow=self._identity.entrypoint, recorded=recorded, current=current)
        if f.may(self._status, f.FlowStatus.FAILED):
            self._mark(f.STATUS, {"status": str(f.FlowStatus.FAILED), "code": error.code})
        return error


def _refused(error: KeelError) -> Outcome:
    return {
        "result": "error", "attempts": 0, "waits_ms": [], "from_cache": False, "throttled": False,
        "error": {"code": f"KEEL-{error.code}", "class": "other", "message": str(error)},
    }  # fmt: skip


def enter(identity: Identity, *, journal: Journal, clock: Clock, lease: FlowLease, rules: Rules) -> StrictFlow:
    """Enter a strict flow, or replay a completed one.

    Raises LeaseError (E030) where another holder runs it, DeadError (E032) where its attempts are used up,
    VersionError (E034) where it is of another version.
    """
    state = f.flow_state(journal.records(identity.flow).entries)
    held: LeaseError | None = None
    if state.status not in {f.FlowStatus.COMPLETED, f.FlowStatus.DEAD}:
        try:
            lease.acquire()
            state = f.flow_state(journal.records(identity.flow).entries)  # what its last holder wrote is there now
        except LeaseError as error:
            held = error
    stamp = f.stamp(identity.version)
    decision = f.decide_entry(state, lease_free=held is None, max_attempts=rules.max_attempts, version=stamp)
    pure = isinstance(decision, f.PureReplay)
    flow = StrictFlow(
        journal=journal, clock=clock, lease=None if pure else lease, identity=identity, rules=rules, state=state
    )
    match decision:
        case f.PureReplay():
            lease.release()
            return flow
        case f.Enter():
            flow.begin(decision)
            return flow
        case f.NoEntry("E034"):
            outlived = flow.outlive(state.version, stamp)
            lease.release()
            raise outlived
        case f.NoEntry(_, dies):
            if dies:
                flow.die(state.attempts)
            if held is None:
                lease.release()
            raise held or DeadError(step=identity.entrypoint, deaths=state.attempts, memory="", case="flow")
        case _:
            assert_never(decision)
