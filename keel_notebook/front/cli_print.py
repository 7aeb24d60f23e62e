"""How the command line prints: JSON for programs, colour for a terminal, aligned plain text for everything else."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from keel_notebook.core.units import one_line
from keel_notebook.errors import KeelError
from keel_notebook.front.page import Block, Code, Line, Page, Table, Tone, clipped, diff_tone

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_STYLES = {
    Tone.PLAIN: "",
    Tone.GOOD: "green",
    Tone.WARN: "yellow",
    Tone.BAD: "red",
    Tone.QUIET: "dim",
    Tone.STRONG: "bold",
}


def prepare_streams() -> None:
    """Never fail to print: what a terminal's encoding does not have is shown as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def put_json(value: Any, *, lines: bool = True) -> None:
    """One JSON value, indented over ``lines`` or on one. Text beyond ASCII is escaped: it reads the same everywhere."""
    click.echo(json.dumps(value, indent=2 if lines else None, default=str))


def put_page(page: Page, *, as_json: bool) -> None:
    """A page in the form that suits who reads it."""
    if as_json:
        put_json(page.to_dict())
    elif sys.stdout.isatty():
        _put_rich(page.blocks)
    else:
        click.echo(str(page))


def put_error(error: KeelError, *, as_json: bool) -> None:
    """An error: its three lines on stderr, or ``{"error": …}`` on stdout for a program."""
    if as_json:
        put_json({"error": error.to_dict()})
    else:
        click.echo("\n".join(map(one_line, error.report().split("\n"))), err=True)


def _put_rich(blocks: Sequence[Block]) -> None:
    from rich.console import Console  # noqa: PLC0415 - 50 ms that only a terminal is worth

    console = Console(highlight=False, markup=False, emoji=False)
    for block in blocks:
        _put_block(console, block)


def _put_block(console: Console, block: Block) -> None:
    match block:
        case Line(text, tone):
            console.print(one_line(text), style=_STYLES[tone], soft_wrap=True)
        case Code(lines, diff):
            for line in lines:
                console.print(f"  {one_line(line)}", style=_STYLES[diff_tone(line)] if diff else "", soft_wrap=True)
        case Table():
            console.print(_rich_table(block.shown()))


def _rich_table(table: Table) -> RenderableType:
    from rich import box  # noqa: PLC0415 - see _put_rich
    from rich.table import Table as RichTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    last = len(table.columns) - 1
    for at, column in enumerate(table.columns):
        # Only the last column gives way to a narrow terminal: names and states are read whole.
        shown.add_column(column.name, justify="right" if column.right else "left", no_wrap=at != last, overflow="fold")
    for row in table.rows:
        pairs = zip(row, table.columns, strict=True)
        shown.add_row(*(Text(clipped(field.text, column), _STYLES[field.tone]) for field, column in pairs))
    return shown
