"""Which names of a block of code are the notebook's: Python's scoping rules, on the tree alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from msgspec import Struct

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Scope(Struct, frozen=True):
    """A scope with the names that it binds itself. ``declared`` are those of its ``global`` statements."""

    kind: Literal["module", "function", "class"]
    parent: Scope | None = None
    bound: frozenset[str] = frozenset()
    declared: frozenset[str] = frozenset()
    class_name: str = ""

    def is_notebooks(self, name: str) -> bool:
        """Whether ``name`` means the notebook's variable here. In a class body that binds the name itself it
        may still be the notebook's, until the binding has run: the caller knows."""
        if self.kind == "module" or name in self.declared:
            return True
        if name in self.bound:
            return False
        scope = self.parent
        while scope is not None and scope.kind != "module":
            if scope.kind == "function":
                if name in scope.declared:
                    return True
                if name in scope.bound:
                    return False
            scope = scope.parent
        return True

    def spelt(self, name: str) -> str:
        """The name as Python looks it up: ``__x`` in class ``C`` is ``_C__x``."""
        if self.class_name and name.startswith("__") and not name.endswith("__"):
            return f"_{self.class_name.lstrip('_')}{name}"
        return name

    def function(self, node: Function) -> Scope:
        """The scope inside a function or lambda."""
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        return self._inner("function", {arg.arg for arg in every} | type_parameters(node), body)

    def class_body(self, node: ast.ClassDef) -> Scope:
        """The scope of a class body."""
        inner = self._inner("class", type_parameters(node), node.body)
        return Scope("class", self, inner.bound, inner.declared, node.name)

    def comprehension(self, node: Comprehension) -> Scope:
        """The scope of a comprehension: its targets only; ``:=`` in it binds outside."""
        targets = {
            part.id
            for generator in node.generators
            for part in ast.walk(generator.target)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }
        return Scope("function", self, frozenset(targets), frozenset(), self.class_name)

    def annotations(self, names: set[str]) -> Scope:
        """The scope between a definition and its surroundings that holds its type parameters."""
        return Scope("function", self, frozenset(names), frozenset(), self.class_name) if names else self

    def _inner(self, kind: Literal["function", "class"], own: set[str], body: Iterable[ast.AST]) -> Scope:
        bound, declared, outer = set(own), set[str](), set[str]()
        for node in _of_this_scope(body):
            match node:
                case ast.Global(names=names):
                    declared.update(names)
                case ast.Nonlocal(names=names):
                    outer.update(names)
                case _:
                    bound.update(names_bound(node))
        return Scope(kind, self, frozenset(bound - declared - outer), frozenset(declared), self.class_name)


def names_bound(node: ast.AST) -> Iterator[str]:
    """The names that one node binds or deletes, its children left aside."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import() | ast.ImportFrom():
            yield from imported(node)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name


def imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The names that an import statement binds; a star binds nothing that can be read here."""
    for alias in node.names:
        if alias.name != "*":
            whole = alias.asname or alias.name
            yield whole.partition(".")[0] if isinstance(node, ast.Import) and not alias.asname else whole


def type_parameters(node: Any) -> set[str]:
    """The names in the brackets of ``def f[T]`` (Python 3.12)."""
    return {parameter.name for parameter in getattr(node, "type_params", ())}


def _of_this_scope(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Every node whose bindings belong to the scope that ``body`` is the body of."""
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        match node:
            case ast.Lambda():
                todo.extend(_evaluated_outside(node.args))
                continue
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                todo.extend([*node.decorator_list, *_evaluated_outside(node.args)])
            case ast.ClassDef():
                todo.extend([*node.decorator_list, *node.bases, *node.keywords])
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                todo.extend(walrus for walrus in _walruses(node))
                continue
            case _:
                todo.extend(ast.iter_child_nodes(node))
        yield node


def _evaluated_outside(arguments: ast.arguments) -> list[ast.expr]:
    return [*arguments.defaults, *(default for default in arguments.kw_defaults if default is not None)]


def _walruses(node: ast.AST) -> Iterator[ast.Name]:
    todo: list[ast.AST] = [node]
    while todo:
        inner = todo.pop()
        if isinstance(inner, ast.NamedExpr):
            assert isinstance(inner.target, ast.Name)
            yield inner.target
        if not isinstance(inner, ast.Lambda):
            todo.extend(ast.iter_child_nodes(inner))
