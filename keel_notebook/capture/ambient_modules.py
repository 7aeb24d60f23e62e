"""Plain values that a step sets in a local module: ``config.LR = 0.1``, ``Settings.mode = "fast"`` (DESIGN 6, Modules).

Installed libraries are not looked into. A value that is no plain one cannot be put back: it is named.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import marshal
import sys
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import msgpack

from keel_notebook.capture.ambient_part import Lost
from keel_notebook.capture.installed import is_installed, is_of_installed
from keel_notebook.capture.loads import LOADS
from keel_notebook.capture.variables import add_attributes, attributes_of, public_variables
from keel_notebook.capture.wire import NotPlainError, from_wire, to_wire

_LARGE = 1 << 16
"""Bytes from which on a container is no longer compared by content: only whether another one took its place."""
_ATOMS: frozenset[type] = frozenset({int, float, bool, str, bytes, complex, type(None)})
_CONTAINERS: frozenset[type] = frozenset({list, dict, set, tuple, frozenset})
_DEFINITIONS = (FunctionType, BuiltinFunctionType, type, ModuleType, staticmethod, classmethod, property)
_PLAIN = _ATOMS | _CONTAINERS
_CODE = frozenset({FunctionType, BuiltinFunctionType, ModuleType})


class ModuleGlobals:
    """Globals and class attributes of the modules that belong to the person, not to an installed library."""

    name = "modules"

    def __init__(self) -> None:
        self._local: list[str] = []
        self._seen: set[str] = set()
        self._newest: tuple[int, str] = (0, "")
        self._large: set[tuple[str, str]] = set()

    def look(self) -> Any:
        """A fingerprint of each value, by module: see ``_look``."""
        self._find_new()
        look: dict[str, list[Any]] = {}
        for name in self._local:
            module = sys.modules.get(name)
            if isinstance(module, ModuleType):
                look[name] = self._look(name, module)
        return look

    def _look(self, name: str, module: ModuleType) -> list[Any]:
        """Path, type and fingerprint of each value of one module, one after the other.

        Before and after every step, of every module: one way through its variables, in which most are code, and one
        flat list, because thousands of small objects would call Python's cycle collector.
        """
        found: list[Any] = []
        inside: list[tuple[str, Any]] = []
        for path, value in list(vars(module).items()):
            kind = type(value)
            if kind in _CODE or path[:2] == "__":
                continue
            if kind in _ATOMS:
                found += path, kind, value
            elif kind in _CONTAINERS:
                found += path, kind, self._content(name, path, value)
            else:
                if path[:1] != "_":
                    add_attributes(module, path, value, _PLAIN, inside)
                if not isinstance(value, _DEFINITIONS):
                    found += path, "object", id(value)
        for path, value in inside:
            kind = type(value)
            found += path, kind, value if kind in _ATOMS else self._content(name, path, value)
        return found

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """``[module, attribute, value]`` for what was set, ``[module, attribute]`` for what is gone."""
        changes: list[list[Any]] = []
        for name in sorted(after):
            now, old = _by_path(after[name]), _by_path(before[name]) if name in before else None
            values = dict(_attributes(sys.modules[name]))
            if old is None:
                differs = _set_since_import(sys.modules[name], values)
            else:
                differs = [path for path in now if path not in old or old[path] != now[path]]
                changes += [[name, path] for path in sorted(old.keys() - now.keys())]
            for path in sorted(differs):
                try:
                    changes.append([name, path, to_wire(values[path])])
                except NotPlainError as problem:
                    lost.append(f"{name}.{path}: it is a {problem}")
        return changes or None

    def put(self, change: Any, lost: Lost) -> None:
        """Set and delete, in the modules as they are loaded here."""
        for name, path, *value in change:
            *outer, attribute = path.split(".")
            try:
                owner: Any = importlib.import_module(name)
                for part in outer:
                    owner = getattr(owner, part)
                if value:
                    if not _holds(owner, attribute, value[0]):  # else it is the object that names hold as well
                        setattr(owner, attribute, from_wire(value[0]))
                elif hasattr(owner, attribute):
                    delattr(owner, attribute)
            except (ImportError, AttributeError) as problem:
                lost.append(f"{name}.{path}: {type(problem).__name__}")

    def _find_new(self) -> None:
        newest = (len(sys.modules), next(reversed(sys.modules)))
        if newest == self._newest:
            return
        self._newest = newest
        new = [name for name in list(sys.modules) if name not in self._seen]
        self._seen.update(new)
        own = (name for name in new if not is_of_installed(name))
        self._local += [name for name in own if _is_local(name, sys.modules.get(name))]

    def _content(self, module: str, path: str, value: Any) -> Any:
        if (module, path) not in self._large:
            try:
                content = marshal.dumps(value, 2)
            except ValueError:
                return "object", id(value)
            if len(content) <= _LARGE:
                return content
            self._large.add((module, path))
        return "object", id(value), len(value)


def _by_path(look: list[Any]) -> dict[str, tuple[Any, Any]]:
    """What ``ModuleGlobals`` found of one module, by path."""
    return {look[at]: (look[at + 1], look[at + 2]) for at in range(0, len(look), 3)}


def _holds(owner: Any, attribute: str, wire: Any) -> bool:
    """Whether an attribute holds this content already."""
    try:
        return bool(msgpack.packb(to_wire(getattr(owner, attribute))) == msgpack.packb(wire))  # 1 is not True
    except (AttributeError, NotPlainError):
        return False


def _attributes(module: ModuleType) -> list[tuple[str, Any]]:
    """Values that a cell may have set: globals, and attributes of classes and of settings that the module holds."""
    found = [
        (name, value)
        for name, value in list(vars(module).items())
        if (kind := type(value)) not in _CODE
        and name[:2] != "__"
        and (kind in _PLAIN or not isinstance(value, _DEFINITIONS))
    ]
    return found + attributes_of(module, _PLAIN)


def _set_since_import(module: ModuleType, values: Mapping[str, Any]) -> list[str]:
    """What is not as the import left it, in a module that the step itself imported.

    Known where the loading was watched; else, and for attributes of classes, what the source sets to a literal.
    """
    load = LOADS.get(getattr(module, "__file__", None) or "")
    left = load.variables if load is not None else None
    differs = {path for path, literal in _literals(module) if path in values and not _same(values[path], literal)}
    if left is not None:
        differs = {path for path in differs if path not in left}
        differs |= {name for name, value in public_variables(module).items() if left.get(name) != value}
    return sorted(differs)


def _literals(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Globals and class attributes that the source sets once, to a literal: the value they had after the import."""
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return
    yield from _literals_in(tree.body, "")
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _literals_in(node.body, f"{node.name}.")


def _literals_in(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Any]]:
    found: dict[str, list[ast.expr | None]] = {}
    for node in body:
        for inner in ast.walk(node) if not isinstance(node, ast.FunctionDef | ast.ClassDef) else ():
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                direct = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
                found.setdefault(inner.id, []).append(direct)
    for name, values in found.items():
        if len(values) == 1 and values[0] is not None:
            try:
                yield prefix + name, ast.literal_eval(values[0])
            except (ValueError, TypeError, SyntaxError, MemoryError):
                continue  # computed: what it was after the import is not known


def _same(value: Any, literal: Any) -> bool:
    return type(value) is type(literal) and bool(value == literal)


def _is_local(name: str, module: Any) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and name != "__main__" and not is_installed(file)
