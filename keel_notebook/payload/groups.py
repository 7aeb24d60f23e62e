"""Objects in groups that are built alike, and the numbers that their classes are written with (see ``folds``)."""

from __future__ import annotations

import marshal
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain, compress, count, islice, repeat
from operator import eq
from typing import Any

from blake3 import blake3
from msgspec import Struct

from keel_notebook.payload.apart import Apart
from keel_notebook.payload.columns import Column

MARSHAL = 2
"""The version that knows no references: equal values give equal bytes."""
_FEW = 8
_SAMPLE = 64


class Group(Struct):
    """Objects of one type that were met together, with numbers that follow each other."""

    cls: type
    start: int
    members: Sequence[Any]
    apart: Apart
    inside: set[type]
    """The types of the containers that are in them."""
    columns: list[Column]

    @property
    def end(self) -> int:
        """The number after its last."""
        return self.start + len(self.members)

    @property
    def by_place(self) -> bool:
        """Whether all members have as many items, one in each column."""
        return self.apart.rows is None and self.apart.lengths is None


class Family(Struct):
    """All objects of one type."""

    groups: list[Group]
    inside: set[type]
    """The types of the containers that are in those of them that are no class of their own yet."""
    size: int = 0
    classes: int = 1
    bare: bool = False
    """No class is where another member has a scalar: the numbers of classes can stand for themselves."""

    def look(self) -> None:
        """Find out what is said of ``bare``, once all columns are there."""
        found = {each.kind for group in self.groups for each in group.columns} - {""}
        self.bare = "m" not in found and (len(found) <= 1 or self._alike_by_head())

    def _alike_by_head(self) -> bool:
        """Whether members with one head have a container where others have one, and a scalar where others have one."""
        kinds: dict[tuple[Hashable, int], str] = {}
        flat: defaultdict[Hashable, set[bool]] = defaultdict(set)
        for group in self.groups:
            if not isinstance(group.apart.heads, repeat):
                return False
            head = next(group.apart.heads)
            flat[head].add(group.by_place)
            for at, each in enumerate(group.columns):
                if each.kind and kinds.setdefault((head, at), each.kind) != each.kind:
                    return False
        return all(len(each) == 1 for each in flat.values())

    def distinct(self) -> set[Hashable]:
        """The heads whose members differ in a scalar of their own, each from every other."""
        alike: defaultdict[Hashable, list[list[Column]]] = defaultdict(list)
        others: set[Hashable] = set()
        for group in self.groups:
            heads = group.apart.heads
            if not isinstance(heads, repeat):
                others.update(heads)
            elif group.by_place:
                alike[next(heads)].append(group.columns)
            else:
                others.add(next(heads))
        return {head for head, found in alike.items() if head not in others and _in_some_place(found)}


def _in_some_place(members: list[list[Column]]) -> bool:
    return len(set(map(len, members))) == 1 and any(map(_all_differ, zip(*members, strict=True)))


def _all_differ(columns: tuple[Column, ...]) -> bool:
    """Whether no scalar is twice in columns of nothing but scalars."""
    if any(each.kind != "s" for each in columns):
        return False
    sample = list(islice(columns[0].scalars, _SAMPLE))
    if len(set(sample)) < len(sample):
        return False
    return len(set(chain.from_iterable(each.scalars for each in columns))) == sum(len(each.scalars) for each in columns)


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
        numbers, before = self._numbers, len(self._numbers)
        classes = list(map(self._classes.__getitem__, values.places))
        placed = list(map(numbers.setdefault, classes, list(range(before, before + len(classes)))))
        fresh: list[int] = []
        if len(numbers) - before == len(classes):
            fresh = classes
        elif len(numbers) > before:  # some were met before, or twice: the others move up
            fresh = list(compress(classes, map(eq, placed, count(before))))
            numbers.update(zip(fresh, count(before), strict=False))
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
    own = range(group.start, group.end)
    return all(sum(each.count(number) for each in found) == 1 for number in own)


def start_of(group: Group) -> int:
    """The number of its first object."""
    return group.start


def by_size(cls: type, members: list[Any]) -> Iterator[list[Any]]:
    """Members of one type; dicts by their size, where there are few kinds of them: mostly their keys are alike."""
    sizes = list(dict.fromkeys(map(len, members))) if cls is dict else []
    if not 1 < len(sizes) <= _FEW:
        yield members
        return
    for size in sizes:
        yield [each for each in members if len(each) == size]


def rows_of(codes: Sequence[Any], lengths: list[int]) -> Iterable[tuple[Any, ...]]:
    """Codes that lie one behind the other, as a tuple for each member."""
    found = set(lengths)
    width = max(found, default=0)
    if not found <= {0, width} or not width:
        return map(tuple, map(islice, repeat(iter(codes)), lengths))
    filled = zip(*[iter(codes)] * width, strict=True)
    if len(found) == 1:
        return filled
    rows = {0: repeat(()), width: filled}
    return map(next, map(rows.__getitem__, lengths))
