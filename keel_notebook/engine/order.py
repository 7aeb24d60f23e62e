"""Strict and frozen notebooks: order, statuses, attempts and the lease of a whole flow (K14, K21-K28, K31; DESIGN 5).

*Strict*: the flow is entered once per kernel, under its lease, as one more attempt; its steps keep their order; a
completed one is only replayed. *Frozen*: a completed flow may not grow. The state machine is that of ``flowstate``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.core import decide as d
from keel_notebook.core import flowstate as f
from keel_notebook.core.lifecycle import known_step
from keel_notebook.core.model import Entry, FlowId, Kind, Status, entry_id
from keel_notebook.core.order import AT, NEW, recorded_order
from keel_notebook.core.ports import Clock, FlowRecords, Journal
from keel_notebook.engine.callparts import Held
from keel_notebook.errors import DeadError, DivergenceError, KeelError, NotNowError, StepCapError, VersionError


class FlowRules(Struct, frozen=True):
    """How the flow of a notebook is kept."""

    strict: bool = False
    frozen: bool = False
    max_attempts: int = 3
    """Of the whole flow: how many kernels may enter it before it is dead (K21)."""
    version: str = ""
    """The version of the application that it belongs to, of a person's own (O29)."""

    @property
    def any(self) -> bool:
        """Whether there is anything to keep."""
        return self.strict or self.frozen


_REOPENED = frozenset({f.FlowStatus.FAILED, f.FlowStatus.ABORTED})


