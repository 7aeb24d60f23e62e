"""Where the values of names come from: the statements that made them, and what those read (DESIGN 5, Provenance).

Pure. A value that has no digest (a client, a connection) can only be told from another by how it was made. The story
is told statement by statement, not cell by cell: a client and a list of prompts in one cell have nothing to do with
each other.
"""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from msgspec import Struct, field

from keel_notebook.core.cellcode import ParsedCell
from keel_notebook.core.doing import Doing, doings, done_by
from keel_notebook.core.fileholds import ABSENT
from keel_notebook.core.fingerprint import code_digest
from keel_notebook.core.harmless import root_name, words
from keel_notebook.core.ids import text_digest
from keel_notebook.core.model import Digest, Entry
from keel_notebook.core.reads import CellNames, analyse

BY_ORIGIN = "origin:"
"""How the digest of a value begins that has none of its own and counts by its provenance: weak, and said to be."""

LEFT = "left"
"""The ``ambient`` key of what objects counted as that a step changed and that cannot be stored, by name."""

DATABASE_CALLS = words(
    """
    execute executemany executescript execute_many query sql commit rollback begin connect cursor run register insert
    add add_all merge delete update create_table drop_table insert_one insert_many update_one update_many delete_one
    """
)
"""Methods that change what a connection holds even where their result is kept: ``n = con.execute("insert …")``."""


class Statement(Struct, frozen=True):
    """One statement at the top level of a cell."""

    node: ast.stmt
    code: Digest
    names: CellNames
    binds: frozenset[str]
    changes: frozenset[str]
    """Names whose value it changes on purpose: ``c.x = …``, ``c["x"] = …``, a call whose result nobody takes.
    Using a client (``answer = client.chat(text)``) is no change of it."""
    texts: frozenset[str]
    """Its short strings: some may name files."""
    anything: bool
    """Whether it may bind names that are not listed."""


class Origin(Struct, frozen=True, eq=False):
    """How a name came to its value."""

    by: str
    """The digest of the statement, or the record of the step."""
    names: CellNames | None = None
    texts: frozenset[str] = frozenset()
    reads: Mapping[str, Origin | None] = field(default_factory=dict)
    """What the statement read, with the origins that those names had then; None where nobody saw them made."""
    before: Origin | None = None
    """What the statement changed, or may have left as it was."""


def statements(parsed: ParsedCell) -> Iterator[Statement]:
    """The statements of a cell, in order."""
    for node in parsed.tree.body:
        alone = ParsedCell("", ast.Module([node], []))
        names: CellNames = analyse.__wrapped__(alone)
        yield Statement(
            node=node,
            code=code_digest(alone),
            names=names,
            binds=names.stores | names.maybe_stores,
            changes=frozenset(_changes(node)),
            texts=frozenset(_texts(node)),
            anything=bool(names.writes_unknown or names.reads_everything),
        )


def _changes(top: ast.stmt) -> Iterator[str]:
    for node in _own(top):
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                yield root_name(node)
            case ast.Expr(value=ast.Call() | ast.Await()):
                yield from analyse.__wrapped__(ParsedCell("", ast.Module([node], []))).mutation_suspects
            case ast.Call(func=ast.Attribute(attr=method) as func) if method in DATABASE_CALLS:
                yield root_name(func)
                yield from (arg.id for arg in node.args if isinstance(arg, ast.Name))
            case ast.withitem(context_expr=value, optional_vars=ast.expr()) if not isinstance(value, ast.Call):
                yield root_name(value)  # with con as c: c.execute(…)


def _own(top: ast.AST) -> Iterator[ast.AST]:
    """The parts of a statement that run with it: not the bodies of functions."""
    todo: list[ast.AST] = [top]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            todo += ast.iter_child_nodes(node)


def _texts(top: ast.AST) -> Iterator[str]:
    for node in ast.walk(top):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) < _PATH:
            yield node.value


_PATH = 1024
_RUNNING = "running "


