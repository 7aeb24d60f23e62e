"""A cell that may be tried again: its module, wrapped so that the lines of its traceback stay its own (DESIGN 3.1).

The body is not run from here either: the module becomes a loop around itself that asks whether to try again, and an
exception that stays leaves by a bare ``raise``, without a frame of keel. Its last expression is shown as before.
"""

from __future__ import annotations

import ast
import builtins
import textwrap
from collections.abc import Iterator
from typing import Any, Protocol

_TRIES = "__keel_tries__"

_LOOP = """
while True:
    try:
        {with_} {tries}.limit():
            pass
        break
    except Exception:
        if not {await_}{tries}.{again}():
            raise
"""


class Asked(Protocol):
    """What the wrapped module asks."""

    last: Any
    """The value of the last expression."""

    def limit(self) -> Any:
        """A context manager around one try, synchronous and asynchronous."""

    def again(self) -> bool:
        """Whether to try again after the exception at hand; waits."""

    async def again_later(self) -> bool:
        """The same without blocking the event loop."""


def tried(tree: ast.Module, tries: Asked) -> ast.Module:
    """The module that tries ``tree`` until ``tries`` says that it is enough.

    A module that does not compile is given back as it is, for its own error to be shown.
    """
    try:
        compile(tree, "<step>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError):
        return tree
    head = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    body = [node for node in tree.body if node not in head]
    if not body:
        return tree
    setattr(builtins, _TRIES, tries)  # one cell runs at a time
    shows = isinstance(body[-1], ast.Expr)
    if shows:
        body[-1] = _kept(body[-1])
    waits = any(map(_awaits, body))
    text = _LOOP.format(
        with_="async with" if waits else "with",
        tries=_TRIES,
        await_="await " if waits else "",
        again="again_later" if waits else "again",
    )
    loop = _placed(textwrap.dedent(text), body[0])
    loop.body[0].body[0].body = body  # the block under ``with``
    tail = [_placed(f"{_TRIES}.last", tree.body[-1])] if shows else []
    return ast.Module([*head, loop, *tail], tree.type_ignores)


def _placed(text: str, like: ast.stmt) -> Any:
    """One statement of keel's, at the place of one of the person's."""
    [statement] = ast.parse(text).body
    for node in ast.walk(statement):
        if "lineno" in node._attributes:
            ast.copy_location(node, like)
    return statement


def _kept(last: ast.stmt) -> ast.stmt:
    """The last expression, its value kept to be shown behind the loop."""
    assert isinstance(last, ast.Expr)
    kept: ast.Assign = _placed(f"{_TRIES}.last = None", last)
    kept.value = last.value
    return kept


def _awaits(node: ast.AST) -> bool:
    """Whether a statement waits at the top of the cell, not inside a function of it."""
    return any(isinstance(found, ast.Await | ast.AsyncFor | ast.AsyncWith) or _async(found) for found in _own(node))


def _async(node: ast.AST) -> bool:
    return isinstance(node, ast.comprehension) and bool(node.is_async)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return
    for child in ast.iter_child_nodes(node):
        yield from _own(child)
