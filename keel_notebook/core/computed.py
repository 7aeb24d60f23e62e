"""Variables of a module that its source alone does not determine: ``RATE = json.load(open("conf.json"))["rate"]``.

Clocks and entropy are left out: what they gave at an import is no more the module's content than what they give to a
cell, and it would be another value in every process.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from keel_notebook.core.clocks import reads_in
from keel_notebook.core.harmless import words
from keel_notebook.core.seeding import dotted

_PURE = words(
    """
    abs all any bool bytes bytearray complex dict divmod enumerate float frozenset int len list max min object pow range
    repr reversed round set slice sorted str sum tuple zip Counter OrderedDict defaultdict deque namedtuple TypeVar
    NewType compile dataclass field perf_counter perf_counter_ns monotonic monotonic_ns process_time process_time_ns
    """
)
"""Calls that give the same for the same arguments, or something that means nothing in another process."""

_OUTSIDE = frozenset({"os.environ", "os.environb", "sys.argv"})


def computed(tree: ast.Module) -> tuple[str, ...]:
    """The names that a module binds or fills, when it is imported, with what a call gave or what is made of that."""
    origins = dict(_origins(tree))
    statements = list(_statements(tree.body))
    bound = {name for names, _ in statements for name in names[0]}
    found: set[str] = set()
    before = -1
    while before != len(found):  # as many rounds as names that are made of names
        before = len(found)
        for (stored, filled), values in statements:
            if any(_is_outside(value, found, origins) for value in values):
                found |= (stored | filled) & bound
    return tuple(sorted(found))


def _is_outside(value: ast.expr, computed: set[str], origins: dict[str, str]) -> bool:
    if not any(_may_be(node, computed, origins) for node in ast.walk(value)):
        return False
    read, _ = reads_in(value, lambda name: _full(name, origins))
    return not read.clock and not read.entropy


def _may_be(node: ast.AST, computed: set[str], origins: dict[str, str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in computed or origins.get(node.id) in _OUTSIDE
    if isinstance(node, ast.Attribute) and _full(dotted(node), origins) in _OUTSIDE:
        return True
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return not isinstance(node.func.value, ast.Constant) and node.func.attr not in _PURE
    return not (isinstance(node.func, ast.Name) and _full(node.func.id, origins).rpartition(".")[2] in _PURE)


_Names = tuple[set[str], set[str]]
"""Names that a statement stores, and those that it may only fill (``ROWS.append(line)``)."""


def _statements(body: list[ast.stmt]) -> Iterator[tuple[_Names, list[ast.expr]]]:
    """What the statements of a module do to its names, with the expressions that decide what these hold then."""
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
            case ast.Assign(targets=targets, value=value):
                yield _told(*targets), [value]
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
                yield _told(target), [value]
            case ast.Expr(value=value):
                yield _told(value), [value]
            case ast.For() | ast.AsyncFor() | ast.While() | ast.If() | ast.With() | ast.AsyncWith() | ast.Match():
                yield _told(statement), list(_headers(statement))
        for part in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, part, []))
        for inner in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _statements(inner.body)


def _headers(statement: ast.stmt) -> Iterator[ast.expr]:
    """What decides how often a compound statement runs, which part of it, or on what."""
    for name in ("iter", "test", "subject"):
        if isinstance(found := getattr(statement, name, None), ast.expr):
            yield found
    yield from (item.context_expr for item in getattr(statement, "items", ()))


def _told(*parts: ast.AST) -> _Names:
    names = [node for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)]
    return {one.id for one in names if isinstance(one.ctx, ast.Store)}, {one.id for one in names}


def _origins(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, f"{node.module or ''}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.asname, alias.name) for alias in node.names if alias.asname)


def _full(name: str, origins: dict[str, str]) -> str:
    root, dot, rest = name.partition(".")
    return origins.get(root, root) + dot + rest
