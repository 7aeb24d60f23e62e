"""Through which plain cells the values went that a record was compared with. Pure, from texts alone.

That a plain cell was recorded at some time says nothing of a record that is older than it: a prompt that was edited
and run since is known to the journal, and no step has read it yet. So each record goes with the cells that stood above
it when its step was executed or replayed, and the plan asks whether those of the notebook are the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct, field

from keel_notebook.core.done import DECISION, REPLAYED
from keel_notebook.core.entries import RECORDS
from keel_notebook.core.model import Entry, EntryId, Kind, Status
from keel_notebook.core.sources import Names, body, names_in

Cells = frozenset[str]
"""Texts of plain cells."""


class PlainCode(Struct):
    """Going down a notebook or a run: names, with the plain cells that their values went through."""

    through: dict[str, Cells] = field(default_factory=dict)
    functions: dict[str, frozenset[str]] = field(default_factory=dict)

    def ran(self, code: str, names: Names) -> None:
        """A plain cell ran."""
        self.functions.update(names.functions)
        open_ends, met = set(names.reads_now), set[str]()
        while open_ends:
            name = open_ends.pop()
            met.add(name)
            open_ends |= self.functions.get(name, frozenset()) - met
        cells = frozenset({code}).union(*(self.through.get(name, ()) for name in met))
        self.through.update(dict.fromkeys(names.binds, cells))

    def left(self, names: Iterable[str]) -> None:
        """A step left these names: its own record vouches for them."""
        for name in names:
            self.through.pop(name, None)


class Compared(Struct, frozen=True):
    """What the records of a flow were compared with."""

    by_record: Mapping[EntryId, Mapping[str, Collection[Cells]]] = field(default_factory=dict)
    """Record and name that it reads, to the cells behind it each time that the record was made or replayed."""
    since: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """When a plain cell ran first: its run and number."""

    def other(self, record: Entry, name: str, cells: Cells) -> Cells | None:
        """The cells behind a name of which the record knows nothing; None where it was made or replayed with these.

        Empty: the record was made with cells that are not there now.
        """
        seen = self.by_record.get(record.entry, {}).get(name, ())
        if not seen:  # nobody ran such a cell in that run: its value was restored, or came another way
            later = frozenset(cell for cell in cells if self.since.get(cell, (0, 0)) > (record.run, record.seq))
            return later or None
        if cells in seen:
            return None
        return cells - frozenset().union(*seen)


def compared(entries: Iterable[Entry]) -> Compared:
    """What each record of a flow was compared with, from all entries of the flow."""
    records: dict[EntryId, Entry] = {}
    found: dict[EntryId, dict[str, set[Cells]]] = {}
    since: dict[str, tuple[int, int]] = {}
    known: dict[str, Names] = {}
    run, now = 0, PlainCode()
    for entry in sorted(entries, key=lambda one: (one.run, one.seq)):
        if entry.run != run:
            run, now = entry.run, PlainCode()
        if entry.kind is Kind.PLAIN:
            code = body(entry.source)
            since.setdefault(code, (entry.run, entry.seq))
            if code not in known:
                known[code] = names_in(code)
            now.ran(code, known[code])
            continue
        record = None
        if entry.kind in RECORDS and entry.status is Status.OK:
            record = records[entry.entry] = entry
        elif entry.kind is Kind.MARKER and entry.key == DECISION and entry.ambient.get("decision") == REPLAYED:
            record = records.get(entry.ambient.get("entry", ""))
        if record is not None:
            seen = found.setdefault(record.entry, {})
            for read in record.inputs:
                if (cells := now.through.get(read.name)) is not None:
                    seen.setdefault(read.name, set()).add(cells)
            now.left([*(write.name for write in record.writes), *record.deleted])
    return Compared(found, since)
