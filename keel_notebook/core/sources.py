"""Two versions of a cell side by side: the same code or not, and what differs. Pure text, nothing is run.

This is for people and for ``plan``. What decides in a kernel is the fingerprint, which also reaches the functions
that a cell calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from keel_notebook.core.options import find_marker


def body(cell: str) -> str:
    """A cell without its step line and without blank ends: options are not code."""
    marker = find_marker(cell)
    if marker is None:
        return cell.strip("\n").rstrip()
    lines = marker.lines[: marker.at] + marker.lines[marker.at + 1 :]
    return "".join(lines).strip("\n").rstrip()


def same_code(recorded: str, current: str) -> bool:
    """Whether two cells are the same code, whatever their formatting, comments and step line.

    Cells that are not plain Python (magics, shell lines) are the same only letter by letter.
    """
    before, after = body(recorded), body(current)
    if before == after:
        return True
    if before.endswith(";") != after.endswith(";"):
        return False  # a trailing semicolon hides the last value: it is seen by people
    try:
        return ast.dump(ast.parse(before)) == ast.dump(ast.parse(after))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def code_diff(recorded: str, current: str) -> tuple[str, ...]:
    """The lines of a unified diff, recorded against current; empty where the text is the same."""
    import difflib  # noqa: PLC0415 - a kernel that loads keel never needs it

    before, after = recorded.splitlines(), current.splitlines()
    return tuple(difflib.unified_diff(before, after, "recorded", "current", lineterm="", n=3))


class Names(Struct, frozen=True):
    """What a cell binds and reads at its top level: an estimate from its text."""

    binds: frozenset[str] = frozenset()
    """Names that it binds or changes by assignment."""
    reads: frozenset[str] = frozenset()
    """Names that it reads, those inside its functions included."""
    reads_now: frozenset[str] = frozenset()
    """Names that it reads as it runs: those inside its functions are read when somebody calls them."""
    functions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The functions and classes that it defines, each with the names that their code reads."""
    readable: bool = True
    """False where the cell is not Python: then nothing is known of it."""


_BLOCKS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_CLOSED = (*_BLOCKS, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def names_in(code: str) -> Names:
    """The names in a cell without its step line. Lines for IPython (``%``, ``!``, ``?``) are left out."""
    python = "\n".join(line for line in code.splitlines() if not line.lstrip().startswith(("%", "!", "?")))
    try:
        tree = ast.parse(python)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Names(readable=False)
    binds: set[str] = set()
    functions: dict[str, frozenset[str]] = {}
    for node in _top_level(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                binds.add(name)
                functions[name] = _reads(node)
            case ast.Import(names=modules) | ast.ImportFrom(names=modules):
                binds.update((item.asname or item.name).partition(".")[0] for item in modules)
            case ast.Name() | ast.Attribute() | ast.Subscript() if not isinstance(node.ctx, ast.Load):
                binds.update(_root(node))
    return Names(frozenset(binds), _reads(tree), _reads_now(tree), functions)


def _top_level(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node outside the bodies of functions, classes and comprehensions; these themselves included."""
    for child in ast.iter_child_nodes(tree):
        yield child
        if not isinstance(child, _CLOSED):
            yield from _top_level(child)


def _reads(tree: ast.AST) -> frozenset[str]:
    return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def _reads_now(tree: ast.AST) -> frozenset[str]:
    found: set[str] = set()
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            nodes += [*node.decorator_list, node.args]
        else:
            nodes += ast.iter_child_nodes(node)
    return frozenset(found)


def _root(node: ast.expr) -> set[str]:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()
