"""Reads a cell written as a person writes it, magics included."""

from __future__ import annotations

from IPython.core.inputtransformer2 import TransformerManager

from keel_notebook.core.cellcode import ParsedCell, parse_cell
from keel_notebook.core.reads import CellNames, analyse

ipython_syntax = TransformerManager().transform_cell


def parsed(cell: str) -> ParsedCell:
    return parse_cell(ipython_syntax(cell), transform=ipython_syntax)


def names_of(cell: str) -> CellNames:
    return analyse(parsed(cell))
