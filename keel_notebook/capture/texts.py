"""The texts that were executed in a kernel, and the place in them that a function or class comes from.

A function's code knows its file name, line and columns; IPython keeps the text of every cell under its file name.
"""

from __future__ import annotations

import ast
import linecache
import os
import types
from collections.abc import Iterable, Iterator
from functools import lru_cache
from textwrap import dedent
from typing import Any

from msgspec import Struct

from keel_notebook.core.cellcode import Magic, ParsedCell, Transform, parse_cell
from keel_notebook.core.fingerprint import definition_digest
from keel_notebook.core.model import Digest
from keel_notebook.core.reads import DefinedNames, analyse

_TIMED = frozenset({"<timed exec>", "<timed eval>"})
"""The file names under which ``%time`` compiles, whatever the cell."""


class Place(Struct, frozen=True):
    """A ``def``, ``lambda`` or ``class`` in a text."""

    text: ParsedCell
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
    qualname: str
    first_line: int
    """The line of the first decorator, as in ``co_firstlineno``."""

    @property
    def is_class(self) -> bool:
        """Whether it is a ``class``."""
        return isinstance(self.node, ast.ClassDef)

    @property
    def code(self) -> Digest:
        """The digest of the definition, decorators included."""
        return definition_digest(self.node)

    @property
    def names(self) -> DefinedNames:
        """What its code reads when it runs."""
        return analyse(self.text).defined[self.node.lineno, self.node.col_offset]

    @property
    def source(self) -> str:
        """The text of the definition alone."""
        if isinstance(self.node, ast.Lambda):
            return ast.get_source_segment(self.text.source, self.node) or ""
        lines = self.text.source.splitlines(keepends=True)
        return dedent("".join(lines[self.first_line - 1 : self.node.end_lineno]))


class ExecutedTexts:
    """What a shell has compiled."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._transform: Transform = shell.transform_cell

    def place_of(self, code: types.CodeType) -> Place | None:
        """Where a function's code stands; None where nobody can tell for sure."""
        filename = code.co_filename
        if filename in _TIMED:
            return next((place for text in self.timed() if (place := _verified(text, code, self._flags))), None)
        text = self.parsed("".join(linecache.getlines(filename)))
        if text is None:
            return None
        entry = linecache.cache.get(filename)
        is_cell = entry is not None and len(entry) == 4 and entry[1] is None
        if is_cell and "IPYKERNEL_CELL_NAME" not in os.environ:
            return _matching(places(text), code)
        return _verified(text, code, self._flags)  # a script may have been edited since %run ran it

    def cells(self) -> Iterator[ParsedCell]:
        """All cells that were compiled and are Python, the one that ran last first."""
        counts: dict[str, int] = dict(self._shell.compile._filename_map)
        for filename in sorted(counts, key=counts.__getitem__, reverse=True):
            entry = linecache.cache.get(filename)
            if entry is not None and len(entry) == 4 and (text := self.parsed("".join(entry[2]))) is not None:
                yield text

    def timed(self) -> Iterator[ParsedCell]:
        """The code inside ``%time`` and its like in all cells."""
        for cell in self.cells():
            yield from self.inside(cell)

    def inside(self, cell: ParsedCell) -> Iterator[ParsedCell]:
        """The code that the magics of a cell run."""
        if "_magic(" in cell.source:
            for node in ast.walk(cell.tree):
                if isinstance(node, Magic) and node.body and (text := self.parsed(node.source)) is not None:
                    yield text

    def parsed(self, source: str) -> ParsedCell | None:
        """A text as the shell compiles it, parsed; None where it is empty or not Python."""
        try:
            return parse_cell(source, transform=self._transform) if source else None
        except (SyntaxError, ValueError, RecursionError):
            return None

    @property
    def _flags(self) -> int:
        return int(self._shell.compile.flags)


@lru_cache(maxsize=512)
def places(text: ParsedCell) -> tuple[Place, ...]:
    """All definitions of a text, outer ones first; not those inside magics, which are texts of their own."""
    return tuple(_places(text, text.tree, ""))


def _places(text: ParsedCell, parent: ast.AST, prefix: str) -> Iterator[Place]:
    for node in ast.iter_child_nodes(parent):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                qualname = prefix + node.name
                yield Place(text, node, qualname, first)
                yield from _places(text, node, qualname + ("." if isinstance(node, ast.ClassDef) else ".<locals>."))
            case ast.Lambda():
                yield Place(text, node, prefix + "<lambda>", node.lineno)
                yield from _places(text, node, prefix + "<lambda>.<locals>.")
            case Magic():
                pass
            case _:
                yield from _places(text, node, prefix)


def _matching(candidates: Iterable[Place], code: types.CodeType) -> Place | None:
    named = [
        place
        for place in candidates
        if place.first_line == code.co_firstlineno and place.qualname.rpartition(".")[2] == code.co_name
    ]
    if len(named) < 2:
        return named[0] if named else None
    # Several lambdas of one line: the smallest one around every column that the byte code names.
    spots = [spot for spot in map(_span_of_code, code.co_positions()) if spot is not None]
    if not spots:
        return _constant(named, code)
    around = [place for place in named if all(_within(spot, _span(place)) for spot in spots)]
    return min(around, key=lambda place: _size(_span(place)), default=None)


def _constant(candidates: list[Place], code: types.CodeType) -> Place | None:
    """``lambda: 1`` says nothing of its columns in Python 3.12; what it returns and is called with tells as much."""
    fitting = []
    for place in candidates:
        node = place.node
        if isinstance(node, ast.Lambda) and isinstance(node.body, ast.Constant):
            value, returned = node.body.value, code.co_consts[-1]
            names = tuple(arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg))
            if type(value) is type(returned) and value == returned and set(names) == set(code.co_varnames):
                fitting.append(place)
    return fitting[0] if len({place.code for place in fitting}) == 1 else None


def _verified(text: ParsedCell, code: types.CodeType, flags: int) -> Place | None:
    """The place of the code if compiling the text gives that very code."""
    place = _matching(places(text), code)
    if place is None or code not in set(_compiled(text, flags)):
        return None
    return place


@lru_cache(maxsize=64)
def _compiled(text: ParsedCell, flags: int) -> tuple[types.CodeType, ...]:
    try:
        whole = compile(text.source, "<text>", "exec", flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError):
        return ()
    found, todo = [], [whole]
    while todo:
        code = todo.pop()
        found.append(code)
        todo += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return tuple(found)


Span = tuple[tuple[int, int], tuple[int, int]]
"""From (line, column) to (line, column)."""


def _span(place: Place) -> Span:
    node = place.node.body if isinstance(place.node, ast.Lambda) else place.node
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)


def _span_of_code(position: tuple[int | None, int | None, int | None, int | None]) -> Span | None:
    line, end_line, column, end_column = position
    if line is None or end_line is None or column is None or not end_column:
        return None  # instructions that stand for nothing in the text
    return (line, column), (end_line, end_column)


def _within(inner: Span, outer: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _size(span: Span) -> tuple[int, int]:
    (line, column), (end_line, end_column) = span
    return end_line - line, end_column - column
