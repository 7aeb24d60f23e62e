"""Shapes that make do with less: what can be compared of values that have no digest (traps 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec.structs import replace

from keel_notebook.connections import in_memory
from keel_notebook.core.ports import Definitions, Digested
from keel_notebook.payload import kinds, registry, widgets
from keel_notebook.payload.inward import is_foreign
from keel_notebook.payload.memory import Contents
from keel_notebook.payload.shapes import Shape, Shapes, Unknown, is_builtin, is_entity, keeps_cookies, label, one_way
from keel_notebook.payload.typename import type_name


class _Outliner(Protocol):
    def digest(self, value: Any) -> Digested: ...

    def outline(self, value: Any) -> Digested: ...


class OrOutline:
    """The port ``Digester`` for who asks about names: a value without a digest has its outline, marked as one."""

    def __init__(self, digester: _Outliner) -> None:
        self._digester = digester

    def digest(self, value: Any) -> Digested:
        """The digest of a value, else its outline, else why there is neither. Never raises."""
        found = self._digester.digest(value)
        if found.digest is not None:
            return found
        outline = self._digester.outline(value)
        return found if outline.digest is None else replace(outline, outline=True)


class ButCookies(Shapes):
    """Takes values apart like ``Shapes``, and leaves jars of cookies out: they change with every request."""

    def of(self, value: Any) -> Shape:
        """The shape of any value. Raises Unknown for what has none."""
        return Shape(label("cookies"), (type(value),)) if keeps_cookies(type(value)) else super().of(value)

    def layout(self, cls: type, sample: Any) -> tuple[str, ...] | None:
        """Where all there is to instances of ``cls`` lies; None for jars."""
        return None if keeps_cookies(cls) else super().layout(cls, sample)


class Outlines(Shapes):
    """Takes values apart like ``Shapes``; an object of a library that has no digest is only its type.

    All of it or nothing: clients change by being used (a connection in the pool), so the parts of one that happen to
    have digests say nothing. But where nothing except its cookies keeps one from having a digest, like a session of
    requests, what a person set in it (headers, proxies) counts.
    """

    def __init__(
        self,
        definitions: Definitions,
        contents: Contents,
        *,
        strict: Callable[[Any], Digested],
        but_cookies: Callable[[Any], Digested],
    ) -> None:
        super().__init__(definitions, contents)
        self._strict = strict
        self._but_cookies = but_cookies
        self._asked: dict[int, tuple[Any, Shape]] = {}
        self.by_type: list[Any] = []
        """Objects that were found to have no digest, and counted by their type, or by all but their cookies."""
        self.foreign = False
        """Whether something was among the rest that may be a client and has a digest all the same."""

    def of(self, value: Any) -> Shape:
        """The shape of any value. Raises Unknown for generators, iterators and open files."""
        cls = type(value)
        if one_way(cls):
            raise Unknown(value, type_name(cls))
        if not self._from_a_library(cls):
            return super().of(value)
        known = self._asked.get(id(value))
        if known is None:
            known = self._asked[id(value)] = (value, self._whole(value))
        return known[1]

    def layout(self, cls: type, sample: Any) -> tuple[str, ...] | None:
        """Where all there is to instances of ``cls`` lies; None for objects of libraries, which are asked first."""
        return None if self._from_a_library(cls) else super().layout(cls, sample)

    def _whole(self, value: Any) -> Shape:
        found = self._strict(value)
        self.reaches |= found.reaches
        self.weak |= found.weak
        if found.digest is not None:
            self.foreign |= is_foreign(type(value))
            return Shape(label("whole", found.digest))
        self.weak = True
        self.by_type.append(value)
        if widgets.is_widget(type(value)):
            return Shape(b"widget as shown", widgets.outlined(value))
        rest = self._but_cookies(value)
        if rest.digest is not None:
            self.reaches |= rest.reaches
            return Shape(label("all but cookies", rest.digest), (type(value),))
        return Shape(label("only its type", in_memory(value)), (type(value),))

    def _from_a_library(self, cls: type) -> bool:
        if is_builtin(cls) or is_entity(cls) or kinds.find(cls) or registry.find(cls):
            return False
        return not self.definitions.belongs(cls) and not self.definitions.is_local(cls.__module__)
