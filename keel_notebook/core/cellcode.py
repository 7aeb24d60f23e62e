"""A cell as code: its syntax tree, and the same tree with the magics opened (DESIGN 4.2, traps 5)."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from msgspec import Struct

from keel_notebook.core.magictext import Magic, Transform, unveil

__all__ = ["Magic", "ParsedCell", "Transform", "parse_cell"]


class ParsedCell(Struct, frozen=True):
    """A cell after IPython's transformation, read as Python.

    ``tree`` is the *analysis tree*: what is compiled, but with every magic carrying the code that it hides.
    ``quiet`` says that the cell ends in a semicolon, which keeps the last value from being shown.
    """

    source: str
    tree: ast.Module
    quiet: bool = False


@lru_cache(maxsize=512)
def parse_cell(transformed: str, *, transform: Transform) -> ParsedCell:
    """The parsed cell, remembered by its text.

    Args:
        transformed: the cell's text as IPython compiles it (``shell.transform_cell(raw)``).
        transform: that same function, for the Python inside ``%time``, ``%%capture`` and the like.

    Raises:
        SyntaxError: where the text is not Python; IPython will say so to the user itself.
    """
    tree = ast.parse(transformed)
    quiet = _ends_quietly(transformed, tree)
    if "get_ipython" in transformed or "run_line_magic" in transformed or "run_cell_magic" in transformed:
        tree = unveil(tree, transform)
    return ParsedCell(transformed, tree, quiet)


def _ends_quietly(source: str, tree: ast.Module) -> bool:
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        return False
    assert last.end_lineno is not None
    assert last.end_col_offset is not None
    # Offsets of the tree count bytes of UTF-8.
    line = re.split("\r\n|\r|\n", source)[last.end_lineno - 1].encode("utf-8")
    return line[last.end_col_offset :].lstrip().startswith(b";")
