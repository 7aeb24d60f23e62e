"""What to call a step that has no name of its own: `cell 5 (model = fit(…)`, not the front end's id of the cell.

Pure. A step of auto mode, or of a bare `%%keel_step`, goes by the cell's id in the journal; people know cells by where
they stand and how they begin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from keel_notebook.core.entries import RECORDS
from keel_notebook.core.model import Entry, Kind
from keel_notebook.core.options import find_marker, parse_options
from keel_notebook.core.plans import PlannedCell
from keel_notebook.core.redact import redacted
from keel_notebook.core.sources import body
from keel_notebook.core.units import ELLIPSIS, one_line
from keel_notebook.errors import KeelError

MOST = 24
"""Characters of a cell's first line that are shown."""


def labels(entries: Iterable[Entry], cells: Sequence[PlannedCell] = ()) -> dict[str, str]:
    """For every step that has only a cell's id: where its cell stands in the notebook, and how it begins.

    Args:
        entries: those of the flow, in the order written.
        cells: the notebook's code cells as last saved; empty where nobody can read it.
    """
    records = [e for e in entries if e.kind in RECORDS and e.source]
    given = {e.step for e in records if e.kind is Kind.ADOPT}  # their cells had no mark yet: a person named them
    unnamed = {e.step: e.source for e in records if e.step not in given and not _own_name(e.source)}
    place = {cell.cell_id: cell for cell in cells if cell.cell_id}
    found = {}
    for step, source in unnamed.items():
        cell = place.get(step)
        where = f"cell {cell.index}" if cell else "a cell"
        begins = _begins(cell.source if cell else source)
        found[step] = f"{where} ({begins})" if begins else where
    return found


def _own_name(source: str) -> str:
    marker = find_marker(source)
    try:
        return parse_options(marker.line).name if marker is not None else ""
    except KeelError:
        return marker.line if marker is not None else ""


def _begins(source: str) -> str:
    lines = (line.strip() for line in body(source).splitlines())
    first = redacted(one_line(next((line for line in lines if line and not line.startswith("#")), "")))
    return first if len(first) <= MOST else first[: MOST - 1].rstrip() + ELLIPSIS


def step_at(place: str, known: Mapping[str, str]) -> str | None:
    """The step that people call `cell 5`, or 5; None where no step has only that."""
    number = place.removeprefix("cell ").strip()
    return next((step for step, label in known.items() if re.match(rf"cell {re.escape(number)}(?!\d)", label)), None)
