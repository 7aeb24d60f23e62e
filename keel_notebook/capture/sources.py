"""Which known sources of clock and entropy a step may read, in its own code and in what that calls (DESIGN 5).

Goes through functions and classes of the notebook and of local modules; installed code is known by the list alone.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from keel_notebook.capture.definitions import NotebookDefinitions, unwrapped
from keel_notebook.capture.installed import is_installed
from keel_notebook.core.clocks import NOTHING, Reads, reads_in
from keel_notebook.core.seeding import seeds_first

_MOST = 300
"""Functions that are looked into for one step."""


class Sources:
    """Looks through code for known sources, with what names mean in the notebook."""

    def __init__(self, namespace: Mapping[str, Any], definitions: NotebookDefinitions) -> None:
        self._namespace = namespace
        self._definitions = definitions
        self._trees: dict[int, tuple[Any, ast.AST | None]] = {}

    def read_by(self, tree: ast.AST) -> Reads:
        """What the code of a cell may read, directly or through functions."""
        found = NOTHING
        todo: list[tuple[ast.AST, Mapping[str, Any]]] = [(tree, self._namespace)]
        seen: set[int] = set()
        while todo and len(seen) < _MOST:
            part, names = todo.pop()
            reads, others = reads_in(part, functools.partial(_full, names))
            found |= reads
            for name in others:
                thing = unwrapped(found_in(names, name))
                if id(thing) not in seen and (inner := self._tree(thing)) is not None:
                    seen.add(id(thing))
                    todo.append(
                        (inner, thing.__globals__ if issubclass(type(thing), FunctionType) else self._namespace)
                    )
        return found

    def full(self, name: str) -> str:
        """The full name behind a dotted one of the notebook."""
        return _full(self._namespace, name)

    def is_local(self, module: str) -> bool:
        """Whether a module is one of the person's own."""
        return self._definitions.is_local(module)

    def code_behind(self, name: str) -> ast.AST | None:
        """The code of the function or class of the notebook, or of a local module, that a dotted name stands for."""
        return self._tree(unwrapped(found_in(self._namespace, name)))

    def seeds_first(self, tree: ast.AST) -> frozenset[str]:
        """Which generators the code of a cell seeds before it can draw from them."""
        return seeds_first(tree.body, self._meant) if isinstance(tree, ast.Module) else frozenset()

    def _meant(self, name: str) -> ast.AST | str | None:
        thing = found_in(self._namespace, name)
        inner = self._tree(unwrapped(thing))
        functions = [node for node in ast.walk(inner) if isinstance(node, ast.FunctionDef)] if inner else []
        return functions[0] if functions and issubclass(type(thing), FunctionType) else full_name(thing) or None

    def _tree(self, thing: Any) -> ast.AST | None:
        """The code of a function or class of the notebook or of a local module."""
        if not issubclass(type(thing), FunctionType | type):
            return None
        known = self._trees.get(id(thing))
        if known is None or known[0] is not thing:
            known = self._trees[id(thing)] = (thing, self._parsed(thing))
        return known[1]

    def _parsed(self, thing: Any) -> ast.AST | None:
        try:
            if self._definitions.belongs(thing):
                definition = self._definitions.of(thing)
                return None if definition is None else ast.parse(textwrap.dedent(definition.source))
            if is_installed(inspect.getfile(thing)):
                return None
            return ast.parse(textwrap.dedent(inspect.getsource(thing)))
        except (OSError, TypeError, SyntaxError, ValueError):
            return None


def found_in(names: Mapping[str, Any], dotted: str) -> Any:
    """What a dotted name stands for, as far as modules and classes lead; None where something else stands between."""
    first, *rest = dotted.split(".")
    thing = names.get(first)
    for part in rest:
        if not issubclass(type(thing), ModuleType | type):
            return None
        try:
            thing = inspect.getattr_static(thing, part) if issubclass(type(thing), type) else vars(thing)[part]
        except (AttributeError, KeyError):
            return None
    return thing


def _full(names: Mapping[str, Any], dotted: str) -> str:
    if dotted.partition(".")[0] not in names:
        return dotted  # bound in the code itself, or not yet
    owner, _, last = dotted.rpartition(".")
    if owner and isinstance(cls := found_in(names, owner), type):
        return f"{full_name(cls)}.{last}"  # a class method written in C does not tell its name
    return full_name(found_in(names, dotted))


def full_name(thing: Any) -> str:
    """The full name of a module, class or function; empty for anything else."""
    if issubclass(type(thing), ModuleType):
        return str(thing.__name__)
    if issubclass(type(thing), type | FunctionType):
        return f"{thing.__module__}.{thing.__qualname__}"
    if issubclass(type(thing), BuiltinFunctionType | MethodType):
        owner = thing.__self__
        if issubclass(type(owner), ModuleType):
            return f"{owner.__name__}.{thing.__name__}"
        owner = owner if issubclass(type(owner), type) else type(owner)
        return f"{owner.__module__}.{owner.__qualname__}.{thing.__name__}"
    if type(thing).__name__ == "cython_function_or_method":
        return f"{thing.__module__}.{thing.__name__}"
    return ""
