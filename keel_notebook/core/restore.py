"""What a notebook's names held when its newest run ended, and where each value is (DESIGN 5, Restore).

Pure. The cells of the run are walked in order: a step binds what its record holds, a plain cell takes its names out of
the record's hands. What remains is what can come back without running a cell; everything else is named with the cell to
run.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from keel_notebook.core.auto import is_automatic
from keel_notebook.core.chain import held_names, is_unfinished, record_of
from keel_notebook.core.dotted import PATCHED
from keel_notebook.core.entries import RECORDS
from keel_notebook.core.lifecycle import rejected
from keel_notebook.core.model import Entry, EntryId, Kind, Status
from keel_notebook.core.redact import HIDDEN
from keel_notebook.core.units import ran_as

SUSPECTS = "suspects"
"""The ``ambient`` key under which a plain cell's entry keeps names that it may have changed in place."""


class Lost(Struct, frozen=True):
    """A name that cannot be put back, and why."""

    name: str
    reason: str


class Holdings(Struct, frozen=True):
    """Where the values of the newest run are."""

    held: Mapping[str, Entry] = field(default_factory=dict)
    """Names whose last cell was recorded, with the entry that holds the value."""
    order: tuple[Entry, ...] = ()
    """Those entries, in the order in which they were bound."""
    definitions: tuple[tuple[Entry, str], ...] = ()
    """Imports, functions and classes of plain cells, in order: the cell, and the text of one such statement."""
    lost: tuple[Lost, ...] = ()
    recorded: Mapping[str, Entry] = field(default_factory=dict)
    """Every name that a record holds, the newest one of each, whatever plain cells did since."""
    settings: tuple[Entry, ...] = ()
    """The newest record of each cell, in the order written: together they left the state that has no name."""


def holdings(entries: Sequence[Entry], cells: Iterable[Entry]) -> Holdings:
    """What can be put back. ``entries`` are all of a flow, in the order written; ``cells`` are those of its newest run
    (``core.chain``)."""
    by_id = {entry.entry: entry for entry in entries}
    gone = rejected(entries)
    recorded: dict[str, Entry] = {}
    for entry in entries:
        record = record_of(entry, by_id)
        if record is not None and record.payload is not None and record.entry not in gone:
            recorded |= dict.fromkeys(held_names(record), record)
    names, settings, place = _Names(gone), dict[tuple[str, str], Entry](), dict[EntryId, int]()
    for at, cell in enumerate(cells):
        place[cell.entry] = at  # a record that was replayed is older than what was executed above it
        if is_unfinished(cell):
            names.unfinished(cell)
        elif cell.kind is Kind.PLAIN and not is_automatic(cell):
            names.plainly(cell)
        else:
            names.bind(cell)
            settings.pop(which := (cell.step, cell.key), None)
            if cell.entry not in gone:
                settings[which] = cell
    recorded |= {name: entry for name, entry in names.held.items() if is_unfinished(entry)}
    order = sorted({e.entry: e for e in names.held.values()}.values(), key=lambda e: place[e.entry])
    names.plain = dict(sorted(names.plain.items(), key=lambda item: place[item[1].entry]))
    found = tuple(_definitions(names.plain))
    return Holdings(names.held, tuple(order), found, tuple(names.lost()), recorded, tuple(settings.values()))


def steps_back(found: Holdings, there: Container[str]) -> dict[str, EntryId]:
    """Steps whose newest record is in memory again, with that record.

    Args:
        found: what the newest run held.
        there: names that are in memory with the value that is held for them.

    A step is back where every name that its record left has that value, or a later record's; one whose name a plain
    cell changed since is not: that cell has to run first. A step that left no name is back with the whole session.
    """
    newest = {record.step: record for record in found.settings if record.kind in RECORDS}
    return {step: record.entry for step, record in newest.items() if _is_back(record, found.held, there)}


def _is_back(record: Entry, held: Container[str], there: Container[str]) -> bool:
    return record.payload is not None and all(name in held and name in there for name in held_names(record))


