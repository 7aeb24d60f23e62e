"""The state of a strict flow, read from its entries, and the decisions about it (K1-K30, Z16, Z17, O5, O10; pure).

In a strict flow order is enforced: the record at a *position* must have the expected *key*. Positions count from 1;
0 is the marker that counts attempts. A divergence never rewrites what is recorded: ``warn`` puts a marker in its
place and goes on behind it, ``branch`` goes on in a lane of its own; what lay behind is no longer part of the story.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from keel_notebook.core.decide import Response
from keel_notebook.core.ids import text_digest
from keel_notebook.core.model import Entry, FlowId, Kind, Status

OPENED, STATUS, ATTEMPT, VERSION = "flow:open", "flow:status", "flow:attempt", "flow:version"
BRANCH = "flow:branch:"
"""Keys of the markers; the last is followed by the response."""
MOST_STEPS = 10_000
"""Steps of a run, and calls of a strict flow, that are too many to be meant (Z26); settable."""


class FlowStatus(StrEnum):
    """How far a strict flow came (K20; sleeping and compensating: O9; aborted: Z16)."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    DEAD = "dead"
    SLEEPING = "sleeping"
    COMPENSATING = "compensating"
    ABORTED = "aborted"


S = FlowStatus
TRANSITIONS: Mapping[FlowStatus, frozenset[FlowStatus]] = {
    S.RUNNING: frozenset({S.COMPLETED, S.FAILED, S.DEAD, S.SLEEPING, S.COMPENSATING, S.ABORTED}),
    S.SLEEPING: frozenset({S.RUNNING, S.DEAD}),
    S.COMPENSATING: frozenset({S.FAILED}),
    S.FAILED: frozenset({S.RUNNING, S.DEAD}),  # K25: back to running before it is leased again
    S.ABORTED: frozenset({S.RUNNING}),
    S.COMPLETED: frozenset({S.RUNNING}),  # Z17: only by growing; a frozen one stays (K28)
    S.DEAD: frozenset({S.RUNNING}),  # only by a person (K22)
}


def may(old: FlowStatus, new: FlowStatus) -> bool:
    """Whether a status may follow another. Staying is always allowed: completing twice is harmless (K30)."""
    return old is new or new in TRANSITIONS[old]


def strict_flow(entrypoint: str, args_hash: str, key: str = "") -> FlowId:
    """The id of a strict flow: a pure function of these three (K1). The code is no part of it (K2)."""
    return FlowId("s" + text_digest("strict", entrypoint, args_hash, key)[:24])


class FlowState(Struct):
    """A strict flow as its entries tell it."""

    status: FlowStatus | None = None
    """None: never entered."""
    attempts: int = 0
    code: str | None = None
    version: str = ""
    """The newest stamp; one of a person's own begins with ``app:`` (O29)."""
    lane: str = ""
    """The lane that is being written."""
    rows: dict[tuple[str, int], Entry] = field(default_factory=dict)
    """The newest entry at each (lane, position) that is still part of the story."""
    forks: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Each lane: the lane that it left, and at which position."""
    last: int = 0
    """The highest position of the lane that is being written."""

    @property
    def recoveries(self) -> int:
        """How often it was entered again: the first entry is none (K24)."""
        return max(0, self.attempts - 1)

    def at(self, position: int) -> Entry | None:
        """The record at a position as the lane sees it: its own, or before its fork that of the lane it left."""
        lane = self.lane
        while lane and position < self.forks[lane][1]:
            lane = self.forks[lane][0]
        return self.rows.get((lane, position))


def flow_state(entries: Iterable[Entry]) -> FlowState:
    """Read a flow's entries, oldest first."""
    state = FlowState()
    for entry in entries:
        if entry.kind is Kind.MARKER:
            _take_marker(state, entry)
        elif entry.kind in RECORDED:
            state.rows[entry.lane, entry.occurrence] = entry
            if entry.lane == state.lane:
                state.last = max(state.last, entry.occurrence)
    return state


RECORDED = frozenset({Kind.CALL, Kind.TIME, Kind.RANDOM, Kind.STEP, Kind.SLEEP, Kind.PROMISE, Kind.UNDO})


def _take_marker(state: FlowState, entry: Entry) -> None:
    if entry.key == OPENED:
        state.code = state.code if state.status is not None else entry.ambient.get("code_hash")
        state.status = state.status or FlowStatus.RUNNING
    elif entry.key == VERSION:
        state.version = entry.ambient["version"]
    elif entry.key == STATUS:
        state.status = FlowStatus(entry.ambient["status"])
    elif entry.key == ATTEMPT:
        state.attempts = entry.attempt
        state.rows["", 0] = entry
    elif entry.key.startswith(BRANCH):
        position = entry.occurrence
        if entry.lane != state.lane:
            state.forks[entry.lane] = (state.lane, position)
            state.lane = entry.lane
        for lane, at in list(state.rows):
            if lane == entry.lane and at > position:
                del state.rows[lane, at]  # K15: recorded before the divergence, never replayed after it
        state.rows[entry.lane, position] = entry
        state.last = position


