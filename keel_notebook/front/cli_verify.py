"""``keel verify``: a notebook executed in a scratch kernel, beside its records (docs/headless.md).

The kernel tells what it found after every cell, so that a kernel that dies takes nothing of it along.
"""

from __future__ import annotations

import ast
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from keel_notebook.core.parameters import flow_key, named
from keel_notebook.core.plans import PlannedCell, notebook_cells
from keel_notebook.front import cli_open, headless
from keel_notebook.front.cli_run import kernel_environ, notebook_of, parsed_with, seconds
from keel_notebook.front.headless import CellSeen
from keel_notebook.front.verified import VerifyReport, must_be_steps

_ASK = "__import__('keel_notebook.front.outside', fromlist=['told']).told()"


class Asked(Struct, frozen=True):
    """The words of the command line."""

    notebook: str
    steps: Sequence[str]
    """Empty: all of them."""
    parameters: Sequence[tuple[str, Any]]
    key: str
    flow: str
    timeout: str


def verify(asked: Asked, *, environ: Mapping[str, str] = os.environ) -> VerifyReport:
    """Execute a notebook, or only the named steps of it, and compare. Nothing is recorded.

    Raises SettingsError (E001), UnknownNameError (E002), JournalUnreachableError (E054).
    """
    path = notebook_of(asked.notebook)
    cli_open.existing(cli_open.place_of(str(path), environ).journal)
    values = named(asked.parameters)
    key = flow_key(values, asked.key or environ.get("KEEL_FLOW_KEY", ""))
    book, _ = parsed_with(path, values)
    must_be_steps(asked.steps, notebook_cells(book))
    told = kernel_environ(environ, path, key=key, flow=asked.flow, mode="verify")
    told["KEEL_VERIFY"] = " ".join(asked.steps)
    began = time.monotonic()  # noqa: TID251 - the command line's own clock
    with tempfile.TemporaryDirectory(prefix="keel-verify-") as scratch:
        order = headless.Order(
            book=book,
            output=Path(scratch) / path.name,
            cwd=path.parent,
            environ=told,
            timeout_s=seconds(asked.timeout),
            ask=_ASK,
        )
        listener = _Heard(notebook_cells(book))
        ended = headless.carry_out(order, listener, monotonic=time.monotonic)  # noqa: TID251 - as above
    took = time.monotonic() - began  # noqa: TID251 - as above
    return VerifyReport(str(path), str(ended), tuple(listener.steps), took)


class _Heard:
    """Implements ``headless.Listener``: keeps what the kernel last told about its steps."""

    def __init__(self, cells: Sequence[PlannedCell]) -> None:
        self.steps: list[Mapping[str, Any]] = []
        self._of = len(cells)

    def kernel(self, pid: int) -> None:
        """The kernel is there."""

    def begins(self, cell: PlannedCell) -> None:
        """A code cell is sent to the kernel."""

    def waits(self, elapsed_s: float) -> None:
        """The cell still runs."""

    def ended(self, seen: CellSeen) -> None:
        """The cell has ended."""
        if seen.answer:
            self.steps = json.loads(ast.literal_eval(seen.answer))
        if seen.status != "ok":
            error = f" {seen.error}" if seen.error else ""
            cell = seen.cell.step or "a plain cell"
            click.echo(f"[{seen.cell.index}/{self._of}] {cell} {seen.status.upper()}{error}", err=True)
