"""The notebook's file as it was last saved."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from keel_notebook.core.cellcode import parse_cell
from keel_notebook.core.fileholds import PLAIN
from keel_notebook.core.readers import read_below
from keel_notebook.core.reads import CellNames, analyse
from keel_notebook.core.redact import redacted

if TYPE_CHECKING:
    from keel_notebook.core.plans import PlannedCell


class NotebookFile:
    """The notebook's file as it was last saved, where somebody tells which one it is."""

    def __init__(self, path: Path | None, transform: Callable[[str], str]) -> None:
        self._path = path
        self._transform = transform

    def cells(self) -> tuple[PlannedCell, ...]:
        """The code cells from the top; none where nobody can read them."""
        from keel_notebook.core.plans import notebook_cells  # noqa: PLC0415 many a kernel never asks

        try:
            return notebook_cells(json.loads(self._path.read_text("utf-8"))) if self._path is not None else ()
        except (OSError, ValueError, AttributeError, TypeError):
            return ()  # not there, or no notebook: then only what was recorded counts

    def read_below(self, step: str, plain: bool = False) -> frozenset[str]:
        """Names that the cells below a step read, or the plain ones among them."""
        cells = [
            (cell.step or (step if cell.cell_id == step else ""), names_of(cell.source, self._transform))
            for cell in self.cells()
        ]
        return read_below(cells, step, plain=plain)

    def between(self, step: str, end: str) -> list[tuple[str, str]]:
        """The cells below a step up to another one, that included: step (empty for a plain cell) and text.
        ``end`` may be what stands for a plain cell."""
        cells = [(cell.step, cell.source) for cell in self.cells()]
        names = [name or PLAIN + redacted(source) for name, source in cells]
        if step not in names or end not in names:
            return []
        return cells[names.index(step) + 1 : names.index(end) + 1]

    def has(self, cell: str) -> bool:
        """Whether a step of this name or a cell of this id stands in the file; True where nobody knows."""
        cells = self.cells()
        return not cells or not cell or any(cell in (one.step, one.cell_id) for one in cells)

    def named(self, step: str) -> int:
        """How many cells carry the name of a step."""
        return sum(cell.step == step for cell in self.cells())

    def source_of(self, step: str) -> str | None:
        """The cell of a step, without what looks like a credential (C103)."""
        return next((redacted(cell.source) for cell in self.cells() if cell.step == step), None)


def names_of(source: str, transform: Callable[[str], str]) -> CellNames:
    """The names of a cell's text; none where it does not parse."""
    try:
        return analyse(parse_cell(transform(source), transform=transform))
    except SyntaxError:
        return CellNames()
