"""Which cells have to run to bring back names that no record holds, and from which values (`%keel restore --run`).

Pure. A cell starts from the values that its names had when it ran: a record holds them, or the cell that made them has
to run as well, before it. And what no record holds is made as it was at first: every cell below that read it, where a
change of it shows in no record (a generator drawn on, a file read on, a lock taken), has to run as well, after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct, field

from keel_notebook.core.auto import AUTO, is_automatic
from keel_notebook.core.chain import held_names, is_unfinished
from keel_notebook.core.lifecycle import rejected
from keel_notebook.core.model import Effect, Entry, EntryId, Input, Kind, Status
from keel_notebook.core.provenance import BY_ORIGIN
from keel_notebook.core.redact import HIDDEN
from keel_notebook.core.restore import SUSPECTS, definitions_in, names_of
from keel_notebook.core.units import ran_as


class Rerun(Struct, frozen=True):
    """One cell to run."""

    entry: Entry
    """The newest run of it that the missing value came from."""
    start: Mapping[str, Entry] = field(default_factory=dict)
    """Names to put back before it runs, and the records that hold them as they were then."""

    @property
    def cell(self) -> str:
        """What to call it."""
        return f"step {self.entry.step}" if self.entry.step else ran_as(self.entry.occurrence)

    by_hand: str = ""
    """Why only a person may run it; empty where it can be run from here."""
    made: frozenset[str] = frozenset()
    """Names that it makes, or may change, and that no record holds as it left them."""


def to_run(entries: Sequence[Entry], cells: Iterable[Entry], lost: Iterable[str]) -> tuple[Rerun, ...]:
    """The cells that make the lost names, in the order in which they ran, with all that they need.

    ``entries`` are those of a flow, in the order written; ``cells`` are those of its newest run (``core.chain``). A
    name that nobody made needs no cell.
    """
    walk = _Walk(cells, rejected(entries))
    todo = [walk.newest(name, len(walk.cells)) for name in lost]
    found: dict[int, dict[str, Entry]] = {}
    made: dict[int, set[str]] = {}
    while todo:
        at = todo.pop()
        if at is None or at in found:
            continue
        start, made[at] = found.setdefault(at, {}), set(walk.lost_in(at))
        for read in walk.cells[at].inputs:
            before = walk.newest(read.name, at)
            if before is None or walk.defines(before, read.name):
                continue
            if walk.holds(before, read.name):
                start[read.name] = walk.cells[before]
                continue
            todo.append(before)
            if _may_change(walk.cells[at], read):
                made[at].add(read.name)
        todo += [after for name in made[at] for after in walk.changing(name, at)]
    calling = {entry.step for entry in entries if entry.kind in _DURABLE}
    return tuple(
        Rerun(walk.cells[at], found[at], _by_hand(walk.cells[at], calling), frozenset(made[at])) for at in sorted(found)
    )


_DURABLE = frozenset({Kind.CALL, Kind.SLEEP, Kind.PROMISE, Kind.UNDO, Kind.LOOP, Kind.TIME, Kind.RANDOM})


_ENDED = {Status.FAILED: "failed", Status.INTERRUPTED: "was interrupted"}


def _by_hand(cell: Entry, calling: Collection[str]) -> str:
    """What runs here runs under no step's name: no effect that must happen once, and no durable call, may be in it."""
    if is_unfinished(cell):
        return _ENDED.get(cell.status, "did not end")
    if cell.effect is not Effect.IDEMPOTENT:
        return "has an effect that must not happen twice"
    unnamed = f"{(cell.code or '?')[:12]}#"
    if (cell.step or cell.key) in calling or any(step.startswith(unnamed) for step in calling):
        return "makes durable calls"
    return "holds a secret, and its text was not kept whole" if HIDDEN in cell.source else ""


class _Walk:
    """The cells of a run as they ran, and which of them touched a name."""

    def __init__(self, cells: Iterable[Entry], gone: Collection[EntryId]) -> None:
        self.cells = list(cells)
        self._touched: dict[str, list[int]] = {}
        self._used: dict[str, list[int]] = {}
        """Where a name was read in a way that may have changed it, seen by nobody."""
        self._gone = gone
        for at, cell in enumerate(self.cells):
            for name in _touches(cell):
                self._touched.setdefault(name, []).append(at)
            for read in cell.inputs:
                if _may_change(cell, read):
                    self._used.setdefault(read.name, []).append(at)

    def newest(self, name: str, before: int) -> int | None:
        """The last cell before this place that bound or changed a name."""
        return next((at for at in reversed(self._touched.get(name, ())) if at < before), None)

    def holds(self, at: int, name: str) -> bool:
        """Whether a cell's record holds the name."""
        cell = self.cells[at]
        counts = cell.payload is not None and cell.entry not in self._gone
        return counts and name in held_names(cell)

    def lost_in(self, at: int) -> Iterable[str]:
        """The names that a cell made or changed and that its record does not hold, definitions apart."""
        return (n for n in _touches(self.cells[at]) if not self.holds(at, n) and not self.defines(at, n))

    def changing(self, name: str, after: int) -> Iterable[int]:
        """The cells below this place that may have changed a name, up to the one that bound it anew."""
        bound = (at for at in self._touched.get(name, ()) if at > after and name not in _read(self.cells[at]))
        end = next(bound, len(self.cells))
        return (at for at in self._used.get(name, ()) if after < at < end)

    def defines(self, at: int, name: str) -> bool:
        """Whether a plain cell makes the name by an import or a definition, which restoring carries out anyway."""
        cell = self.cells[at]
        if cell.kind is not Kind.PLAIN or is_automatic(cell):
            return False
        return any(name in names_of(source) for source in definitions_in(cell.source))


def _touches(entry: Entry) -> set[str]:
    named = {item.name for item in entry.writes} | {item.name for item in entry.not_stored}
    return named | set(entry.ambient.get(SUSPECTS, ()))


def _read(entry: Entry) -> set[str]:
    return {item.name for item in entry.inputs}


def _may_change(cell: Entry, read: Input) -> bool:
    """Whether a cell may have changed what it read without a record that says so: no digest vouches for the value.

    Of auto mode's quick cells the size of a large value is known, and a change of it is listed with what they left.
    """
    if is_automatic(cell):
        return str(cell.ambient.get(AUTO, {}).get(read.name, "")).endswith(" ")
    # A digest of where it is from is another one once the step that made it has executed; that of a plain cell is not.
    return read.digest is None or (read.digest.startswith(BY_ORIGIN) and read.producer.startswith("step "))