class _Names:
    """The names of a notebook as its cells go by."""

    def __init__(self, gone: Mapping[EntryId, str]) -> None:
        self.held: dict[str, Entry] = {}
        self.plain: dict[str, Entry] = {}
        self._touched: dict[str, Entry] = {}
        """Names that no record holds as they are, with the cell that left them so."""
        self._made: dict[str, Entry] = {}
        """Definitions that another plain cell changed, with the cell that they are from."""
        self._unfinished: dict[str, Entry] = {}
        self._gone = gone

    def bind(self, record: Entry) -> None:
        """Take in what a step bound: what its record holds, where it is there and counts (not that of ``--always``)."""
        self._unfinished.pop(record.step, None)
        wrote, lost = {item.name for item in record.writes}, {item.name for item in record.not_stored}
        patched = set(record.ambient.get(PATCHED, ()))  # the class is the one that was there; its attributes are new
        self._forget((wrote | lost | set(record.deleted)) - patched)
        if record.payload is None or record.entry in self._gone:
            lost |= wrote
            wrote = set()
        self.held |= dict.fromkeys(wrote & held_names(record), record)
        self._touched |= dict.fromkeys(lost, record)

    def plainly(self, entry: Entry) -> None:
        """Take in what a plain cell did."""
        wrote = {item.name for item in entry.writes}
        self._forget(wrote | set(entry.deleted))
        self.plain |= dict.fromkeys(wrote, entry)
        changed = [name for name in entry.ambient.get(SUSPECTS, ()) if name in self.held or name in self.plain]
        self._made |= {name: self.plain[name] for name in changed if name in self.plain}
        self._forget(set(changed) - wrote)
        self._touched |= dict.fromkeys(set(changed) - wrote, entry)

    def unfinished(self, attempt: Entry) -> None:
        """Take in an attempt that did not end well: only what it bound and had not read is held, where it was small."""
        left = {item.name for item in attempt.writes}
        self._forget(left | set(attempt.deleted))
        if attempt.payload is not None:
            held = held_names(attempt)
            self.held |= dict.fromkeys(held, attempt)
            left -= held
        defined = {name for source in definitions_in(attempt.source) for name in names_of(source)}
        self.plain |= dict.fromkeys(left & defined, attempt)
        self._touched |= dict.fromkeys(left - defined, attempt)
        self._unfinished[attempt.step] = attempt

    def lost(self) -> Iterator[Lost]:
        """What cannot come back."""
        defined = {name for _, source in _definitions(self.plain) for name in names_of(source)}
        for name, entry in sorted({**self.plain, **self._touched}.items()):
            if name not in self.held and name not in defined:
                yield Lost(name, self._why(name, entry))
        for step, attempt in self._unfinished.items():
            if not any(entry is attempt for entry in self._touched.values()):
                yield Lost(f"step {step}", _ended(attempt))

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            for place in (self.held, self.plain, self._touched):
                place.pop(name, None)

    def _why(self, name: str, entry: Entry) -> str:
        reason = next((item.reason for item in entry.not_stored if item.name == name), "")
        if entry.kind is Kind.PLAIN:
            first = f"run {ran_as(made.occurrence)}, then " if (made := self._made.get(name)) else "run "
            return ": ".join(filter(None, (first + ran_as(entry.occurrence), reason)))
        if is_unfinished(entry):
            return f"run step {entry.step}: {_ended(entry)}"
        reason = self._gone.get(entry.entry, "") or reason or "a resource is never stored"
        return f"run step {entry.step}: {reason}"


def called(cell: Entry) -> str:
    """What to call a cell."""
    return f"step {cell.step}" if cell.step else ran_as(cell.occurrence)


def _ended(attempt: Entry) -> str:
    match attempt.status:
        case Status.FAILED:
            return "it failed"
        case Status.INTERRUPTED:
            return "it was interrupted"
        case _:
            return "its kernel went away while it ran"


def _definitions(plain: Mapping[str, Entry]) -> Iterator[tuple[Entry, str]]:
    for entry in {e.entry: e for e in plain.values()}.values():
        for source in definitions_in(entry.source):
            if any(name in plain and plain[name] is entry for name in names_of(source)) or names_of(source) == ("*",):
                yield entry, source


def definitions_in(source: str) -> list[str]:
    """The import, function and class statements at the top level of a cell's text, each as text.

    None where the cell does not parse as Python, and none of those whose text was not kept whole.
    """
    try:
        tree = ast.parse(_python_lines(source))
    except SyntaxError:
        return []
    wanted = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = (ast.unparse(node) for node in tree.body if isinstance(node, wanted))
    return [text for text in found if HIDDEN not in text]


def _python_lines(source: str) -> str:
    lines = source.splitlines()
    return "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in lines)


def names_of(source: str) -> tuple[str, ...]:
    """The names that one statement of ``definitions_in`` binds."""
    node = ast.parse(source).body[0]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return tuple((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    return (node.name,)


def lacking(source: str, there: Container[str]) -> str:
    """What of one statement of ``definitions_in`` defines names that are not there; "" where all of them are.

    What a person ran since is newer than the record: nothing that is there is defined again (a second class of one
    name would make strangers of its instances).
    """
    node = ast.parse(source).body[0]
    if isinstance(node, ast.Import | ast.ImportFrom):
        node.names = [alias for alias in node.names if (alias.asname or alias.name).partition(".")[0] not in there]
        return ast.unparse(node) if node.names else ""
    return "" if all(name in there for name in names_of(source)) else source


def asked_for(holding: Holdings, names: Iterable[str], namespace: Iterable[str]) -> tuple[str, ...]:
    """The names to put back: those asked for by name, changed since or not, else all that the notebook lacks now."""
    wanted = tuple(names)
    if wanted:
        return tuple(name for name in wanted if name in holding.recorded)
    there = set(namespace)
    return tuple(name for name in holding.held if name not in there)
