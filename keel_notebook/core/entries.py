"""The entries of a flow with what every step asks of them, so that a step costs the same whatever came before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from keel_notebook.core.done import DECISION, REFUSED, REPLAYED
from keel_notebook.core.model import Digest, Entry, Kind, Status
from keel_notebook.core.order import NEW
from keel_notebook.core.ports import FlowRecords

RECORDS: Final = frozenset({Kind.STEP, Kind.ACCEPT, Kind.ADOPT})
"""Kinds of entries that can hold what a step left."""
_SAYS: Final = RECORDS | {Kind.RETIRE, Kind.AUDIT}


class Entries(tuple[Entry, ...]):
    """The entries of a flow as they stand, oldest first. A tuple, and never changed; ``looked_up`` belongs to it."""

    looked_up: Index


class Row:
    """Some of a flow's entries, oldest first. Never changed: one more stands behind them in the same list, unseen."""

    __slots__ = ("_count", "_entries")

    def __init__(self, entries: list[Entry], count: int) -> None:
        self._entries, self._count = entries, count

    def __iter__(self) -> Iterator[Entry]:
        return islice(self._entries, self._count)

    def __reversed__(self) -> Iterator[Entry]:
        return map(self._entries.__getitem__, range(self._count - 1, -1, -1))

    def and_then(self, entry: Entry) -> Row:
        """These and one more: ten thousand of one step are not copied ten thousand times."""
        entries = self._entries if len(self._entries) == self._count else list(self)
        entries.append(entry)
        return Row(entries, self._count + 1)

    def without(self, old: Entry) -> Row:
        """These but one."""
        kept = [entry for entry in self if entry is not old]
        return Row(kept, len(kept))


class Index:
    """What is asked of entries without a walk through all of them."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.of_step: dict[str, Row] = {}
        """By step, oldest first, what says something about its records: attempts, retirements, audits."""
        self.came_back: dict[str, Row] = {}
        """By step, oldest first: records that were made, and notes that one of them was put back."""
        self.of_code: dict[Digest, Row] = {}
        """By code, oldest first: records that were made."""
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
            _append(self.of_step, entry.step, entry)
        if is_made(entry) or is_replay(entry):
            _append(self.came_back, entry.step, entry)
        if entry.code is not None and is_made(entry):
            _append(self.of_code, entry.code, entry)
        at = entry.started_at if entry.ended_at is None else entry.ended_at
        self.last_seen[entry.run] = max(self.last_seen.get(entry.run, at), at)
        if _is_cell(entry) and ((last := self.last_cell.get(entry.run)) is None or last.seq <= entry.seq):
            self.last_cell[entry.run] = entry
        if entry.kind is Kind.MARKER and entry.key == NEW:
            self.afresh |= {entry.run}

    def supersede(self, old: Entry, new: Entry) -> None:
        """Take in an entry under the id of an older one."""
        if old.kind in _SAYS:
            self.of_step[old.step] = self.of_step[old.step].without(old)
        if is_made(old) or is_replay(old):
            self.came_back[old.step] = self.came_back[old.step].without(old)
        if old.code is not None and is_made(old):
            self.of_code[old.code] = self.of_code[old.code].without(old)
        self.add(new)

    def copy(self) -> Index:
        """The index as it stands."""
        made = Index()
        made.of_step, made.came_back, made.of_code = {**self.of_step}, {**self.came_back}, {**self.of_code}
        made.last_seen, made.last_cell = {**self.last_seen}, {**self.last_cell}
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


def came_back(records: FlowRecords, step: str) -> Iterable[Entry]:
    """Of one step, newest first: records that were made, and notes that one of them was put back."""
    entries = records.entries
    if isinstance(entries, Entries):
        return reversed(entries.looked_up.came_back.get(step, ()))
    return (entry for entry in reversed(entries) if entry.step == step and (is_made(entry) or is_replay(entry)))


def is_made(entry: Entry) -> bool:
    """Whether an entry is a record that was made."""
    return entry.kind in RECORDS and entry.status is Status.OK


def is_replay(entry: Entry) -> bool:
    """Whether an entry notes that a record was put back."""
    return entry.kind is Kind.MARKER and entry.key == DECISION and entry.ambient.get("decision") == REPLAYED


def _append(rows: dict[Any, Row], key: Any, entry: Entry) -> None:
    row = rows.get(key)
    rows[key] = Row([entry], 1) if row is None else row.and_then(entry)


def stopped_short(index: Index, run: int) -> bool:
    """Whether the last cell of a run failed, was interrupted or was refused."""
    last = index.last_cell.get(run)
    return last is not None and (last.status is not Status.OK or last.kind is Kind.MARKER)


def _is_cell(entry: Entry) -> bool:
    if entry.kind is Kind.MARKER:
        return entry.key == DECISION and entry.ambient.get("decision") == REFUSED
    return entry.kind in RECORDS or entry.kind is Kind.PLAIN
