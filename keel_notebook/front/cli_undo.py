"""``keel undo``: undoes what a notebook's steps did, in a kernel that only brings their records back (O26-O28)."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from keel_notebook.core.parameters import flow_key, named
from keel_notebook.core.plans import PlannedCell
from keel_notebook.front import cli_open, headless
from keel_notebook.front.cli_run import kernel_environ, notebook_of, parsed_with


class Asked(Struct, frozen=True):
    """The words of the command line."""

    notebook: str
    steps: Sequence[str]
    parameters: Sequence[tuple[str, Any]]
    key: str
    flow: str
    skip: Sequence[str] = ()
    """Steps of an undoing that was begun, which a person took back."""


class UndoReport(Struct, frozen=True):
    """What came of it."""

    notebook: str
    said: str
    """What `%keel undo` answered, or the error in one line."""
    well: bool

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {"notebook": self.notebook, "undone": self.well, "said": self.said}


def undo(asked: Asked, *, environ: Mapping[str, str] = os.environ) -> UndoReport:
    """Bring back what is recorded, and undo it.

    Raises SettingsError (E001), UnknownNameError (E002), JournalUnreachableError (E054).
    """
    path = notebook_of(asked.notebook)
    cli_open.existing(cli_open.place_of(str(path), environ).journal)
    values = named(asked.parameters)
    key = flow_key(values, asked.key or environ.get("KEEL_FLOW_KEY", ""))
    book, _ = parsed_with(path, values)
    with tempfile.TemporaryDirectory(prefix="keel-undo-") as scratch:
        order = headless.Order(
            book=book,
            output=Path(scratch) / path.name,
            cwd=path.parent,
            # In replay mode nothing goes forward: the pass ends at the first step that has no record (O28).
            environ=kernel_environ(environ, path, key=key, flow=asked.flow, mode="replay")
            | {"KEEL_ACROSS_RUNS": "replay"},
            last=" ".join(["%keel undo", *asked.steps, *(["--skip", *asked.skip] if asked.skip else [])]),
        )
        headless.carry_out(order, _Quiet(), monotonic=time.monotonic)  # noqa: TID251 - the command line's own clock
    return _report(path, book.cells[-1].outputs)


def _report(path: Path, outputs: Sequence[Mapping[str, Any]]) -> UndoReport:
    error = next((out for out in outputs if out["output_type"] == "error"), None)
    if error is not None:
        return UndoReport(str(path), f"{error['ename']}: {error['evalue']}", well=False)
    texts = ["".join(out["data"].get("text/plain", "")) for out in outputs if "data" in out]
    return UndoReport(str(path), "\n".join(texts) or "the kernel died while it undid", well=bool(texts))


class _Quiet:
    """Implements ``headless.Listener``: only the answer of the last cell counts."""

    def kernel(self, pid: int) -> None:
        """The kernel is there."""

    def begins(self, cell: PlannedCell) -> None:
        """A code cell is sent to the kernel."""

    def waits(self, elapsed_s: float) -> None:
        """The cell still runs."""

    def ended(self, seen: headless.CellSeen) -> None:
        """The cell has ended."""
