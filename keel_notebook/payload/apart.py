"""Containers of one type taken apart all at once: what each of them is, and columns of what is in them.

For the folding walk, which has a million objects to look at: the work for each of them is done in C.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain, cycle, islice, repeat
from operator import is_, itemgetter
from types import EllipsisType
from typing import Any

from msgspec import Struct

from keel_notebook.payload.shapes import Shape, Shapes, is_entity, is_namedtuple

EXACT = frozenset({type(None), int, str, bytes})
"""Scalars that are equal only to what is the same: they stand for themselves (``1 == True == 1.0``, so no others)."""
SCALARS = EXACT | {bool, float, EllipsisType, type(NotImplemented)}
SETS: dict[type, str] = {set: "set", frozenset: "frozenset"}
_SEQUENCES: dict[type, str] = {list: "list", tuple: "tuple"}
_FEW = 8
_WIDEST = 64


class Apart(Struct):
    """Members of one type. ``heads`` tell, with ``tag``, those apart that differ in more than what is in them."""

    tag: str
    heads: Iterable[Any]
    """One for each member: keys that are all texts, else how many keys; a label. Endless where all are alike."""
    columns: list[Sequence[Any]]
    lengths: list[int] | None = None
    """How many items each member has, where they are not columns but one behind the other."""
    types: tuple[type, ...] = ()
    """The class that counts as a part of every member."""
    rows: list[Shape] | None = None
    """Instead of columns: members that have no order, or labels of their own."""

    def uncolumned(self) -> list[Sequence[Any]]:
        """The containers in the members beside the columns, and the types that count as parts of them."""
        if self.rows is None:
            return [self.types]
        return [containers([list(chain.from_iterable(row.children for row in self.rows))]), self.types]

    def inside(self) -> list[Any]:
        """The containers in the members, and the types that count as parts of them."""
        return [*chain.from_iterable(self.uncolumned()), *containers(self.columns)]


class Takes:
    """Takes containers apart, and remembers the shapes of those that have to be asked one by one."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._taken: dict[int, Shape] = {}
        self._alive: list[Any] = []

    def apart(self, cls: type, members: Sequence[Any]) -> Apart:
        """What members of exactly this type are made of. Raises Unknown for what has no shape."""
        if cls in _SEQUENCES:
            return _listed(_SEQUENCES[cls], members)
        if cls is dict:
            return _keyed("dict", members)
        if cls in SETS:
            rows = [Shape(b"", tuple(member), unordered=True) for member in members]
            return Apart(SETS[cls], repeat(""), [], rows=rows)
        if is_namedtuple(cls):
            found = _listed("named", members)
            found.types = (cls,)
            return found
        if self._shapes.layout(cls, members[0]) == ():
            found = _keyed("attributes", [member.__dict__ for member in members])
            found.types = (cls,)
            return found
        rows = list(map(self._shape, members))
        return Apart("shape", [row.label for row in rows], [], rows=rows)

    def parts(self, thing: Any) -> list[Any]:
        """The containers in one container, and the type that counts as a part of it."""
        return self.apart(type(thing), [thing]).inside()

    def below(self, thing: Any, most: int) -> list[Any]:
        """The first containers in a list, a dict or an object that is its attributes; nothing for all others."""
        cls = type(thing)
        if cls in SCALARS or cls in SETS or is_entity(cls):
            return []
        if cls in _SEQUENCES or is_namedtuple(cls):
            parts = iter(thing)
        elif cls is dict or self._shapes.layout(cls, thing) == ():
            held = thing if cls is dict else thing.__dict__
            parts = iter(held.values()) if set(map(type, held)) <= {str} else chain(held, held.values())
        else:
            return []
        return list(islice((part for part in parts if type(part) not in SCALARS), most))

    def _shape(self, value: Any) -> Shape:
        shape = self._taken.get(id(value))
        if shape is None:
            label, children, unordered = self._shapes.of(value)
            # Children may be made for the occasion: the shape keeps them, so that their identity means something.
            shape = self._taken[id(value)] = Shape(label, tuple(children), unordered)
            self._alive.append(value)
        return shape


def containers(columns: Iterable[Sequence[Any]]) -> list[Any]:
    """What is no scalar in the columns."""
    parts: list[Any] = []
    for column in columns:
        kinds = set(map(type, column))
        if kinds <= SCALARS:
            continue
        parts += column if kinds.isdisjoint(SCALARS) else [part for part in column if type(part) not in SCALARS]
    return parts


def _listed(tag: str, members: Sequence[Collection[Any]]) -> Apart:
    lengths = list(map(len, members))
    width = lengths[0]
    if len(members) >= _FEW and 1 < width <= _WIDEST and lengths.count(width) == len(lengths):
        return Apart(tag, repeat(""), list(zip(*members, strict=True)))
    return Apart(tag, repeat(""), [list(chain.from_iterable(members))], lengths)


def _keyed(tag: str, members: Sequence[dict[Any, Any]]) -> Apart:
    first = tuple(members[0])
    if 0 < len(first) <= _WIDEST and set(map(type, first)) == {str} and _same_keys(first, members):
        return Apart(tag, repeat(first), [list(map(itemgetter(key), members)) for key in first])
    keys = list(map(tuple, members))
    if keys.count(first) == len(keys) and set(map(type, chain.from_iterable(keys))) <= {str}:
        if 0 < len(first) <= _WIDEST:
            return Apart(tag, repeat(first), [list(map(itemgetter(key), members)) for key in first])
        if len(members) == 1:
            return Apart(tag, repeat(first), [list(members[0].values())], [len(first)])
    heads: list[Any] = []
    flat: list[Any] = []
    lengths = []
    for member, each in zip(members, keys, strict=True):
        texts = set(map(type, each)) <= {str}
        heads.append(each if texts else len(each))
        before = len(flat)
        flat.extend(() if texts else each)
        flat.extend(member.values())
        lengths.append(len(flat) - before)
    return Apart(tag, heads, [flat], lengths)


def _same_keys(keys: tuple[str, ...], members: Sequence[dict[Any, Any]]) -> bool:
    """Whether the keys of all members are these very objects in this order: a quick look at what is mostly so."""
    lengths = list(map(len, members))
    return lengths.count(len(keys)) == len(members) and all(map(is_, chain.from_iterable(members), cycle(keys)))
