"""A page for people: lines, tables and code, as plain text and as HTML. Knows nothing of steps.

Everything on a page is foreign text until proven otherwise: names and previews come from notebooks and journals that
others may have written. Text is made one line (no control characters, nothing that turns the writing around) and, in
HTML, escaped; no markup, script, style or address of theirs reaches the page, and a page fetches nothing.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from enum import StrEnum
from typing import Any, Protocol, Self

from msgspec import Struct

from keel_notebook.core.units import middle, one_line


class Tone(StrEnum):
    """What a cell or line means: colour for those who see it; the word itself always says it too."""

    PLAIN = "plain"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    QUIET = "quiet"
    STRONG = "strong"


class Line(Struct, frozen=True):
    """One line of text."""

    text: str
    tone: Tone = Tone.PLAIN


class Code(Struct, frozen=True):
    """Lines shown as they are, in a fixed-width face; a diff is coloured by its first characters."""

    lines: tuple[str, ...]
    diff: bool = False


class Column(Struct, frozen=True):
    """A column of a table. Text longer than ``limit`` is cut in the middle and whole in the HTML title."""

    name: str
    right: bool = False
    limit: int = 60


class Field(Struct, frozen=True):
    """One field of a table."""

    text: str
    tone: Tone = Tone.PLAIN
    title: str = ""
    """The long form, shown when one points at it; by default the whole text where it was cut."""


class Table(Struct, frozen=True):
    """Columns and rows of equal length. Columns that are empty in every row are not shown."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Field, ...], ...]

    def shown(self) -> Table:
        """The table without its empty columns."""
        keep = [i for i in range(len(self.columns)) if any(row[i].text for row in self.rows)]
        return Table(tuple(self.columns[i] for i in keep), tuple(tuple(row[i] for i in keep) for row in self.rows))


Block = Line | Code | Table


class Report(Protocol):
    """What stands behind a page."""

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""


class Page:
    """Blocks below each other: ``str()`` is text, ``_repr_html_`` is HTML, ``to_dict()`` the report behind it."""

    def __init__(self, blocks: Sequence[Block], report: Report) -> None:
        self.blocks = tuple(blocks)
        self.report = report

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return self.report.to_dict()

    def relabelled(self, known: Mapping[str, str]) -> Self:
        """The same page; steps that have only a cell's id go by what people call them. The report keeps the ids."""
        say, page = relabelled(known), copy(self)
        page.blocks = tuple(_relabelled(block, say) for block in self.blocks)
        return page

    def below(self, line: Line) -> Self:
        """The same page with a line on top."""
        page = copy(self)
        page.blocks = (line, *self.blocks)
        return page

    def __str__(self) -> str:
        return "\n".join(as_text(self.blocks))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.blocks)


def relabelled(known: Mapping[str, str]) -> Callable[[str], str]:
    """Puts the labels in the place of the ids wherever those stand by themselves in a text."""
    if not known:
        return lambda text: text
    words = "|".join(re.escape(step) for step in sorted(known, key=len, reverse=True))
    found = re.compile(rf"(?<![\w-])(?:{words})(?![\w-])")
    return lambda text: found.sub(lambda one: known[one[0]], text)


def _relabelled(block: Block, say: Callable[[str], str]) -> Block:
    match block:
        case Line(text, tone):
            return Line(say(text), tone)
        case Table(columns, rows):
            return Table(columns, tuple(tuple(_field(field, say) for field in row) for row in rows))
        case _:
            return block  # code is shown as it is


def _field(field: Field, say: Callable[[str], str]) -> Field:
    said = say(field.text)
    return field if said == field.text else Field(said, field.tone, field.title or field.text)


def as_text(blocks: Sequence[Block]) -> Iterator[str]:
    """The lines of a page as aligned plain text: no colour codes, no trailing blanks."""
    for block in blocks:
        match block:
            case Line(text):
                yield one_line(text)
            case Code(lines):
                yield from (f"  {one_line(line)}".rstrip() for line in lines)
            case Table():
                yield from _text_table(block.shown())