# ---- entering


_OWN_VERSION = "app:"


def stamp(version: str) -> str:
    """What is kept of a version that a person tells; empty where none is told: it is opt-in (O29)."""
    return _OWN_VERSION + version if version else ""


def another_version(state: FlowState, stamped: str) -> bool:
    """Whether the flow is of another version of a person's own. Stamps without the prefix bind nobody."""
    return bool(stamped) and state.version.startswith(_OWN_VERSION) and state.version != stamped


class Enter(Struct, frozen=True):
    """Go in live, as this attempt of the flow (K21). ``reopen``: a failed flow is running again first (K25)."""

    attempt: int
    reopen: bool


class PureReplay(Struct, frozen=True):
    """Everything comes from the record: no lease, no attempt, no effect (K26)."""


class NoEntry(Struct, frozen=True):
    """Refused. ``dies``: this very entry finds the flow over its cap, and marks it dead."""

    code: str
    dies: bool = False


def decide_entry(
    state: FlowState, *, lease_free: bool, max_attempts: int, version: str = ""
) -> Enter | PureReplay | NoEntry:
    """Whether a strict flow may be entered. Pure, total.

    The lease is asked before the cap: else a contender could mark a flow dead that runs elsewhere (last table).
    ``version``: the stamp of this entry.
    """
    if state.status is FlowStatus.COMPLETED:
        return PureReplay()
    if state.status is FlowStatus.DEAD:
        return NoEntry("E032")  # K22
    if not lease_free:
        return NoEntry("E030")  # K31
    if another_version(state, version):
        return NoEntry("E034")  # O29
    if state.attempts >= max_attempts:
        return NoEntry("E032", dies=True)  # K21
    return Enter(state.attempts + 1, reopen=state.status in {FlowStatus.FAILED, FlowStatus.ABORTED})


# ---- one call


class Recorded(Struct, frozen=True):
    """The record answers: a result or a recorded error (K11, K12)."""

    entry: Entry


class Live(Struct, frozen=True):
    """Run it, at this position. ``crashed``: the record of an attempt that never ended (K10, K38)."""

    position: int
    crashed: Entry | None = None


class Parted(Struct, frozen=True):
    """Another key is recorded here (K5): nothing has run yet."""

    position: int
    response: Response
    expected: str
    observed: str


class Ungrown(Struct, frozen=True):
    """A completed flow has no record of this (K27)."""

    position: int
    observed: str


CallAnswer = Recorded | Live | Parted | Ungrown


def effective(response: Response, *, recorded_code: str | None, code: str | None) -> Response:
    """The response to a divergence: ``fail`` becomes ``warn`` where the code is known to have changed (K18)."""
    changed = recorded_code is not None and code is not None and recorded_code != code
    return Response.WARN if changed and response is Response.FAIL else response


def skip_markers(state: FlowState, position: int) -> int:
    """The position at which the next call is looked for: what diverged here before is behind its marker.

    So a flow that diverged once does not diverge for ever at the same place.
    """
    while (row := state.at(position)) is not None and row.kind is Kind.MARKER:
        position += 1
    return position


def decide_strict(  # noqa: PLR0913 - all by name, none with a default
    state: FlowState, position: int, *, key: str, kind: Kind, response: Response, abandoned: bool, pure: bool
) -> CallAnswer:
    """What the call with this key at this position comes to. Pure, total.

    Args:
        state: the flow's records as they were at entry.
        position: claimed at the very entry of the call (K4), markers skipped.
        key: ``target#args`` (K6), without the idempotency key (K7).
        kind: of the call; a clock read where a call is recorded is a divergence too (K19).
        response: what a divergence does here.
        abandoned: a divergence in this run has ended replay: everything is live (K15).
        pure: the flow is completed.
    """
    row = None if abandoned else state.at(position)
    if row is None:
        return Ungrown(position, key) if pure else Live(position)
    if row.key != key or row.kind is not kind:
        if pure:
            return Ungrown(position, key)
        return Parted(position, response, row.key, key)
    if row.status in {Status.RUNNING, Status.INTENT, Status.INTERRUPTED}:
        return Ungrown(position, key) if pure else Live(position, crashed=row)
    return Recorded(row)


def recorded_key(answer: CallAnswer) -> str | None:
    """The idempotency key that a crashed attempt left behind; None in every other case (K38, K39)."""
    if isinstance(answer, Live) and answer.crashed is not None:
        return answer.crashed.idempotency_key or None
    return None


def marker_payload(response: Response, expected: str, observed: str) -> dict[str, Any]:
    """What a divergence marker says (K17)."""
    return {"mode": str(response), "expected": expected, "observed": observed}
