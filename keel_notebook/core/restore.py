"""What a notebook's names held when its newest run ended, and where each value is (DESIGN 5, Restore).

Pure. The entries of a flow are walked in the order written: a step binds what its record holds, a replay binds it
again, a plain cell takes its names out of the record's hands. What remains is what can come back without running a
cell; everything else is named with the cell to run.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from keel_notebook.core.auto import is_automatic
from keel_notebook.core.done import DECISION, REPLAYED
from keel_notebook.core.dotted import PATCHED
from keel_notebook.core.lifecycle import RECORDS, rejected
from keel_notebook.core.model import Entry, EntryId, Kind, Status
from keel_notebook.core.redact import HIDDEN

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
    definitions: tuple[tuple[str, str], ...] = ()
    """(cell, source) of imports, functions and classes of plain cells, in order: statements of these kinds only."""
    lost: tuple[Lost, ...] = ()
    recorded: Mapping[str, Entry] = field(default_factory=dict)
    """Every name that a record holds, the newest one of each, whatever plain cells did since."""
    settings: tuple[Entry, ...] = ()
    """The newest record of each cell, in the order written: together they left the state that has no name."""


def holdings(entries: Sequence[Entry]) -> Holdings:
    """What can be put back of a flow's newest run (a dead run inherits what it had not reached)."""
    by_id = {entry.entry: entry for entry in entries}
    held: dict[str, Entry] = {}
    plain: dict[str, Entry] = {}
    touched: dict[str, Entry] = {}
    recorded: dict[str, Entry] = {}
    settings: dict[tuple[str, str], Entry] = {}
    gone = rejected(entries)
    for entry in entries:
        record = record_of(entry, by_id)
        if record is not None:
            _bind(record, held, plain, touched, holds=record.payload is not None and record.entry not in gone)
            settings.pop(cell := (record.step, record.key), None)
            if record.entry in gone:
                continue
            settings[cell] = record
            if record.payload is not None:
                recorded |= dict.fromkeys(_held(record), record)
        elif entry.kind is Kind.PLAIN and entry.status is Status.OK:
            _plain(entry, held, plain, touched)
    order = sorted({e.entry: e for e in held.values()}.values(), key=lambda e: (e.run, e.seq))
    lost = tuple(_lost(held, plain, touched, gone))
    return Holdings(held, tuple(order), tuple(_definitions(plain)), lost, recorded, tuple(settings.values()))


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
    return record.payload is not None and all(name in held and name in there for name in _held(record))


def record_of(entry: Entry, by_id: Mapping[EntryId, Entry]) -> Entry | None:
    """The record that an entry made or put back; None where it is about something else."""
    if (entry.kind in RECORDS and entry.status is Status.OK) or is_automatic(entry):
        return entry
    if entry.kind is Kind.MARKER and entry.key == DECISION and entry.ambient.get("decision") == REPLAYED:
        return by_id.get(entry.ambient.get("entry", ""))
    return None


def _held(record: Entry) -> set[str]:
    """The names whose values a record holds: of a class that was changed, its attributes."""
    return {item.name for item in record.writes} - set(record.ambient.get(PATCHED, ()))


def _bind(
    record: Entry, held: dict[str, Entry], plain: dict[str, Entry], touched: dict[str, Entry], *, holds: bool
) -> None:
    """Take in what a step bound. ``holds``: its record is there and counts (not that of ``--always``, not rejected)."""
    wrote, lost = {item.name for item in record.writes}, {item.name for item in record.not_stored}
    patched = set(record.ambient.get(PATCHED, ()))  # the class is the one that was there; its attributes are new
    for name in (wrote | lost | set(record.deleted)) - patched:
        for place in (held, plain, touched):
            place.pop(name, None)
    if not holds:
        lost |= wrote
        wrote = set()
    held |= dict.fromkeys(wrote & _held(record), record)
    touched |= dict.fromkeys(lost, record)


def _plain(entry: Entry, held: dict[str, Entry], plain: dict[str, Entry], touched: dict[str, Entry]) -> None:
    for item in entry.writes:
        held.pop(item.name, None)
        touched.pop(item.name, None)
        plain[item.name] = entry
    for name in entry.ambient.get(SUSPECTS, ()):
        if held.pop(name, None) is not None:
            touched[name] = entry
    for name in entry.deleted:
        for place in (held, plain, touched):
            place.pop(name, None)


def _lost(
    held: Mapping[str, Entry], plain: Mapping[str, Entry], touched: Mapping[str, Entry], gone: Mapping[EntryId, str]
) -> Iterator[Lost]:
    for name, entry in sorted({**plain, **touched}.items()):
        if name in held:
            continue
        if entry.kind is Kind.PLAIN:
            if name not in {defined for _, source in _definitions({name: entry}) for defined in names_of(source)}:
                yield Lost(name, ": ".join(filter(None, (f"run cell {entry.occurrence}", _reason(entry, name)))))
        else:
            why = gone.get(entry.entry, "") or _reason(entry, name) or "a resource is never stored"
            yield Lost(name, f"run step {entry.step}: {why}")


def _reason(entry: Entry, name: str) -> str:
    return next((item.reason for item in entry.not_stored if item.name == name), "")


def _definitions(plain: Mapping[str, Entry]) -> Iterator[tuple[str, str]]:
    cells = sorted({e.entry: e for e in plain.values()}.values(), key=lambda e: (e.run, e.seq))
    for entry in cells:
        for source in definitions_in(entry.source):
            if any(name in plain and plain[name] is entry for name in names_of(source)) or names_of(source) == ("*",):
                yield f"cell {entry.occurrence}", source


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


def asked_for(holding: Holdings, names: Iterable[str], namespace: Iterable[str]) -> tuple[str, ...]:
    """The names to put back: those asked for by name, changed since or not, else all that the notebook lacks now."""
    wanted = tuple(names)
    if wanted:
        return tuple(name for name in wanted if name in holding.recorded)
    there = set(namespace)
    return tuple(name for name in holding.held if name not in there)
