"""What plain cells told libraries that keep it to themselves: ``sklearn.set_config(...)`` and its like.

The settings of some libraries are compared as they are (``ambient_libraries``). Of all others nobody knows where they
lie, or how they can be read. What is known is who was told what: calls of plain cells made for what they do, with
what they were given. That is an input of the steps that use the library; what it made of it is its own affair.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from blake3 import blake3

from keel_notebook.capture.sources import Sources
from keel_notebook.core.harmless import dotted_name, is_dotted, last_name
from keel_notebook.core.model import Digest

_COMPARED = frozenset({"numpy", "pandas", "matplotlib", "IPython", "ipykernel", "ipywidgets", "keel_notebook"})
"""Libraries whose settings are known themselves, or belong to the notebook's front end."""
_STATEFUL = frozenset({"csv", "gettext", "mimetypes", "socket", "ssl", "sys"})
"""Modules of Python that can be told something, beside those whose settings are compared."""
_TELLS = re.compile(
    r"_?(set|use|enable|disable|config|register|unregister|init|reset|switch|activate|deactivate|patch|install|setup|default"
    r"|add|option|apply|theme|style|allow|ignore|silence|filter|suppress|verbosity|basic_?config)",
    re.I,
)
"""How names of functions begin that are told something, whatever is done with what they return."""
_TELLS_NOBODY = re.compile(
    r"plot|map$|save|dump|write|print|show|display|download|upload|log|assert|test|draw|render|close|flush|send|post|sleep"
    r"|wait|copy|move|mkdir|makedirs|remove|export|to_|seed|read|load|fetch|hist|scatter|image|check|main|run|get|info|version|list|describe|help|is_|has_|count",
    re.I,
)
"""What names of functions hold that do something else than being told something. Seeds are known by themselves."""
_MOST, _DEEPEST = 100, 5
"""Calls of the notebook's functions that are looked into for one cell, and how deep they may be."""


class Told:
    """What the plain cells of one kernel told libraries."""

    def __init__(
        self, namespace: Mapping[str, Any], sources: Sources, digest: Callable[[Any], Digest | None], key: bytes
    ) -> None:
        self._namespace = namespace
        self._sources = sources
        self._digest = digest
        self._key = key
        self._calls: dict[str, dict[str, str]] = {}
        """By package: the calls, each with what it was given, in the order in which they were last made."""

    def note(self, tree: ast.AST) -> None:
        """A plain cell ran."""
        for made in self._made_by(tree):
            package = self._package(made[-1].func)
            if self.counts(package):
                text, calls = " > ".join(map(ast.unparse, made)), self._calls.setdefault(package, {})
                calls.pop(text, None)
                calls[text] = " ".join(given for call in made for given in self._given(call))

    def now(self, packages: Iterable[str]) -> dict[str, str]:
        """For each of the packages what it was told, as a digest; empty where it was told nothing."""
        return {package: self._token(self._calls.get(package)) for package in sorted(packages)}

    @staticmethod
    def counts(package: str) -> bool:
        """Whether it matters what a package was told."""
        known = package in _COMPARED or package in sys.stdlib_module_names
        return package in _STATEFUL or bool(package and not known)

    def _made_by(self, tree: ast.AST) -> Iterator[tuple[ast.Call, ...]]:
        """The calls of a cell that may tell somebody something; one in a function of the notebook behind the calls
        that lead there."""
        todo: list[tuple[ast.AST, tuple[ast.Call, ...]]] = [(tree, ())]
        seen: set[tuple[int, ...]] = set()
        while todo and len(seen) < _MOST:
            part, way = todo.pop(0)
            for call, alone in _calls(part):
                if not is_dotted(call.func):
                    continue
                name = last_name(call.func)
                if _TELLS.match(name) or (alone and not _TELLS_NOBODY.search(name)):
                    yield (*way, call)
                inner = self._sources.code_behind(dotted_name(call.func))
                if inner is not None and len(way) < _DEEPEST:
                    seen.add((*map(id, way), id(call)))
                    todo += [(node, (*way, call)) for node in _body(inner)]

    def _package(self, func: ast.expr) -> str:
        name = dotted_name(func)
        if name.partition(".")[0] not in self._namespace:
            return ""
        package = self._sources.full(name).partition(".")[0]
        return "" if package in ("", "builtins", "__main__") or self._sources.is_local(package) else package

    def _given(self, call: ast.Call) -> Iterator[str]:
        """What stands behind the names in a call's arguments; a client or the like counts by its type."""
        parts = (node for part in (*call.args, *call.keywords) for node in ast.walk(part))
        names = {node.id for node in parts if isinstance(node, ast.Name)}
        for name in sorted(names & self._namespace.keys()):
            value = self._namespace[name]
            yield f"{name}={self._digest(value) or type(value).__qualname__}"

    def _token(self, calls: Mapping[str, str] | None) -> str:
        if not calls:
            return ""
        return blake3(repr(list(calls.items())).encode("utf-8", "replace"), key=self._key).hexdigest(length=16)


def _body(inner: ast.AST) -> list[ast.stmt]:
    """The statements of a function whose definition was parsed; none for a class."""
    first = inner.body[0] if isinstance(inner, ast.Module) and inner.body else None
    return first.body if isinstance(first, ast.FunctionDef | ast.AsyncFunctionDef) else []


def _calls(tree: ast.AST) -> Iterator[tuple[ast.Call, bool]]:
    """The calls that running this code makes by itself, and whether what they return is thrown away."""
    alone = tree.value if isinstance(tree, ast.Expr) else None
    if isinstance(alone, ast.Await):
        alone = alone.value
    todo: list[tuple[ast.AST, bool]] = [(alone or tree, alone is not None)]
    while todo:
        node, thrown = todo.pop(0)
        if isinstance(node, ast.Call):
            yield node, thrown
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        for child in ast.iter_child_nodes(node):
            value = child.value if isinstance(child, ast.Expr) else child
            todo.append((value.value if isinstance(value, ast.Await) else value, isinstance(child, ast.Expr)))