def _text_table(table: Table) -> Iterator[str]:
    grid = [[Field(column.name) for column in table.columns], *table.rows]
    texts = [[clipped(field.text, column) for field, column in zip(row, table.columns, strict=True)] for row in grid]
    widths = [max(map(width, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        fields = (_padded(*item) for item in zip(row, widths, table.columns, strict=True))
        yield "  ".join(fields).rstrip()


def clipped(text: str, column: Column) -> str:
    """A field's text as it is shown: one line, not longer than its column allows."""
    return middle(one_line(text), column.limit)


def _padded(text: str, room: int, column: Column) -> str:
    blank = " " * (room - width(text))
    return blank + text if column.right else text + blank


def width(text: str) -> int:
    """Columns that a text takes in a terminal: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_width_of(char) for char in text)


def _width_of(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


# Half-transparent grounds and inherited text: readable on the light and on the dark side of every theme.
_TONES = {
    Tone.PLAIN: "",
    Tone.GOOD: "background:rgba(46,160,67,.16)",
    Tone.WARN: "background:rgba(210,153,34,.22)",
    Tone.BAD: "background:rgba(218,54,51,.22)",
    Tone.QUIET: "opacity:.75",
    Tone.STRONG: "font-weight:600",
}
_RULE = "1px solid rgba(128,128,128,.35)"
_MONO = "font-family:var(--jp-code-font-family,ui-monospace,monospace)"


def as_html(blocks: Sequence[Block]) -> str:
    """The page as one HTML element. Only the texts of ``blocks`` are in it, escaped."""
    return f'<div class="keel-page" style="color:inherit">{"".join(map(_html_block, blocks))}</div>'


def _html_block(block: Block) -> str:
    match block:
        case Line(text, tone):
            return f'<div style="{_style(tone, "margin:2px 0")}">{escaped(text)}</div>'
        case Code(lines, diff):
            return (
                f'<pre style="{_MONO};margin:4px 0;white-space:pre-wrap;color:inherit">{_html_code(lines, diff)}</pre>'
            )
        case Table():
            return _html_table(block.shown())


def _html_code(lines: Sequence[str], diff: bool) -> str:
    tones: Callable[[str], Tone] = diff_tone if diff else lambda _: Tone.PLAIN
    return "\n".join(f'<span style="{_TONES[tones(line)]}">{escaped(line)}</span>' for line in lines)


def diff_tone(line: str) -> Tone:
    """What a line of a unified diff means."""
    if line.startswith(("+++", "---", "@@")):
        return Tone.QUIET
    return {"+": Tone.GOOD, "-": Tone.BAD}.get(line[:1], Tone.PLAIN)


def _html_table(table: Table) -> str:
    head = "".join(_html_field("th", Field(column.name, Tone.STRONG), column) for column in table.columns)
    rows = "".join(f"<tr>{_html_row(row, table.columns)}</tr>" for row in table.rows)
    style = "border-collapse:collapse;color:inherit;background:transparent;margin:4px 0"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _html_row(row: Sequence[Field], columns: Sequence[Column]) -> str:
    return "".join(_html_field("td", field, column) for field, column in zip(row, columns, strict=True))


def _html_field(tag: str, field: Field, column: Column) -> str:
    text = clipped(field.text, column)
    title = field.title or (field.text if text != one_line(field.text) else "")
    tip = f' title="{escaped(title)}"' if title else ""
    scope = ' scope="col"' if tag == "th" else ""
    align = "right" if column.right else "left"
    style = _style(field.tone, f"text-align:{align};padding:2px 10px;border-bottom:{_RULE};vertical-align:top")
    return f'<{tag}{scope}{tip} style="{style}">{escaped(text)}</{tag}>'


def _style(tone: Tone, more: str) -> str:
    return f"{more};{_TONES[tone]}" if _TONES[tone] else more


def escaped(text: str) -> str:
    """Foreign text inside an element or an attribute."""
    return html.escape(one_line(text), quote=True)
