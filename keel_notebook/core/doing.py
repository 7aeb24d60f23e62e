"""What functions and classes of the notebook do to names that a caller does not name: ``put(1)`` fills a table.

Pure, and told by the text alone: ``def put(x): con.execute("…", x)`` changes ``con`` wherever ``put`` is called, or
handed to a call. Using a client (``return client.chat(text)``) is no change of it, as in a cell itself.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from keel_notebook.core.harmless import LOOKING_CALLS, last_name, root_name

Changes = Callable[[ast.stmt], Iterator[str]]
"""The names that a statement changes on purpose, functions in it left out."""


class Doing(Struct, frozen=True):
    """What a call of a name does."""

    changes: frozenset[str]
    """Global names that it changes by itself."""
    calls: frozenset[str]
    """Names that it may call in turn."""
    reads: frozenset[str] = frozenset()
    """Global names that it mentions."""


def doings(node: ast.stmt, changes: Changes, known: Mapping[str, Doing], calling: frozenset[str]) -> dict[str, Doing]:
    """What the names do that a statement defines, or binds to what does something.

    Args:
        node: a statement at the top level of a cell.
        changes: tells what one statement changes.
        known: what names do so far.
        calling: methods that change what they belong to.
    """
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name: _of_body(node, changes)}
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as value):
            return {name: _of_body(value, changes)}
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute(attr=attr) as value) if attr in calling:
            return {name: Doing(frozenset({root_name(value)}), frozenset())}  # put = con.execute
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name() | ast.Attribute() | ast.Call() as value):
            first = [arg for arg in value.args[:1] if isinstance(arg, ast.Name)] if isinstance(value, ast.Call) else []
            made_of = {_root(value), *(arg.id for arg in first)} & known.keys()  # a = A(con); put = partial(go, 1)
            return {name: Doing(frozenset(), frozenset(made_of))} if made_of else {}
    return {}


def done_by(node: ast.stmt, known: Mapping[str, Doing]) -> Doing:
    """What a statement does by way of the functions that it calls, or hands to a call."""
    if not known or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return NOTHING
    todo = [name for call in _own_calls(node) for name in _called_by(call) if name in known]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in seen and name in known:
            seen.add(name)
            todo += known[name].calls
    changes, reads = (
        frozenset().union(*(getattr(known[name], what) for name in seen)) for what in ("changes", "reads")
    )
    return Doing(changes, frozenset(), reads) if changes else NOTHING


NOTHING = Doing(frozenset(), frozenset())


def _root(value: ast.expr) -> str:
    return root_name(value.func if isinstance(value, ast.Call) else value)


def _own_calls(node: ast.AST) -> Iterator[ast.Call]:
    return (each for each in ast.walk(node) if isinstance(each, ast.Call))


def _called_by(call: ast.Call) -> Iterator[str]:
    yield root_name(call.func)
    if not (isinstance(call.func, ast.Name) and last_name(call.func) in LOOKING_CALLS):
        yield from (arg.id for arg in call.args if isinstance(arg, ast.Name))


def _of_body(node: ast.AST, changes: Changes) -> Doing:
    """What a function or the methods of a class do to names that are not their own."""
    own, declared = _own_names(node)
    aliases = {name: root for name, root in _aliases(node) if name in own}
    found: set[str] = set()
    for statement in _statements(node):
        found.update(changes(statement))
    for _ in aliases:  # c = con.cursor(); c.execute(…)
        found |= {aliases[name] for name in found & aliases.keys()}
    called = {name for call in _own_calls(node) for name in _called_by(call)}
    reads = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
    code = {
        call.func.id for call in _own_calls(node) if isinstance(call.func, ast.Name)
    }  # called, and not changed by it
    changed = frozenset(found - own | found & declared) - {""} - code
    return Doing(changed, frozenset(called - own), frozenset(reads - own))


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    if isinstance(node, ast.Lambda):
        yield ast.Expr(node.body)
        return
    for each in ast.walk(node):
        simple = isinstance(each, ast.stmt) and not hasattr(each, "body")
        if simple or isinstance(each, ast.With | ast.AsyncWith):
            yield _head(each) if isinstance(each, ast.With | ast.AsyncWith) else each  # type: ignore[misc]
        elif isinstance(each, ast.For | ast.While | ast.If):
            test = each.iter if isinstance(each, ast.For) else each.test
            yield ast.Assign([ast.Name("_", ast.Store())], test)


def _head(node: ast.With | ast.AsyncWith) -> ast.stmt:
    return ast.With(node.items, [ast.Pass()])


def _own_names(node: ast.AST) -> tuple[set[str], set[str]]:
    """Parameters and local variables; and what is declared global."""
    own = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    own |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    declared = {name for each in ast.walk(node) if isinstance(each, ast.Global) for name in each.names}
    return own - declared, declared


def _aliases(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Local names that stand for a part of something: ``c = con.cursor()``, ``with con as c``."""
    for each in ast.walk(node):
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name() | ast.Attribute() | ast.Call() as value):
                if not isinstance(value, ast.Call) or last_name(value.func) in _PARTS:
                    yield name, _root(value)
            case ast.withitem(context_expr=value, optional_vars=ast.Name(id=name)):
                yield name, _root(value)


_PARTS = frozenset({"cursor", "connect", "begin", "session", "Session", "getLogger", "get"})
"""Calls that give a part of what they belong to, or something that changes it."""