class FlowKeeper:
    """Keeps the rules of one flow in one kernel."""

    def __init__(
        self,
        rules: FlowRules,
        *,
        journal: Journal,
        clock: Clock,
        say: Callable[[str], None],
        title: Callable[[], str],
    ) -> None:
        """``title``: what people call the flow, as far as that is known now."""
        self.rules = rules
        self.behind = False
        """Whether another kernel may have written since the step that was let in was looked at: look again."""
        self.last: Status | None = None
        """How the last step cell of this kernel ended."""
        self._journal = journal
        self._clock = clock
        self._say = say
        self._title = title
        self._flow: FlowId | None = None
        self._guard: Held | None = None
        self._pure = False
        self._order: dict[int, str] = {}
        self._here: dict[str, int] = {}
        self._abandoned = False
        self._met: set[str] = set()
        self._told = False

    def admit(  # noqa: PLR0913 - what is asked about a step, the last two by name
        self, step: str, records: FlowRecords, guard: Held | None, policy: d.Policy, *, told: bool, most: int = 0
    ) -> d.Policy:
        """Let a step in, and say how its differences are answered.

        ``told``: its line names a response of its own. ``most``: different steps that a run may have, 0 for as many
        as there are (Z26).

        Raises StepCapError (E061) above the cap, LeaseError (E030), DeadError (E032), DivergenceError (E031) where its
        order is not the recorded one, NotNowError (E006) where nobody tells which notebook runs, VersionError (E034)
        where the flow is of another version.
        """
        self.behind = False
        self._count(step, most)
        self._about_version()
        if not self.rules.any:
            return policy
        if self._flow != records.flow:
            self._enter(records, guard)
            records = self._journal.records(records.flow) if self.behind else records
        if self._pure and not self.rules.frozen and not known_step(records, step):
            self._begin(records, guard, f.flow_state(records.entries), grows=True)  # notebooks grow
        if self.rules.strict and not told:
            policy = replace(policy, on_divergence=d.Response.FAIL)
        if self.rules.strict:
            self._in_order(step, records.flow, policy.on_divergence)
        return replace(policy, mode=d.Mode.REPLAY, completed=True) if self._pure else policy

    def _count(self, step: str, most: int) -> None:
        if step in self._met:
            return
        if most and len(self._met) >= most:
            raise StepCapError(run=self._journal.run, count=len(self._met), cap=most)
        self._met.add(step)

    def _about_version(self) -> None:
        if self.rules.version and not self.rules.strict and not self._told:
            self._told = True
            self._say("Keel.app_version is asked in strict flows only: in others the content of each step decides")

    def _enter(self, records: FlowRecords, guard: Held | None) -> None:
        self._here, self._abandoned = {}, False
        state = self._as_recorded(records)
        if not self._pure:
            self._begin(records, guard, state, grows=False)

    def _as_recorded(self, records: FlowRecords) -> f.FlowState:
        state = f.flow_state(records.entries)
        self._flow, self._order = records.flow, recorded_order(records.entries)
        self._pure = state.status is f.FlowStatus.COMPLETED
        return state

    def _begin(self, records: FlowRecords, guard: Held | None, state: f.FlowState, *, grows: bool) -> None:
        self._pure = False
        if not self.rules.strict:
            self._mark(records.flow, f.STATUS, {"status": str(f.FlowStatus.RUNNING)})
            return
        if guard is None:
            raise NotNowError(
                where="a strict flow", detail="it needs a name: `%keel flow NAME --strict`", case="unnamed"
            )
        self._flow = None  # not entered, until all of this went well
        if state.status is not f.FlowStatus.DEAD and self._leased(guard):
            state = self._as_recorded(self._journal.records(records.flow))  # what its last holder wrote is there now
            if self._pure and not grows:
                self._let_go()  # it was completed meanwhile: K26
                return
            self._flow, self._pure = None, False
        if state.status is not f.FlowStatus.DEAD and f.another_version(state, f.stamp(self.rules.version)):
            raise self._outlived(records.flow, state)
        if state.status is f.FlowStatus.DEAD or state.attempts >= self.rules.max_attempts:
            if state.status is not f.FlowStatus.DEAD:
                self._mark(records.flow, f.STATUS, {"status": str(f.FlowStatus.DEAD), "attempts": state.attempts})
            self._let_go()
            raise DeadError(step=f"flow {self._title()}", deaths=state.attempts, memory="", case="flow")
        if state.status is None:
            self._mark(records.flow, f.OPENED, {})
        elif grows or state.status in _REOPENED:
            self._mark(records.flow, f.STATUS, {"status": str(f.FlowStatus.RUNNING)})  # K25
        if (stamp := f.stamp(self.rules.version)) and stamp != state.version:
            self._mark(records.flow, f.VERSION, {"version": stamp})
        self._mark(records.flow, f.ATTEMPT, {}, attempt=state.attempts + 1)
        self._flow = records.flow

    def _leased(self, guard: Held) -> bool:
        """Have the lease, which is asked before the cap (last table); whether another may have held it since."""
        if self._guard is None:
            self.behind = guard.take() or self.behind
            self._guard = guard
        return self.behind

    def _outlived(self, flow: FlowId, state: f.FlowState) -> VersionError:
        """O29: a flow of another version fails and gives its lease back; a completed one stays as it is (K28)."""
        error = VersionError(flow=self._title(), recorded=state.version, current=f.stamp(self.rules.version))
        if state.status is not None and f.may(state.status, f.FlowStatus.FAILED):
            self._mark(flow, f.STATUS, {"status": str(f.FlowStatus.FAILED), "code": error.code})
        self._let_go()
        return error

    def _in_order(self, step: str, flow: FlowId, response: d.Response) -> None:
        if step in self._here:
            return  # its cell runs again: it keeps its place
        position = len(self._here) + 1
        expected = None if self._abandoned else self._order.get(position)
        if expected not in (None, step):
            said = f"order: flow {self._title()}, position {position}: recorded is {expected}, called was {step}"
            if self._pure or response is d.Response.FAIL:
                raise DivergenceError(step=step, detail=said, case="order")  # K14, O8: all four
            self._say(f"{step}: {said}")
            self._abandoned = True  # K15
        self._here[step] = position
        if expected != step and not self._pure:
            marker = replace(self._marker(flow, AT, {}), step=step, occurrence=position)
            self._journal.append(marker)

    def afresh(self, flow: FlowId) -> None:
        """A person begins the flow anew: no order, no attempts, alive, and nothing of older runs is gone on with."""
        self._mark(flow, NEW, {})
        if self.rules.any:
            self._mark(flow, f.STATUS, {"status": str(f.FlowStatus.RUNNING)})
            self._mark(flow, f.ATTEMPT, {}, attempt=0)
            self._mark(flow, f.VERSION, {"version": f.stamp(self.rules.version)})
        self._let_go()
        self._flow = None

    def end(self) -> None:
        """The kernel ends in order: the flow is completed, or failed, as its last step cell was.

        After an interrupt it stays running (K30). A completed flow that was only replayed stays as it is (K28).
        """
        ends = {Status.OK: f.FlowStatus.COMPLETED, Status.FAILED: f.FlowStatus.FAILED}
        if self._flow is not None and not self._pure and self.last in ends:
            status = ends[self.last]
            try:
                self._mark(self._flow, f.STATUS, {"status": str(status)})
            except KeelError as error:
                self._say(f"the end of the flow is not recorded: {error}")
        self._let_go()

    def _let_go(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.give_back()

    def _mark(self, flow: FlowId, key: str, kept: Mapping[str, Any], *, attempt: int = 0) -> None:
        self._journal.append(replace(self._marker(flow, key, kept), attempt=attempt), synced=True)

    def _marker(self, flow: FlowId, key: str, kept: Mapping[str, Any]) -> Entry:
        journal, now = self._journal, self._clock.now()
        seq = journal.next_seq()
        return Entry(
            entry=entry_id(journal.run, seq), flow=flow, run=journal.run, seq=seq, step="", kind=Kind.MARKER,
            status=Status.OK, key=key, ambient=kept, started_at=now, ended_at=now, fence=journal.fence,
        )  # fmt: skip
