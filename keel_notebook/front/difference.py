"""Recorded beside current as a page (`%keel diff NAME`, `keel diff NAME`)."""

from __future__ import annotations

from collections.abc import Iterator

from keel_notebook.core.compare import Compared, DiffReport, Side
from keel_notebook.front.page import Block, Code, Column, Field, Line, Page, Table, Tone

_COLUMNS = (
    Column("input", limit=40),
    Column("recorded type"),
    Column("recorded", limit=80),
    Column("current type"),
    Column("current", limit=80),
    Column(""),
    Column("made by"),
)


class DiffTable(Page):
    """Code and inputs of a step, recorded beside current."""

    def __init__(self, report: DiffReport) -> None:
        super().__init__(tuple(_blocks(report)), report)


def _blocks(report: DiffReport) -> Iterator[Block]:
    recorded = report.recorded or "nothing before that"
    yield Line(f"{report.step}: recorded ({recorded}) | current ({report.current})", Tone.STRONG)
    if not report.recorded:
        yield Line("nothing to compare with: no record of it is older", Tone.QUIET)
    elif report.equal:
        yield Line("code and inputs are equal", Tone.QUIET)
    columns = (Column("differs"), Column("name", limit=40), Column("recorded"), Column("current"), Column("made by"))
    if report.differs:
        rows = [(d.part, d.name, d.recorded, d.current or d.detail, d.producer) for d in report.differs]
        yield Table(columns, tuple(tuple(map(Field, row)) for row in rows))
    if report.inputs:
        yield Table(_COLUMNS, tuple(map(_row, report.inputs)))
    if report.format_only:
        yield Line("the code is the same: only formatting, comments or the step line differ", Tone.QUIET)
    if report.diff:
        yield Code(report.diff, diff=True)


def _row(item: Compared) -> tuple[Field, ...]:
    verdict = {True: "equal", False: "differs", None: "not known"}[item.same]
    tone = Tone.PLAIN if item.same else Tone.WARN
    return (
        Field(item.name),
        *_fields(item.recorded),
        *_fields(item.current),
        Field(verdict, tone),
        Field(item.producer),
    )


def _fields(side: Side) -> tuple[Field, Field]:
    return Field(side.type), Field(side.preview)
