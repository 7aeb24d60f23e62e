"""Which objects a small value can hold at all, so that nothing else is looked through on its account."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

COPIED: Final = frozenset({int, float, complex, bool, type(None)})
"""Types whose values are never referred to: one is as good as another."""
_ATOMS: Final = COPIED | {str, bytes}
_FLAT: Final = frozenset({list, tuple, set, frozenset})
_MOST: Final = 10_000
"""Items, and bytes of a text: what is larger is worth a closer look than this one."""


def identities_within(values: Iterable[Any]) -> frozenset[int] | None:
    """The ``id`` of every object in ``values`` that somebody could refer to; None where it takes a walk to tell.

    Numbers never count, texts only where they are values themselves.
    """
    found = set()
    for value in values:
        kind = type(value)
        if kind in COPIED:
            continue
        found.add(id(value))
        if kind in _ATOMS:
            continue
        if kind is dict:
            parts: tuple[Collection[Any], ...] = (value, value.values())
        elif kind in _FLAT:
            parts = (value,)
        else:
            return None
        for part in parts:
            if len(part) > _MOST or not _ATOMS.issuperset(map(type, part)):
                return None
            if any(len(item) > _MOST for item in part if type(item) in {str, bytes}):
                return None
    return frozenset(found)
