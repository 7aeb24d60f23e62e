"""The answer of the journal to a SELECT, as a table (``keel sql``, ``%keel sql``). DuckDB runs in a child process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from keel_notebook.core.units import count
from keel_notebook.front.page import Block, Column, Field, Line, Page, Table, Tone
from keel_notebook.journal.spawn import query

MOST_ROWS = 200
"""Rows that a table shows. JSON has all of them."""


class SqlReport(Struct, frozen=True):
    """Columns and rows of an answer."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values; rows are lists, because two columns may have one name."""
        return {"columns": list(self.columns), "rows": [list(row) for row in self.rows]}


class SqlTable(Page):
    """An answer as a table."""

    def __init__(self, report: SqlReport) -> None:
        super().__init__(tuple(_blocks(report)), report)


def answer(journal: Path, select: str) -> SqlTable:
    """The journal's answer to one SELECT. Raises QueryError (E007), JournalUnreachableError (E054)."""
    columns, rows = query(journal, select)
    return SqlTable(SqlReport(tuple(columns), tuple(rows)))


def _blocks(report: SqlReport) -> Iterator[Block]:
    shown = report.rows[:MOST_ROWS]
    numbers = [all(isinstance(row[at], (int, float)) for row in shown) for at in range(len(report.columns))]
    columns = tuple(Column(name, right=right) for name, right in zip(report.columns, numbers, strict=True))
    if shown:
        yield Table(columns, tuple(tuple(Field(_text(value)) for value in row) for row in shown))
    left_out = len(report.rows) - len(shown)
    tail = f", the first {MOST_ROWS} are shown" if left_out else ""
    yield Line(f"{count(len(report.rows), 'row')}{tail}", Tone.QUIET)


def _text(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case float():
            return f"{value:.6g}"
        case _:
            return str(value)
