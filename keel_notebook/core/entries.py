"""The entries of a flow with what every step asks of them, so that a step costs the same whatever came before it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from keel_notebook.core.done import DECISION, REFUSED
from keel_notebook.core.model import Entry, Kind, Status
from keel_notebook.core.order import NEW
from keel_notebook.core.ports import FlowRecords

RECORDS: Final = frozenset({Kind.STEP, Kind.ACCEPT, Kind.ADOPT})
"""Kinds of entries that can hold what a step left."""
_SAYS: Final = RECORDS | {Kind.RETIRE, Kind.AUDIT}


class Entries(tuple[Entry, ...]):
    """The entries of a flow as they stand, oldest first. A tuple, and never changed; ``looked_up`` belongs to it."""

    looked_up: Index


class Index:
    """What is asked of entries without a walk through all of them."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.of_step: dict[str, tuple[Entry, ...]] = {}
        """By step, oldest first, what says something about its records: attempts, retirements, audits."""
        self.last_seen: dict[int, float] = {}
        """By run, the wall time of its last entry."""
        self.last_cell: dict[int, Entry] = {}
        """By run, the entry of the cell that it ran last."""
        self.afresh: frozenset[int] = frozenset()
        """The runs that a person began afresh."""
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Take in an entry that is newer than all others."""
        if entry.kind in _SAYS:
            self.of_step[entry.step] = (*self.of_step.get(entry.step, ()), entry)
        at = entry.started_at if entry.ended_at is None else entry.ended_at
        self.last_seen[entry.run] = max(self.last_seen.get(entry.run, at), at)
        if _is_cell(entry) and ((last := self.last_cell.get(entry.run)) is None or last.seq <= entry.seq):
            self.last_cell[entry.run] = entry
        if entry.kind is Kind.MARKER and entry.key == NEW:
            self.afresh |= {entry.run}

    def supersede(self, old: Entry, new: Entry) -> None:
        """Take in an entry under the id of an older one."""
        if old.kind in _SAYS:
            self.of_step[old.step] = tuple(entry for entry in self.of_step[old.step] if entry is not old)
        self.add(new)

    def copy(self) -> Index:
        """The index as it stands."""
        made = Index()
        made.of_step, made.last_seen, made.last_cell = {**self.of_step}, {**self.last_seen}, {**self.last_cell}
        made.afresh = self.afresh
        return made


def indexed(entries: Iterable[Entry], index: Index) -> Entries:
    """Entries with the index that was kept of them."""
    made = Entries(entries)
    made.looked_up = index.copy()
    return made


def index_of(records: FlowRecords) -> Index:
    """The index of a flow's entries: kept, or made anew where they were filtered or put in another order."""
    entries = records.entries
    return entries.looked_up if isinstance(entries, Entries) else Index(entries)


def about(records: FlowRecords, step: str) -> Iterable[Entry]:
    """What says something about the records of one step, oldest first."""
    entries = records.entries
    if isinstance(entries, Entries):
        return entries.looked_up.of_step.get(step, ())
    return [entry for entry in entries if entry.step == step and entry.kind in _SAYS]


def stopped_short(index: Index, run: int) -> bool:
    """Whether the last cell of a run failed, was interrupted or was refused."""
    last = index.last_cell.get(run)
    return last is not None and (last.status is not Status.OK or last.kind is Kind.MARKER)


def _is_cell(entry: Entry) -> bool:
    if entry.kind is Kind.MARKER:
        return entry.key == DECISION and entry.ambient.get("decision") == REFUSED
    return entry.kind in RECORDS or entry.kind is Kind.PLAIN
