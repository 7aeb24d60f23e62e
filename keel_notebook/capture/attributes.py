"""Attributes of classes and modules that cells set: ``Cfg.lr = 3``, ``requests.get = fake`` (DESIGN 6, Modules).

A class of the notebook is never put back as a whole, or its instances would not be its instances any more; what a
step changes in it is put back attribute by attribute. Of a module nobody could compare all that is in it: attributes
count that the text of some cell sets.
"""

from __future__ import annotations

import ast
import re
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from keel_notebook.capture.parts import IMMUTABLE
from keel_notebook.core.dotted import REGISTERED, Registered, registered, value_at
from keel_notebook.core.harmless import SETTING_CALLS, dotted_name, is_dotted, last_name
from keel_notebook.core.model import Digest
from keel_notebook.core.ports import Digester
from keel_notebook.core.scopes import FUNCTIONS, Scope

_SETS = re.compile(r"\.\w+\s*(?:=[^=]|[-+*/%|&^@:<>]+=|,[^=\n]*=[^=])|\bdel\b|\b(?:set|del)attr\b|\bpatch\b")
_CODE = (
    types.FunctionType,
    staticmethod,
    classmethod,
    property,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
_MISSING = object()


class SetAttributes:
    """Attributes of modules that the cells of a kernel set, as their texts say."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._paths: dict[str, set[str]] = {}
        """Dotted names by their first part."""

    def note(self, source: str, tree: ast.Module) -> None:
        """Keep what a cell's text sets."""
        if _SETS.search(source):
            for path in attributes_set(tree):
                self._paths.setdefault(path.partition(".")[0], set()).add(path)

    def used_by(self, names: Iterable[str], modules: Iterable[str]) -> set[str]:
        """Of these attributes, those of the packages that code with these names and imports uses."""
        if not self._paths:
            return set()
        tops = {_top(module) for module in modules}
        tops |= {_home(self._namespace[name]) for name in names if name in self._namespace}
        tops.discard("")  # the notebook's own classes are compared whole
        return {path for root, paths in self._paths.items() if self.package(root) in tops for path in paths}

    def value(self, path: str) -> Any:
        """The value of an attribute. Raises KeyError or AttributeError where there is none."""
        root = path.partition(".")[0]
        return value_at(self._namespace if root in self._namespace else sys.modules, path)

    def package(self, path: str) -> str:
        """The package of the module or class that a dotted name starts with; "" where it is the notebook's own."""
        root = path.partition(".")[0]
        owner = self._namespace.get(root, sys.modules.get(root))
        return _home(owner) if issubclass(type(owner), types.ModuleType | type) else ""


def attributes_set(tree: ast.AST) -> Iterator[str]:
    """The dotted names that a text sets or deletes anywhere, nested code included.

    What functions set in their own variables (``self.x = 1``) goes by no name of the notebook.
    """
    todo: list[tuple[ast.AST, Scope]] = [(tree, Scope("module"))]
    while todo:
        node, scope = todo.pop()
        if (path := _attribute_set(node)) and scope.is_notebooks(path.partition(".")[0]):
            yield path
        inside = scope.function(node) if isinstance(node, FUNCTIONS) else scope
        inside = scope.class_body(node) if isinstance(node, ast.ClassDef) else inside
        todo += [(child, inside) for child in ast.iter_child_nodes(node)]


def _attribute_set(node: ast.AST) -> str:
    match node:
        case ast.Attribute(value=owner, attr=name, ctx=ast.Store() | ast.Del()) if is_dotted(owner):
            return f"{dotted_name(owner)}.{name}"
        case ast.Call(args=[owner, ast.Constant(value=str(name)), *_]) if is_dotted(owner):
            return f"{dotted_name(owner)}.{name}" if last_name(node.func) in SETTING_CALLS else ""
        case ast.Call(args=[ast.Constant(value=str(path)), *_]):
            return path if last_name(node.func) == "patch" and path.count(".") else ""
    return ""


def _home(value: Any) -> str:
    """The package that a value comes from: of a module itself, of anything else its class."""
    if issubclass(type(value), types.ModuleType):
        return _top(value.__name__)
    home = (value if issubclass(type(value), type) else type(value)).__module__
    return _top(home) if isinstance(home, str) and home not in ("__main__", "builtins") else ""


def _top(module: str) -> str:
    return module.lstrip(".").partition(".")[0].partition(":")[0]


class AttributesChanged(Struct, frozen=True):
    """What happened to attributes. Dotted names throughout."""

    put: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    owners: frozenset[int] = frozenset()
    """Ids of the classes whose change this describes."""
    nameless: tuple[str, ...] = ()
    """Attributes of classes to which no name of the notebook leads."""
    stayed: tuple[Any, ...] = ()
    """The values of those of ``put`` whose object stayed and whose content changed."""


class AttributeLook(Struct, frozen=True):
    """Attributes before a cell: each value, and its digest where it may change in place."""

    classes: Mapping[type, Mapping[str, tuple[Any, Digest | None]]] = field(default_factory=dict)
    paths: Mapping[str, tuple[Any, Digest | None]] = field(default_factory=dict)


class AttributeWatch:
    """Looks at attributes before and after a cell."""

    def __init__(self, namespace: Mapping[str, Any], digester: Digester, attributes: SetAttributes) -> None:
        self._namespace = namespace
        self._digester = digester
        self._attributes = attributes

    def before(self, classes: Iterable[type], paths: Iterable[str]) -> AttributeLook:
        """What the classes hold, and what stands under the paths."""
        held = {cls: {name: self._seen(value) for name, value in _held(cls)} for cls in classes}
        return AttributeLook(held, {path: self._seen(self._at(path)) for path in paths})

    def after(self, look: AttributeLook) -> AttributesChanged:
        """What is different now."""
        put: set[str] = set()
        gone: set[str] = set()
        owners: set[int] = set()
        nameless: set[str] = set()
        for cls, before in look.classes.items():
            changed, removed = self._changes(cls, before)
            if changed or removed:
                owners.add(id(cls))
                path = self._path_to(cls)
                if path is None:
                    nameless |= {f"{cls.__qualname__}.{name}" for name in changed | removed}
                else:
                    put |= {f"{path}.{name}" for name in changed}
                    gone |= {f"{path}.{name}" for name in removed}
        for path, seen in look.paths.items():
            if self._attributes.package(path):
                value = self._at(path)
                if value is _MISSING:
                    gone |= {path} if seen[0] is not _MISSING else set()
                elif self._differs(seen, value):
                    put.add(path)
        held = [seen for before in look.classes.values() for seen in before.values()]
        was = {id(value) for value, digest in (*held, *look.paths.values()) if digest is not None}
        stayed = tuple(value for path in sorted(put) if id(value := self._at(path)) in was)
        return AttributesChanged(
            tuple(sorted(put)), tuple(sorted(gone)), frozenset(owners), tuple(sorted(nameless)), stayed
        )

    def _changes(self, cls: type, before: Mapping[str, tuple[Any, Digest | None]]) -> tuple[set[str], set[str]]:
        now = dict(_held(cls))
        return {
            name for name, value in now.items() if self._differs(before.get(name), value)
        }, before.keys() - now.keys()

    def _seen(self, value: Any) -> tuple[Any, Digest | None]:
        apart = issubclass(type(value), (Registered, *_CODE, type, types.ModuleType))
        still = type(value) in IMMUTABLE or apart or value is _MISSING
        return value, None if still else self._digester.digest(value).digest

    def _differs(self, before: tuple[Any, Digest | None] | None, value: Any) -> bool:
        if issubclass(type(value), Registered):  # made anew for each look
            return before is None or before[0] != value
        if before is None or before[0] is not value:
            return True
        return before[1] is not None and before[1] != self._digester.digest(value).digest

    def _at(self, path: str) -> Any:
        try:
            return self._attributes.value(path)
        except (KeyError, AttributeError):
            return _MISSING

    def _path_to(self, cls: type) -> str | None:
        if self._at(cls.__qualname__) is cls:
            return str(cls.__qualname__)
        return next((name for name, value in list(self._namespace.items()) if value is cls), None)


def _held(cls: type) -> Iterator[tuple[str, Any]]:
    """What a class holds beside what Python itself keeps there."""
    for name, value in list(vars(cls).items()):
        if not (name.startswith("__") and name.endswith("__")) and type(value).__name__ != "_abc_data":
            yield name, value
    if others := registered(cls):
        yield REGISTERED, others