class Origins:
    """The origins of all names of a notebook, told from what ran. Memory of one kernel only.

    Most notebooks never ask: what ran is kept as it is, and read statement by statement when somebody does.
    """

    def __init__(self) -> None:
        self._now: dict[str, Origin] = {}
        self._unlisted: Origin | None = None
        self._doings: dict[str, Doing] = {}
        """What calls of the notebook's functions do to other names."""
        self._untold: list[Callable[[], None]] = []

    def were_there(self, modules: Mapping[str, str]) -> None:
        """Names of modules that were imported before anybody watched, with the names of those modules."""
        self._now.update({name: Origin(f"module {module}") for name, module in modules.items()})

    def of(self, name: str) -> Origin | None:
        """How the name came to the value that it has now; None where nobody saw it."""
        untold, self._untold = self._untold, []
        for tell in untold:
            tell()
        return self._origin(name)

    def _origin(self, name: str) -> Origin | None:
        return self._now.get(name, self._unlisted)

    def ran(self, parsed: ParsedCell, *, ended_well: bool) -> None:
        """A plain cell ran. One that failed may have stopped at any statement: what it left is its own story."""
        self._untold.append(lambda: self._cell(parsed, "" if ended_well else "failed "))

    def running(self, parsed: ParsedCell, keel: frozenset[str]) -> tuple[Origins, frozenset[str]]:
        """The origins while a cell runs that may have come to any of its statements, and the names that it touches.

        Durable calls in it (``keel.map(ask, client)``, where ``keel`` names the package) change nothing here.
        """
        self.of("")
        found = Origins()
        found._now, found._unlisted = dict(self._now), self._unlisted
        tree = _WithoutCalls(keel).visit(copy.deepcopy(parsed.tree))
        found._cell(ParsedCell(parsed.source, tree), _RUNNING)
        return found, frozenset(name for name, now in found._now.items() if self._now.get(name) is not now)

    def _cell(self, parsed: ParsedCell, how: str) -> None:
        for statement in statements(parsed):
            self._apply(statement, how)

    def _apply(self, statement: Statement, how: str) -> None:
        names, done = statement.names, done_by(statement.node, self._doings)
        through = {name for name in done.reads if name in self._now}
        reads = {name: self._origin(name) for name in sorted(names.reads | names.late_reads | through)}

        def made(before: Origin | None) -> Origin:
            return Origin(how + statement.code, names, statement.texts, reads, before)

        fresh = made(None)
        changed = self._with_parents((statement.changes | done.changes) - statement.binds)
        for name in statement.binds:
            self._doings.pop(name, None)
        if how != _RUNNING:  # what durable calls do themselves is looked at where they are made
            self._doings |= doings(statement.node, _changes, self._doings, DATABASE_CALLS)
        touched = changed | names.maybe_stores | (set(self._now) - names.stores if statement.anything else set())
        before = {name: self._origin(name) for name in touched}
        for name in names.stores:
            self._now[name] = fresh if not how else made(self._origin(name))
        for name, old in before.items():
            self._now[name] = made(old)
        for name in names.deletes - names.stores:
            self._now.pop(name, None)
        if names.writes_unknown.startswith("from "):
            self._unlisted = made(self._unlisted)

    def _with_parents(self, names: Iterable[str]) -> set[str]:
        """The names, and what they were made from: ``cursor.execute`` changes the connection."""
        found: set[str] = set()
        todo = [name for name in names if name]
        while todo:
            name = todo.pop()
            if name in found:
                continue
            found.add(name)
            origin = self._now.get(name)
            todo += [] if origin is None else [n for n, o in origin.reads.items() if o and self._still(n, o)]
        return found

    def _still(self, name: str, then: Origin) -> bool:
        """Whether a name holds the object that it held then, changed or not."""
        origin = self._now.get(name)
        while origin is not None and origin is not then:
            origin = origin.before
        return origin is not None

    def step(self, names: Iterable[str], by: str) -> None:
        """A step left these names: what cannot be compared of them counts by its record (or what stands for it)."""
        left = dict.fromkeys(names, Origin(by))
        self._untold.append(lambda: self._now.update(left))

    def changed(self, names: Iterable[str], by: str) -> None:
        """A step changed what these names hold, and nobody can compare that: from now on it counts as changed."""
        touched = tuple(names)
        self._untold.append(lambda: self._now.update({n: Origin(by, before=self._origin(n)) for n in touched}))

    def gone(self, names: Iterable[str]) -> None:
        """These names were deleted."""
        gone = tuple(names)
        self._untold.append(lambda: self._forget(gone))

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._now.pop(name, None)


def written_into(source: str) -> frozenset[str]:
    """Names into whose value a function writes for all to see: ``c.x = …``, ``c.headers["x"] = …``, ``del c.x``."""
    try:
        tree = ast.parse(textwrap.dedent(source))
    except SyntaxError:  # a lambda is only part of a line, and assigns nothing
        return frozenset()
    stores = ast.Store | ast.Del
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.Subscript))
    return frozenset(root_name(node) for node in nodes if isinstance(node.ctx, stores))


class _WithoutCalls(ast.NodeTransformer):
    """Takes durable calls out of a cell."""

    def __init__(self, keel: frozenset[str]) -> None:
        self._keel = keel

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node.func:
            case ast.Attribute(value=ast.Name(id=name), attr="call" | "map" | "defer" | "gather") if name in self._keel:
                return ast.copy_location(ast.Constant(None), node)
        return self.generic_visit(node)


def doing_of(entry: Entry, changed: Collection[str]) -> str:
    """What a step did to objects that it ``changed``: by its code and its other inputs, equal in every run."""
    inputs = sorted((item.name, item.digest or entry.entry) for item in entry.inputs if item.name not in changed)
    return text_digest("step", entry.code or entry.entry, *(part for each in inputs for part in each))


def of_data(digest: Digest | None) -> bool:
    """Whether a digest is of something that is there and can be put back: no client, and nothing unknown."""
    return digest is not None and digest != ABSENT and not digest.startswith(BY_ORIGIN)
