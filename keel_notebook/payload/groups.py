"""Objects in groups that are built alike, and the numbers that their classes are written with (see ``folds``)."""

from __future__ import annotations

import marshal
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from typing import Any

from blake3 import blake3
from msgspec import Struct

from keel_notebook.payload.apart import Apart
from keel_notebook.payload.columns import Column

MARSHAL = 2
"""The version that knows no references: equal values give equal bytes."""
_FEW = 8


class Group(Struct):
    """Objects of one type that were met together, with numbers that follow each other."""

    cls: type
    start: int
    members: list[Any]
    apart: Apart
    inside: set[type]
    """The types of the containers that are in them."""
    columns: list[Column]


class Family(Struct):
    """All objects of one type."""

    groups: list[Group]
    inside: set[type]
    """The types of the containers that are in those of them that are no class of their own yet."""
    size: int = 0
    classes: int = 1


class Met:
    """The classes that were met so far, numbered in that order, and the state that all is hashed into."""

    def __init__(self, state: blake3, classes: list[int]) -> None:
        self.state = state
        self._classes = classes
        self._numbers: dict[int, int] = {}

    def put(self, values: Column) -> list[int]:
        """Hash a column, with its containers as the numbers of their classes. Gives the classes that are new."""
        if not values.places:
            self.state.update(marshal.dumps((0, list(values.scalars)), MARSHAL))
            return []
        numbers = self._numbers
        classes = list(map(self._classes.__getitem__, values.places))
        fresh = [each for each in dict.fromkeys(classes) if each not in numbers]
        numbers.update(zip(fresh, count(len(numbers)), strict=False))
        placed = list(map(numbers.__getitem__, classes))
        if values.gaps is None:
            self.state.update(marshal.dumps((1, placed), MARSHAL))
        else:
            self.state.update(marshal.dumps((2, placed, values.gaps, list(values.scalars)), MARSHAL))
        return fresh


def unlike(group: Group, found: list[list[int]]) -> bool:
    """Whether no member of a small group is equal to any other object of its type, as far as is known."""
    if len(group.members) > _FEW:
        return False
    own = range(group.start, group.start + len(group.members))
    return all(sum(each.count(number) for each in found) == 1 for number in own)


def start_of(group: Group) -> int:
    """The number of its first object."""
    return group.start


def by_type(members: list[Any]) -> Iterator[tuple[type, list[Any]]]:
    """The members by type; dicts also by their size, where there are few kinds of them: mostly their keys are alike."""
    groups: defaultdict[type, list[Any]] = defaultdict(list)
    types = list(map(type, members))
    if types.count(types[0]) == len(types):
        groups[types[0]] = members
    else:
        for cls, member in zip(types, members, strict=True):
            groups[cls].append(member)
    for cls, alike in groups.items():
        kinds = list(dict.fromkeys(map(len, alike))) if cls is dict else []
        if 1 < len(kinds) <= _FEW:
            for length in kinds:
                yield cls, [each for each in alike if len(each) == length]
        else:
            yield cls, alike
