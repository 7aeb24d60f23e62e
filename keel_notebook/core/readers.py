"""Whether something below a step reads a name that its record could not hold (DESIGN 6, What cannot be stored).

Pure. A step whose record lacks a value executes again only if somebody reads that value: a cell that stood below it
when the record was made, or one that stands below it in the notebook now.
"""

from __future__ import annotations

from collections.abc import Sequence

from keel_notebook.core.decide import RESULT
from keel_notebook.core.model import Entry, EntryId, Kind
from keel_notebook.core.provenance import BY_ORIGIN, LEFT
from keel_notebook.core.reads import CellNames

_CELLS = frozenset({Kind.STEP, Kind.PLAIN, Kind.ADOPT})


def read_later(
    entries: Sequence[Entry], entry: Entry, known: dict[EntryId, frozenset[str]] | None = None
) -> frozenset[str]:
    """Of the names that ``entry`` could not store, those that a cell after it read, in any run.

    ``entries`` are those of the flow, in the order written. A cell that binds a name before it reads it does not
    have it among its inputs, so that ``with open(a) as f`` in every second cell needs nobody's ``f``. A step that
    read an object which ``entry`` changed replays without that change: only plain cells need it, and steps that will
    execute all the same. ``known`` are answers about other entries.
    """
    known = {} if known is None else known
    lost = {item.name for item in entry.not_stored}
    changed = replayed_without(entry)
    found: set[str] = set()
    asked: set[str] = set()
    bound: set[str] = set()
    run = entry.run
    for other in entries:
        if (other.run, other.seq) <= (entry.run, entry.seq):
            continue
        if other.run != run:
            run, bound = other.run, set()
        if other.step == entry.step:
            bound -= lost  # put back there: from here on a reader wants what the step left
            if other.kind is Kind.STEP:
                asked = set()  # it executed again since
            continue
        if other.kind not in _CELLS and not _refused(other):
            continue
        read = {item.name for item in other.inputs} & lost - bound
        if _refused(other):
            asked |= read
        else:
            replays = other.kind is not Kind.PLAIN and not (read & changed and _executes(entries, other, known))
            found |= read - changed if replays else read
        bound |= {item.name for item in other.writes}
    return frozenset(found | asked)


def replayed_without(entry: Entry) -> frozenset[str]:
    """Objects that a step changed and could not store, and that count by how they were made: a later step replays
    without the change. What counts by its content lacks the change, so that a later step would execute."""
    left = entry.ambient.get(LEFT, {})
    return frozenset(name for name, digest in left.items() if (digest or "").startswith(BY_ORIGIN))


def _executes(entries: Sequence[Entry], entry: Entry, known: dict[EntryId, frozenset[str]]) -> bool:
    """Whether a step executes in every run: it reads what cannot be compared, or lacks what is needed below it."""
    if any(item.digest is None for item in entry.inputs):
        return True
    if entry.entry not in known:
        known[entry.entry] = read_later(entries, entry, known) if entry.not_stored else frozenset()
    return bool(known[entry.entry] - {RESULT})


def _refused(entry: Entry) -> bool:
    """Whether a step was not run because something that it reads could not be stored."""
    return entry.kind is Kind.MARKER and entry.error is not None and entry.error.code == "E020"


def read_below(cells: Sequence[tuple[str, CellNames]], step: str, *, plain: bool = False) -> frozenset[str]:
    """Names that the cells below a step (of them only the ``plain`` ones) read and that no cell between binds.

    ``cells`` are (step name, names).
    """
    places = [at for at, (name, _) in enumerate(cells) if name == step]
    found: set[str] = set()
    bound: set[str] = set()
    for name, names in cells[places[-1] + 1 :] if places else ():
        found |= names.reads - bound if not (plain and name) else set()
        bound |= names.stores
    return frozenset(found)
