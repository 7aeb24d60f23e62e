"""The walk over a cell's statements: in order, branch by branch, with what is sure at every point.

Every rule errs to one side: a name that *may* be read counts as read, a name that *may* not be stored does not
count as stored. Code in functions counts from where the cell first mentions them after their definition.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import Any

from keel_notebook.core import harmless
from keel_notebook.core.expressions import Expressions
from keel_notebook.core.findings import Findings, Shared, State, meet, merged
from keel_notebook.core.scopes import FUNCTIONS, Function, Scope, imported, names_bound, type_parameters

Loop = ast.For | ast.AsyncFor | ast.While


class Flow(Expressions):
    """One piece of code on its way through: the statements."""

    def __init__(self, scope: Scope, shared: Shared) -> None:
        super().__init__(scope, shared)
        self._leaving: list[tuple[list[State], list[State]]] = []
        """The states at ``break`` and at ``continue``, for every loop around the point."""
        self._methods: list[Findings] | None = None

    def cell(self, tree: ast.Module) -> State:
        """Walk over a whole cell; the state where it ends."""
        state: State | None = State()
        for at, statement in enumerate(tree.body):
            self.statement_at = at
            state = self.statement(statement, state) if state is not None else None
        return state or State()

    def block(self, body: list[ast.stmt], state: State) -> State | None:
        """Walk over statements; None where they never go on."""
        current: State | None = state
        for statement in body:
            if current is None:
                break
            if self.fragile:
                self.block_id = self.shared.new_block()
            current = self.statement(statement, current)
        return current

    def branch(self, body: list[ast.stmt], state: State) -> State | None:
        """Walk over statements that may not run at all."""
        block, self.block_id = self.block_id, self.shared.new_block()
        end = self.block(body, state.copy())
        self.block_id = block
        return end

    def statement(self, node: ast.stmt, state: State) -> State | None:
        """Walk over one statement. The state is used up: take the one that comes back."""
        visit = _VISITORS.get(type(node))
        if visit is not None:
            return visit(self, node, state)
        for child in ast.iter_child_nodes(node):  # Expr, Global, Pass, …
            self.value(child, state)
        return state

    def deferred(self, node: Function, scope: Scope) -> Findings:
        """What the body of a function does when it runs."""
        inner = Flow(scope.function(node), self.shared)
        if isinstance(node, ast.Lambda):
            inner.value(node.body, State())
        else:
            inner.block(node.body, State())
        if node.lineno:
            self.shared.defined[node.lineno, node.col_offset] = inner.found
        return inner.found

    def target(self, node: ast.expr, state: State) -> None:
        """The left side of an assignment."""
        match node:
            case ast.Name(id=name):
                self.store(name, state)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self.target(part, state)
            case ast.Starred(value=inner):
                self.target(inner, state)
            case ast.Subscript(value=where, slice=ast.Constant(value=str(name))) if self._is_namespace(where):
                self.store(name, state)
            case ast.Subscript() | ast.Attribute():
                self._set_in(node, state)
                if self.fragile:  # it may fail with the names before it stored and those after it not
                    self.block_id = self.shared.new_block()

    # Simple statements.
    def _expr(self, node: ast.Expr, state: State) -> State:
        if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
            self.value(node.value, state)  # a string that stands alone is a comment
        return state

    def _assign(self, node: ast.Assign, state: State) -> State:
        self.value(node.value, state)
        for target in node.targets:
            self.target(target, state)
        return state

    def _augmented(self, node: ast.AugAssign, state: State) -> State:
        match node.target:
            case ast.Name(id=name):
                self.load(name, state)
                self.look(node.value, state)
                self.store(name, state)
            case _:
                self.value(node.target, state)
                self.look(node.value, state)
                self.target(node.target, state)
        return state

    def _annotated(self, node: ast.AnnAssign, state: State) -> State:
        if node.value is not None:
            self.value(node.value, state)
            self.target(node.target, state)
        elif not isinstance(node.target, ast.Name):
            self.value(node.target, state)
        if not self.shared.lazy_annotations and self.owner.kind != "function":
            self.value(node.annotation, state)
        return state

    def _delete(self, node: ast.Delete, state: State) -> State:
        for target in node.targets:
            self._remove(target, state)
        return state

    def _remove(self, node: ast.expr, state: State) -> None:
        match node:
            case ast.Name(id=name):
                self.delete(name, state)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self._remove(part, state)
            case ast.Subscript(value=where, slice=ast.Constant(value=str(name))) if self._is_namespace(where):
                self.delete(name, state)
            case _:
                self._set_in(node, state)

    def _set_in(self, node: ast.expr, state: State) -> None:
        """A part of a value is set or deleted: what stands at the root changes, whatever leads there."""
        if isinstance(node, ast.Attribute):
            self.attribute(node.value, node.attr)
        self.value(node, state)
        self.changes_root(node, state)

    def _import(self, node: ast.Import | ast.ImportFrom, state: State) -> State:
        if isinstance(node, ast.Import):
            self.found.modules.update(alias.name for alias in node.names)
        else:
            module = "." * node.level + (node.module or "")
            self.found.modules.add(module)
            for alias in node.names:
                if alias.name == "*":
                    self.found.stars.add(module)
                else:  # `from pkg import sub` may import the module pkg.sub
                    self.found.modules.add(f"{module}:{alias.name}")
        if "__main__" in self.found.modules:
            self.reads_everything("it imports __main__")
        for name in imported(node):
            self.store(name, state)
            self.found.imports.add(name)
        return state

    def _leave(self, node: ast.Return | ast.Raise, state: State) -> None:
        self.values(ast.iter_child_nodes(node), state)

    def _assert(self, node: ast.Assert, state: State) -> State:
        self.look(node.test, state)
        if node.msg is not None:
            self._perhaps([node.msg], state)
        return state

    def _break(self, _node: ast.Break, state: State) -> None:
        self._leaving[-1][0].append(state)

    def _continue(self, _node: ast.Continue, state: State) -> None:
        self._leaving[-1][1].append(state)

    # Branches and loops.
    def _if(self, node: ast.If, state: State) -> State | None:
        self.look(node.test, state)
        truth = harmless.constant_truth(node.test)
        if truth is not None:
            return self.block(node.body if truth else node.orelse, state)
        return meet(self.branch(node.body, state), self.branch(node.orelse, state))

    def _for(self, node: ast.For | ast.AsyncFor, state: State) -> State | None:
        self.value(node.iter, state)
        return self._loop(node, state, entered=harmless.surely_entered(node.iter), ends=True)

    def _while(self, node: ast.While, state: State) -> State | None:
        self.look(node.test, state)
        forever = harmless.constant_truth(node.test) is True
        return self._loop(node, state, entered=forever, ends=not forever)

    def _loop(self, node: Loop, state: State, *, entered: bool, ends: bool) -> State | None:
        kinds = set(map(type, ast.walk(node)))
        leaves = not kinds.isdisjoint({ast.Break, ast.Continue})
        self.fragile += leaves
        # A function that the body defines may run in a later turn before the body defines it again.
        turns = 1 if kinds.isdisjoint({*FUNCTIONS, ast.ClassDef}) else 2
        block, self.block_id = self.block_id, self.shared.new_block()
        for _ in range(turns):
            self._leaving.append(([], []))
            inner = state.copy()
            if not isinstance(node, ast.While):
                self.target(node.target, inner)
            end = self.block(node.body, inner)
            breaks, continues = self._leaving.pop()
        self.block_id = block
        self.fragile -= leaves
        after = meet(end, *continues) if entered else meet(state, end, *continues)
        if not ends:
            after = None
        if node.orelse and after is not None:
            after = self.branch(node.orelse, after)
        return meet(after, *breaks)

    def _try(self, node: ast.Try, state: State) -> State | None:
        self.fragile += 1
        end = self.branch(node.body, state)
        self.fragile -= 1
        failed = state.copy()
        failed.bound -= {name for part in node.body for name in _deleted(part)}
        if node.orelse and end is not None:
            end = self.branch(node.orelse, end)
        ends = [end, *(self._handler(handler, failed.copy()) for handler in node.handlers)]
        after = meet(*ends)
        if not node.finalbody:
            return after
        before, final = failed.copy(), self.block(node.finalbody, failed)
        if after is None or final is None:
            return None
        after.gone |= final.gone - before.gone
        after.bound = (after.bound - (before.bound - final.bound)) | (final.bound - before.bound)
        return after

    def _handler(self, node: ast.ExceptHandler, state: State) -> State | None:
        if node.type is not None:
            self.value(node.type, state)
        block, self.block_id = self.block_id, self.shared.new_block()
        if node.name:
            self.store(node.name, state)
        end = self.block(node.body, state)
        if node.name:
            self.delete(node.name, end if end is not None else State())
        self.block_id = block
        return end

    def _with(self, node: ast.With | ast.AsyncWith, state: State) -> State | None:
        return self._managed(node.items, node.body, state)

    def _managed(self, items: list[ast.withitem], body: list[ast.stmt], state: State) -> State | None:
        if not items:
            return self.block(body, state)
        manager, *others = items
        self.value(manager.context_expr, state)
        if manager.optional_vars is not None:
            self.target(manager.optional_vars, state)
        if harmless.last_name(manager.context_expr) in harmless.KEEPING_MANAGERS:
            return self._managed(others, body, state)
        # The manager may swallow an exception from anywhere in the body.
        self.fragile += 1
        block, self.block_id = self.block_id, self.shared.new_block()
        end = self._managed(others, body, state.copy())
        self.block_id = block
        self.fragile -= 1
        return meet(state, end)

    def _match(self, node: ast.Match, state: State) -> State | None:
        self.value(node.subject, state)
        ends: list[State | None] = []
        sure = False
        for case in node.cases:
            block, self.block_id = self.block_id, self.shared.new_block()
            inner = state.copy()
            for part in ast.walk(case.pattern):
                match part:
                    case ast.MatchValue(value=compared) | ast.MatchClass(cls=compared):
                        self.value(compared, inner)
                    case ast.MatchMapping(keys=keys):
                        self.values(keys, inner)
                for name in names_bound(part):
                    self.store(name, inner)
            if case.guard is not None:
                self.look(case.guard, inner)
            ends.append(self.block(case.body, inner))
            self.block_id = block
            sure = sure or (case.guard is None and harmless.always_matches(case.pattern))
        return meet(*ends, None if sure else state)

    # Definitions.
    def _alias(self, node: Any, state: State) -> State:
        scope = self.scope
        self.scope = scope.annotations(type_parameters(node))
        self.lazy, lazy = True, self.lazy
        self.value(node.value, state)  # evaluated when somebody asks for it
        self.lazy, self.scope = lazy, scope
        self.target(node.name, state)
        return state

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, state: State) -> State:
        self.values(node.decorator_list, state)
        self.values([*node.args.defaults, *node.args.kw_defaults], state)
        scope = self.scope
        self.scope = scope.annotations(type_parameters(node))
        if not self.shared.lazy_annotations:
            self.values((part for arg in ast.walk(node.args) for part in _annotation(arg)), state)
            self.values([node.returns], state)
        piece = self.deferred(node, self.scope)
        self.scope = scope
        self.store(node.name, state)
        if self._methods is not None:
            self._methods.append(piece)
        quiet = all(harmless.last_name(each) in harmless.QUIET_DECORATORS for each in node.decorator_list)
        self._define(node.name, piece, state, quiet=quiet, method=self._methods is not None)
        return state

    def _class(self, node: ast.ClassDef, state: State) -> State | None:
        self.values([*node.decorator_list], state)
        scope, owner, methods, members = self.scope, self.owner, self._methods, self.members
        self.scope = scope.annotations(type_parameters(node))
        self.values([*node.bases, *(keyword.value for keyword in node.keywords)], state)
        self.scope = self.owner = self.scope.class_body(node)
        self._methods, self.members = [], {}
        here, state.here = state.here, set()
        end = self.block(node.body, state)
        piece = merged(self._methods)
        self.shared.defined[node.lineno, node.col_offset] = piece
        self.scope, self.owner, self._methods, self.members = scope, owner, methods, members
        if end is None:
            return None
        end.here = here
        self.store(node.name, end)
        if methods is not None:
            methods.append(piece)
        quiet = all(harmless.last_name(each) in harmless.QUIET_DECORATORS for each in node.decorator_list)
        quiet = quiet and not node.keywords and all(harmless.last_name(b) in harmless.QUIET_BASES for b in node.bases)
        self._define(node.name, piece, end, quiet=quiet, method=methods is not None)
        return end

    def _define(self, name: str, piece: Findings, state: State, *, quiet: bool, method: bool) -> None:
        if quiet and method:
            self.members.setdefault(name, []).append(piece)
            return  # runs when its class is used, or when the class body itself calls it
        if quiet and self.scope.kind == "module":
            self.later.setdefault(name, []).append(piece)
            if name not in self.awaited:
                return
        self.release(piece, frozenset(state.gone))


def _deleted(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Del)}


def _annotation(node: ast.AST) -> list[ast.expr]:
    return [node.annotation] if isinstance(node, ast.arg) and node.annotation is not None else []


_VISITORS: dict[type[ast.AST], Callable[..., State | None]] = {
    ast.Expr: Flow._expr,
    ast.Assign: Flow._assign,
    ast.AugAssign: Flow._augmented,
    ast.AnnAssign: Flow._annotated,
    ast.Delete: Flow._delete,
    ast.Import: Flow._import,
    ast.ImportFrom: Flow._import,
    ast.Return: Flow._leave,
    ast.Raise: Flow._leave,
    ast.Assert: Flow._assert,
    ast.Break: Flow._break,
    ast.Continue: Flow._continue,
    ast.If: Flow._if,
    ast.For: Flow._for,
    ast.AsyncFor: Flow._for,
    ast.While: Flow._while,
    ast.Try: Flow._try,
    ast.TryStar: Flow._try,
    ast.With: Flow._with,
    ast.AsyncWith: Flow._with,
    ast.Match: Flow._match,
    ast.FunctionDef: Flow._function,
    ast.AsyncFunctionDef: Flow._function,
    ast.ClassDef: Flow._class,
}
if sys.version_info >= (3, 12):
    _VISITORS[ast.TypeAlias] = Flow._alias
