"""Names that share an object, or a part of one."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping
from itertools import compress, islice
from typing import Any

from msgspec import Struct

from keel_notebook.capture.parts import MOST, inside, is_memory, may_change, parts, too_large

__all__ = ["Shared", "arrays_under", "bound_to_same", "changed_with", "held_elsewhere", "sharing"]

_MOST_PER_NAME = 200
_MOST_STEPS = 20_000


def bound_to_same(namespace: Mapping[str, Any], ids: Container[int]) -> dict[int, list[str]]:
    """For each of the object ids, the names bound to that object."""
    groups: dict[int, list[str]] = {}
    for name in compress(namespace, map(ids.__contains__, map(id, namespace.values()))):
        groups.setdefault(id(namespace[name]), []).append(name)
    return groups


class Shared(Struct, frozen=True):
    """Names that hold a changed value, or a part of one. Those of ``apart`` would not hold it any more after both
    came back from a record: an array and the bytes that it lies on."""

    names: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()


def sharing(changed: Iterable[Any], namespace: Mapping[str, Any], *, without: Collection[int]) -> Shared:
    """Names whose value holds a changed value, or a part of one, within reason; never by way of the ids ``without``.

    It looks into every kind of object, so far as a few thousand steps lead: an answer for ``boxes = [row];
    row.append(1)``, for ``opt`` that holds the parameters of ``model``, for ``callback = rows.append``.
    """
    ways: dict[int, str] = {}
    for value in changed:
        for part, way in islice(parts(value, without), MOST):
            if part is value or may_change(part):
                ways[id(part)] = way
    found, apart, left = set[str](), set[str](), _MOST_STEPS
    for name, value in namespace.items():
        for part, way in islice(parts(value, without), max(0, min(left, _MOST_PER_NAME))):
            left -= 1
            if id(part) in ways and _together(ways[id(part)], part):
                found.add(name)
                if ways[id(part)] != way and "buffer" in (ways[id(part)], way) and is_memory(part):
                    apart.add(name)
                break
    return Shared(frozenset(found), frozenset(apart))


def changed_with(
    suspects: Collection[str], names: Collection[str], namespace: Mapping[str, Any], *, without: Collection[int]
) -> set[str]:
    """Of ``names``, those that change where a suspect does: it is one of them, or they share an object with it, or
    hold an instance of it. Never by way of the ids ``without``."""
    if not suspects or not names:
        return set()
    values = [namespace[name] for name in suspects if name in namespace]
    classes = tuple(value for value in values if issubclass(type(value), type))
    there = {name: namespace[name] for name in names if name in namespace}
    instances = {
        name
        for name, value in (there if classes else {}).items()
        if any(issubclass(type(part), classes) for part, _ in islice(parts(value, without), _MOST_PER_NAME))
    }
    return {*suspects} & {*names} | sharing(values, there, without=without).names | instances


def _together(way: str, part: Any) -> bool:
    # pandas copies before it writes what another frame or array has as well; who writes past it changes all.
    return not (way == "frame" and type(part).__name__ == "ndarray")


def arrays_under(frames: Iterable[Any], others: Mapping[str, Any], *, without: Collection[int]) -> set[str]:
    """Names of arrays that lie on the memory of one of the frames (``x = df["x"].values``), and of what holds one."""
    under = {id(part) for frame in frames for part, _ in parts(frame) if type(part).__name__ == "ndarray"}
    found, left = set[str](), _MOST_STEPS
    for name, value in others.items():
        for part, way in islice(parts(value, without), max(0, min(left, _MOST_PER_NAME))):
            left -= 1
            if id(part) in under and _together(way, part):
                found.add(name)
                break
    return found


def held_elsewhere(namespace: Mapping[str, Any], name: str, references: int, *, without: Collection[int]) -> bool:
    """Whether anything but ``references`` to it, and its own parts, holds a variable's value or a part of it.

    References are counted: what is held more often than its own parts can explain has another holder. Where the
    count cannot tell, the answer is yes.
    """
    held = [part for part, _ in islice(parts(namespace[name], without), MOST)]
    if len(held) == MOST or any(map(too_large, held)):
        return True
    inner = Counter(id(part) for thing in held for part in inside(thing))
    inner[id(namespace[name])] += references
    counts = map(sys.getrefcount, held)
    return any(count - _OWN > inner[id(thing)] for count, thing in zip(counts, held, strict=True) if may_change(thing))


_OWN = next(map(sys.getrefcount, [object()]))
"""References that the count itself makes."""
