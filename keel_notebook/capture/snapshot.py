"""The namespace before a cell, for the question what the cell did to it."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from itertools import compress, repeat
from operator import is_not
from typing import Any

from msgspec import Struct, field

from keel_notebook.capture.attributes import AttributeLook
from keel_notebook.capture.objects import ObjectLook
from keel_notebook.core.ports import Digested
from keel_notebook.core.reads import CellNames

_MISSING = object()


class Snapshot(Struct):
    """The namespace before a cell. It keeps no value alive that the cell replaces for sure."""

    cell: CellNames
    by_functions: frozenset[str]
    """Names that functions of other cells may bind through ``global``."""
    taken: frozenset[str]
    """Names that existed and whose values are not kept here."""
    old: dict[str, Any]
    weak: dict[str, weakref.ref[Any]]
    watched: dict[str, Digested]
    """Digests of values that the cell may change in place, for every name bound to them."""
    attributes: AttributeLook
    libraries: Digested | None
    too_large: frozenset[str]
    """Names whose values it may change as well, and that were not to be digested."""
    objects: ObjectLook = field(default_factory=ObjectLook)
    """Which names share objects, as far as that may matter to the cell."""

    def differing(self, namespace: Mapping[str, Any]) -> set[str]:
        """Names that are bound to another object than before, as far as their old ones are kept here."""
        # No loop in Python: a namespace may hold thousands of names, and this runs after every cell.
        found = set(
            compress(namespace, map(is_not, namespace.values(), map(self.old.get, namespace, repeat(_MISSING))))
        )
        for name, ref in self.weak.items():
            value = ref()
            if value is not None and value is namespace.get(name):
                found.discard(name)
        return found

    def missing(self, namespace: Mapping[str, Any], differing: set[str]) -> set[str]:
        """Names that existed and do not any more."""
        may_miss = {*self.taken, *self.weak}
        there = len(namespace) - sum(name not in self.old for name in differing | may_miss if name in namespace)
        if there != len(self.old):
            may_miss.update(self.old)
        return {name for name in may_miss if name not in namespace}
