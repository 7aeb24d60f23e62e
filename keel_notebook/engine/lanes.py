"""The lanes of one kernel's flow: which one is in use, when another begins, and what is written about it (K16, K17).

Never a divergence loop: a step that another lane holds as it is now makes that lane the one in use; a step that was
not recorded in this lane yet executes in it; only a change of what this very lane recorded begins a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from keel_notebook.core import decide as d
from keel_notebook.core import lifecycle
from keel_notebook.core.lanes import FORK, USE, Lane, Lanes, lanes_in
from keel_notebook.core.model import Entry, FlowId, Kind, Status, entry_id
from keel_notebook.core.ports import Clock, FlowRecords, Journal
from keel_notebook.core.why import hint
from keel_notebook.errors import UnknownNameError


class LaneKeeper:
    """Implements lanes for the steps of one kernel."""

    def __init__(self, journal: Journal, clock: Clock, say: Callable[[str], None]) -> None:
        self._journal = journal
        self._clock = clock
        self._say = say
        self._flow: FlowId | None = None
        self._lanes = Lanes()

    @property
    def current(self) -> str:
        """The lane in use, as it stands in entries."""
        return self._lanes.current

    def lanes(self, records: FlowRecords) -> Lanes:
        """All lanes of the flow. Read once for each flow, then kept up by what this kernel writes."""
        if self._flow != records.flow:
            self._flow, self._lanes = records.flow, lanes_in(records.entries)
        return self._lanes

    def seen(self, records: FlowRecords, lane: str | None = None) -> FlowRecords:
        """The records, those of the lane in use (or of ``lane``) as the newest ones."""
        lanes = self.lanes(records)
        return records if len(lanes.lanes) == 1 else replace(records, entries=lanes.ordered(records.entries, lane))

    def settled(
        self, facts: d.Facts, records: FlowRecords, decision: d.Decision, policy: d.Policy, now: float
    ) -> d.Decision:
        """A decision under ``--on-divergence branch``: a lane that holds the step as it is now is used."""
        found = decision if isinstance(decision, d.Replay) else None
        if isinstance(decision, d.Diverged):
            found = self._elsewhere(facts, records, policy, now)
        elif found is not None:
            mine = lifecycle.newest_ok(self.seen(records), facts.name)
            found = None if mine is found.entry else found
        if found is None:
            return decision
        if found.entry.lane != self.current:
            title = self.use(self._lanes.lanes[found.entry.lane].title, records).title
            self._say(f"{facts.name}: this is {title} again")
        return found

    def _elsewhere(self, facts: d.Facts, records: FlowRecords, policy: d.Policy, now: float) -> d.Replay | None:
        lanes = self.lanes(records)
        mark = lifecycle.fingerprint(facts.code, facts.inputs)
        for lane in reversed(tuple(lanes.lanes.values())):
            recorded = lifecycle.recorded(self.seen(records, lane.name), facts.name, mark)
            found = d.decide(facts, recorded, policy, now=now)
            if isinstance(found, d.Replay) and found.entry.lane == lane.name != lanes.current:
                return found
        return None

    def leave(self, step: str, why: str, entry: Entry, records: FlowRecords) -> str:
        """A step differs from ``entry``: begin a new lane, unless this lane has no record of the step yet.

        Gives the lane's name for people. Raises what the journal raises.
        """
        lanes = self.lanes(records)
        if entry.lane == lanes.current:
            name = lanes.next_name
            fork = replace(self._marker(records.flow, FORK, name), step=step, why=why, ambient={"from": lanes.current})
            self._journal.append(fork)
            lane = Lane(name, lanes.current, len(records.entries), step, why, fork.started_at)
            self._lanes = Lanes({**lanes.lanes, name: lane}, name)
        return self._lanes.lanes[self._lanes.current].title

    def use(self, title: str, records: FlowRecords) -> Lane:
        """Use another lane from now on (`%keel use LANE`). Raises UnknownNameError (E002) for one that is not there."""
        lanes = self.lanes(records)
        lane = lanes.find(title)
        if lane is None:
            known = [one.title for one in lanes.lanes.values()]
            raise UnknownNameError(what="lane", name=title, hint=hint(title, known))
        if lane.name != lanes.current:
            self._journal.append(self._marker(records.flow, USE, lane.name))
            self._lanes = Lanes(lanes.lanes, lane.name)
        return lane

    def _marker(self, flow: FlowId, key: str, lane: str) -> Entry:
        journal, now = self._journal, self._clock.now()
        seq = journal.next_seq()
        return Entry(
            entry=entry_id(journal.run, seq), flow=flow, run=journal.run, seq=seq, step="", kind=Kind.MARKER,
            status=Status.OK, lane=lane, key=key, started_at=now, ended_at=now,
        )  # fmt: skip


def steps_of(lane: str, entries: Sequence[Entry]) -> int:
    """How many steps a lane recorded by itself."""
    return len({e.step for e in entries if e.kind is Kind.STEP and e.lane == lane and e.status is Status.OK})
