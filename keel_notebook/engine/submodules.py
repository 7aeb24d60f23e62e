"""``import a.b`` binds ``a``: a replay that only puts that name back has no ``a.b`` (C53, ``urllib.request``)."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Collection, Iterator

from keel_notebook.core.sources import body

_LINE = re.compile(r"^[^#\n]*?\bimport +([\w., ]*\w\.\w[\w., ]*)$", re.MULTILINE)


def import_submodules(source: str, bound: Collection[str]) -> None:
    """Import what a cell imported by dotted names; ``bound`` are the names that its record puts back.

    What cannot be imported is left out: the cell may have gone on without it.
    """
    for name in dotted_imports(source):
        if name.partition(".")[0] in bound:
            try:
                importlib.import_module(name)
            except Exception:  # noqa: BLE001, S112 - any error of the module's own: the cell met it too
                continue


def dotted_imports(source: str) -> Iterator[str]:
    """The dotted names that a cell imports without giving them another name; those in functions left out."""
    if _LINE.search(source) is None:
        return
    text = body(source)
    try:
        yield from _imports(ast.parse(text))
    except (SyntaxError, ValueError):  # it has magics
        for listed in _LINE.findall(text):
            names = (each.strip() for each in listed.split(","))
            yield from (name for name in names if "." in name and " " not in name)


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if "." in each.name and each.asname is None)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                continue
            case _:
                yield from _imports(node)
