"""Which names share objects before a cell that may change one, or that asks (port: ``Changed.objects``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from itertools import islice
from types import BuiltinFunctionType, FunctionType
from typing import Any

from msgspec import Struct, field

from keel_notebook.capture.definitions import NotebookDefinitions
from keel_notebook.capture.namespace import is_data, persons_names
from keel_notebook.capture.parts import CLOSED, IMMUTABLE, may_change
from keel_notebook.capture.patterns import Spread, inner, layout, spread
from keel_notebook.capture.replaced import Links, links, replaced
from keel_notebook.core.asks import NOTHING, Asks, asks_of_text
from keel_notebook.core.reads import CellNames
from keel_notebook.core.sharing import IDENTITY, LAYOUT, SHARING, AsItIs

_PYTHONS = frozenset({list, dict, set, tuple, frozenset, bytearray})
"""Types that no operator changes: what may change such a value is a call, or an assignment to a part of it."""


class ObjectLook(Struct, frozen=True):
    """What was seen of objects before a cell."""

    spread: Spread = field(default_factory=Spread)
    asked: Spread | None = None
    """Of the inputs of a cell whose code asks which of them are one."""
    layouts: Mapping[str, str] = field(default_factory=dict)
    rebinding: frozenset[str] = frozenset()
    """Names that the cell may change in place before it binds them anew."""
    links: Mapping[str, Links] = field(default_factory=dict)
    """Which objects stood where in the values that it may change."""

    def told(self, in_place: Collection[str], rebound: Collection[str]) -> dict[str, Any]:
        """What a record keeps of it, once it is known what changed."""
        kept: dict[str, Any] = {}
        changed = {*in_place, *(self.rebinding & set(rebound))}
        if changed & self.spread.places.keys():
            kept[SHARING] = self.spread.pattern(changed).told()
        if self.asked is not None:
            kept[IDENTITY] = self.asked.pattern(self.asked.places).told()
        if self.layouts:
            kept[LAYOUT] = dict(self.layouts)
        return kept


class Objects:
    """Looks at the objects of a shell's namespace."""

    def __init__(self, shell: Any, definitions: NotebookDefinitions) -> None:
        self._shell = shell
        self._definitions = definitions

    def before(self, cell: CellNames, watched: Iterable[str], inputs: Iterable[str], touched: Set[str]) -> ObjectLook:
        """Before a cell: ``watched`` are names whose values it may change, ``touched`` those that it mentions so."""
        namespace: dict[str, Any] = self._shell.user_ns.copy()
        there = [name for name in inputs if name in namespace]
        asks = self._asks(cell, there, namespace)
        asked = there if asks.identity else self._told_by_identity(there, namespace) if asks.equality else []
        suspects = {
            name for name in watched if may_change(namespace[name]) and self._suspected(name, namespace, touched)
        }
        rebinding = {name for name in suspects & touched if name in asks.augmented or not is_data(namespace[name])} & (
            cell.stores | cell.maybe_stores | cell.deletes
        )
        return ObjectLook(
            spread=self._spread(suspects, namespace) if suspects else Spread(),
            asked=inner(asked, namespace, without=self._ipythons()) if asked else None,
            layouts=self._layouts(there, namespace) if asks.layout else {},
            rebinding=frozenset(rebinding),
            links={name: links(namespace[name], self._is_own, self._ipythons()) for name in suspects & touched},
        )

    def replaced(self, look: ObjectLook, name: str, value: Any) -> bool:
        """Whether the cell put another object of the same content into a value."""
        before = look.links.get(name)
        return before is not None and replaced(before, value, self._is_own, self._ipythons())

    def _is_own(self, kind: type) -> bool:
        module = kind.__module__
        return module == "__main__" or (type(module) is str and self._definitions.is_local(module))

    @staticmethod
    def _suspected(name: str, namespace: Mapping[str, Any], touched: Collection[str]) -> bool:
        value = namespace[name]
        return name in touched or type(value) not in _PYTHONS or any(namespace.get(other) is value for other in touched)

    def now(self, ambient: Mapping[str, Any], put_back: frozenset[str]) -> AsItIs:
        """What a record speaks of, as it is now."""
        namespace: dict[str, Any] = self._shell.user_ns.copy()
        sharing = identity = None
        if SHARING in ambient:
            of = [name for name in ambient[SHARING]["of"] if name in namespace]
            sharing = self._spread(of, namespace).pattern(of)
        if IDENTITY in ambient:
            of = [name for name in ambient[IDENTITY]["of"] if name in namespace]
            identity = inner(of, namespace, without=self._ipythons()).pattern(of)
        layouts = self._layouts([name for name in ambient.get(LAYOUT, ()) if name in namespace], namespace)
        return AsItIs(sharing, identity, layouts, put_back)

    def _spread(self, names: Collection[str], namespace: Mapping[str, Any]) -> Spread:
        return spread(names, namespace, persons_names(self._shell), without=self._ipythons())

    def _told_by_identity(self, names: Iterable[str], namespace: Mapping[str, Any]) -> list[str]:
        """Names that may hold objects which are equal to themselves alone."""
        deep = any(map(_by_identity, self._definitions.classes()))
        return [name for name in names if (deep and type(namespace[name]) in _PYTHONS) or _holds_such(namespace[name])]

    def _layouts(self, names: Iterable[str], namespace: Mapping[str, Any]) -> dict[str, str]:
        found = {name: layout(namespace[name], self._ipythons()) for name in names}
        return {name: told for name, told in found.items() if told}

    def _asks(self, cell: CellNames, names: Iterable[str], namespace: Mapping[str, Any]) -> Asks:
        found = cell.asks
        for name in names:
            value = namespace[name]
            kind = type(value)  # isinstance would ask lazy proxies who they are
            code = value if issubclass(kind, FunctionType | type) else kind
            if code.__module__ != "builtins":
                found |= asks_of_text(text) if (text := self._definitions.source_of(code)) else NOTHING
        return found

    def _ipythons(self) -> set[int]:
        return {id(self._shell), id(self._shell.user_ns)}


def _by_identity(kind: type) -> bool:
    """Whether instances of a class are equal to nothing but themselves."""
    return vars(object)["__eq__"] is getattr(kind, "__eq__", None) and not issubclass(kind, (*CLOSED, BaseException))


def _holds_such(value: Any) -> bool:
    if type(value) not in _PYTHONS:
        return _by_identity(type(value)) and not issubclass(type(value), FunctionType | BuiltinFunctionType)
    held = dict.values(value) if type(value) is dict else value
    return any(type(each) not in IMMUTABLE and _by_identity(type(each)) for each in islice(held, _FEW))


_FEW = 50
"""How many items of a container are looked at to tell what it holds."""
