"""The folding walk: digests of values that share their parts too much, or are too deep, to be written out as a tree.

Equal values are one *class*: a class is interned by what is in it, scalars as they are and containers as classes, so
it is found in the order children first, by one tuple and one look into a table for each object. Then the classes are
written once each, from the root, numbered where they are first met. What is written depends on nothing but the
unfolded value: two objects that are equal are one class, whether they are one object or not.

A cyclic value raises ``NotATree``: only ``graphs`` knows what it unfolds to.
"""

from __future__ import annotations

import functools
import marshal
import math
import struct
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, count, islice, repeat
from types import EllipsisType, ModuleType
from typing import Any

from blake3 import blake3

from keel_notebook.payload.memory import Memory, text_memory
from keel_notebook.payload.shapes import Shape, Shapes
from keel_notebook.payload.trees import NotATree, is_namedtuple, sortable

_EXACT = frozenset({type(None), int, str, bytes})
"""Scalars that are equal only to what is the same: they stand for themselves (``1 == True == 1.0``, so no others)."""
_SCALARS = _EXACT | {bool, float, EllipsisType, type(NotImplemented)}
_SEQUENCES: dict[type, str] = {list: "list", tuple: "tuple"}
_SETS: dict[type, str] = {set: "set", frozenset: "frozenset"}
_LONG = 1 << 16
_CHUNK = 1 << 13
_MOST_SETS = 16
_REPEATED = 3
"""How often an object may be met anew on longer and longer ways before the order is found object by object."""
_PATIENCE = 1_000
_FEW_TYPES = 4
_FEW = 8
_WIDEST = 64

_MARSHAL = 2
"""The version that knows no references: equal values give equal bytes."""
_Head = str | complex


class FoldWalk:
    """The digests of values without cycles; what one walk has seen of the first it need not look at for the next.

    A class is a number, in the imaginary part of a complex one, which no scalar here is equal to.
    """

    def __init__(self, shapes: Shapes, key: bytes) -> None:
        self._shapes = shapes
        self._key = key
        self._taken: dict[int, Shape] = {}
        self._classes: dict[int, complex] = {}
        self._tables: defaultdict[_Head, dict[Any, complex]] = defaultdict(dict)
        self._fresh = map(complex, repeat(0.0), count(1))
        self._digests: dict[Any, bytes] = {}
        self._alive: list[Any] = []
        self._cyclic = False

    def digest(self, value: Any) -> bytes:
        """The digest of ``value``. Raises NotATree for a cycle, and Unknown for a value without a shape."""
        if self._cyclic:
            self._cyclic = False
            raise NotATree
        self.__dict__.pop("_content", None)
        for layer in self._children_first(value):
            for cls, members in _by_type(layer):
                self._intern(cls, members)
        return self._written(self._codes([value]), depth=0)

    def unfolds(self, value: Any) -> tuple[float, float]:
        """How many items the value has at least as a tree, and how deep that is at least; endless for a cycle."""
        items: dict[int, float] = {}
        depths: dict[int, float] = {}
        try:
            for layer in self._one_by_one(value):
                for part in layer:
                    inside = [
                        id(each) for each in self._inside(type(part), [part]) if not isinstance(each, type | ModuleType)
                    ]
                    own = len(part) if type(part) in _SEQUENCES or type(part) is dict else 0
                    items[id(part)] = own + sum(map(items.__getitem__, inside))
                    below = max(map(depths.__getitem__, inside), default=-1.0) if type(part) not in _SETS else -1.0
                    depths[id(part)] = below + 1
        except NotATree:
            self._cyclic = True
            return math.inf, math.inf
        return items.get(id(value), 0), depths.get(id(value), 0)

    # ---- in which order ----------------------------------------------------------------------------------

    def _children_first(self, value: Any) -> Iterator[list[Any]]:
        """All containers, in layers: whatever is in one comes in an earlier layer, or once more."""
        levels: list[dict[int, Any]] = []
        level = {id(part): part for part in self._parts_of([[value]])}
        seen: set[int] = set()
        met = 0
        while level:
            levels.append(level)
            seen.update(level)
            met += len(level)
            if met > _REPEATED * len(seen) + _PATIENCE:
                yield from self._one_by_one(value)
                return
            inside = [part for cls, members in _by_type(level.values()) for part in self._inside(cls, members)]
            level = dict(zip(map(id, inside), inside, strict=True))
        self._alive.append(levels)
        del seen
        for level in reversed(levels):
            yield [part for at, part in level.items() if at not in self._classes]

    def _one_by_one(self, value: Any) -> Iterator[list[Any]]:
        """The same for values in which long and short ways lead to one object, by looking at each object once."""
        heights: dict[int, int] = {}
        layers: defaultdict[int, list[Any]] = defaultdict(list)
        way: list[tuple[Any, Iterator[Any], list[int]]] = [(None, iter(self._parts_of([[value]])), [0])]
        open_now: set[int] = set()
        while way:
            thing, parts, height = way[-1]
            for part in parts:
                known = heights.get(id(part))
                if known is not None:
                    height[0] = max(height[0], known + 1)
                elif id(part) in open_now:
                    raise NotATree
                else:
                    open_now.add(id(part))
                    way.append((part, iter(self._inside(type(part), [part])), [0]))
                    break
            else:
                way.pop()
                if way:
                    open_now.discard(id(thing))
                    heights[id(thing)] = height[0]
                    layers[height[0]].append(thing)
                    way[-1][2][0] = max(way[-1][2][0], height[0] + 1)
        yield from (layers[height] for height in sorted(layers))

    def _inside(self, cls: type, members: list[Any]) -> list[Any]:
        """The containers in containers of one type, and the types that count as parts of them."""
        if cls in _SEQUENCES or cls in _SETS:
            return self._parts_of(members)
        if cls is dict:
            return self._parts_of_dicts(members)
        if is_namedtuple(cls):
            return [cls, *self._parts_of(members)]
        if self._shapes.layout(cls, members[0]) == ():
            return [cls, *self._parts_of_dicts([member.__dict__ for member in members])]
        return self._parts_of([self._shape(member).children for member in members])

    def _parts_of_dicts(self, members: Sequence[dict[Any, Any]]) -> list[Any]:
        return self._parts_of(list(map(dict.values, members))) + self._parts_of(members)

    @staticmethod
    def _parts_of(members: Sequence[Collection[Any]]) -> list[Any]:
        """What is no scalar among the items of the members."""
        parts: list[Any] = []
        for column in _columns(members):
            kinds = set(map(type, column))
            if kinds <= _SCALARS:
                continue
            parts += column if kinds.isdisjoint(_SCALARS) else [part for part in column if type(part) not in _SCALARS]
        return parts

    def _shape(self, value: Any) -> Shape:
        shape = self._taken.get(id(value))
        if shape is None:
            label, children, unordered = self._shapes.of(value)
            # Children may be made for the occasion: the shape keeps them, so that their identity means something.
            shape = self._taken[id(value)] = Shape(label, tuple(children), unordered)
            self._alive.append(value)
        return shape

    # ---- which are equal ---------------------------------------------------------------------------------

    def _intern(self, cls: type, members: list[Any]) -> None:
        """Give every member its class. Whatever is in them has one already."""
        heads: Iterable[_Head]
        rows: Iterable[Any]
        if cls in _SEQUENCES:
            heads, rows = repeat(_SEQUENCES[cls]), self._rows(members)
        elif cls is dict:
            heads, rows = self._keyed("keys", (), members), self._rows(list(map(dict.values, members)))
        elif cls in _SETS:
            heads, rows = self._set_rows(_SETS[cls], members)
        elif is_namedtuple(cls):
            heads, rows = repeat(self._one("named", (self._classes[id(cls)],))), self._rows(members)
        elif self._shapes.layout(cls, members[0]) == ():
            held = [member.__dict__ for member in members]
            heads = self._keyed("attributes", (self._classes[id(cls)],), held)
            rows = self._rows(list(map(dict.values, held)))
        else:
            heads, rows = self._shaped(members)
        ids = map(id, members)
        if isinstance(heads, repeat):
            table = self._tables[next(heads)]
            self._classes.update(zip(ids, map(table.setdefault, rows, self._fresh), strict=False))
        else:
            found = (self._one(head, row) for head, row in zip(heads, rows, strict=True))
            self._classes.update(zip(ids, found, strict=True))

    def _one(self, head: _Head, row: Any) -> complex:
        return self._tables[head].setdefault(row, next(self._fresh))

    def _keyed(self, tag: str, before: tuple[Any, ...], members: list[dict[Any, Any]]) -> Iterable[_Head]:
        """The heads of dicts: their keys, in order."""
        keys = list(map(tuple, members))
        if keys.count(keys[0]) == len(keys) and set(map(type, chain.from_iterable(keys))) <= {str}:
            return repeat(self._one(tag, (*before, *self._codes(keys[0]))))
        return [self._one(tag, (*before, *row)) for row in self._rows(keys)]

    def _rows(self, members: Sequence[Collection[Any]]) -> Iterator[tuple[Any, ...]]:
        """The codes of what is in the members, a tuple for each."""
        columns = _columns(members)
        if len(columns) != 1:
            return zip(*map(self._codes, columns), strict=True)
        codes = iter(self._codes(columns[0]))
        return map(tuple, map(islice, repeat(codes), list(map(len, members))))

    def _set_rows(self, tag: str, members: list[Any]) -> tuple[list[_Head], list[Any]]:
        heads: list[_Head] = []
        rows: list[Any] = []
        for member in members:
            values = list(member)
            if sortable(values):
                heads.append(f"sorted {tag}")
                rows.append(tuple(self._codes(sorted(values))))
            else:
                heads.append(tag)
                rows.append(frozenset(self._codes(values)))
        return heads, rows

    def _shaped(self, members: list[Any]) -> tuple[list[_Head], list[Any]]:
        heads: list[_Head] = []
        rows: list[Any] = []
        for member in members:
            shape = self._shape(member)
            codes = self._codes(list(shape.children))
            heads.append(self._one("shape", (shape.label,)))
            rows.append(frozenset(Counter(codes).items()) if shape.unordered else tuple(codes))
        return heads, rows

    def _codes(self, values: Sequence[Any]) -> Sequence[Any]:
        """What stands for each value in a row: equal for equal values, and for no others."""
        types = set(map(type, values))
        if not types <= _EXACT:
            if types == {float}:
                return _float_codes(values)
            code, classes = self._scalar_code, self._classes
            if types.isdisjoint(_SCALARS):
                return list(map(classes.__getitem__, map(id, values)))
            coded = [
                value if (cls := type(value)) in _EXACT else code(value) if cls in _SCALARS else classes[id(value)]
                for value in values
            ]
            values = coded
        for cls in types & {str, bytes}:
            if max(len(value) for value in values if type(value) is cls) >= _LONG:
                values = [self._shortened(value) if type(value) is cls else value for value in values]
        return values

    @staticmethod
    def _scalar_code(value: Any) -> Any:
        if type(value) is float:
            return _float_codes((value,))[0]
        return (repr(value),)  # one of True, False, Ellipsis and NotImplemented

    def _shortened(self, value: str | bytes) -> Any:
        if len(value) < _LONG:
            return value
        memory = text_memory(value) if isinstance(value, str) else Memory(len(value), lambda: (value,))
        return (type(value).__name__, memory.size, self._shapes.contents.digest(memory))

    # ---- what is hashed ----------------------------------------------------------------------------------

    def _written(self, codes: Sequence[Any], *, depth: int) -> bytes:
        """The digest of a row of codes, and of all that they lead to."""
        if depth > _MOST_SETS:
            raise NotATree
        state = blake3(b"folded;", key=self._key)
        numbers: dict[complex, float] = {}
        level = self._put(state, codes, numbers)
        while level:
            later: list[complex] = []
            for at in range(0, len(level), _CHUNK):
                heads, rows = zip(*map(self._content.__getitem__, level[at : at + _CHUNK]), strict=True)
                rows = tuple(row if type(row) is tuple else self._ordered(row, depth=depth + 1) for row in rows)
                later += self._put(state, heads, numbers)
                state.update(marshal.dumps(tuple(map(len, rows)), _MARSHAL))
                later += self._put(state, tuple(chain.from_iterable(rows)), numbers)
            level = later
        return state.digest()

    @staticmethod
    def _put(state: blake3, codes: Sequence[Any], numbers: dict[complex, float]) -> list[complex]:
        """Hash codes, with classes as numbers in the order in which they are first met. Gives the new ones."""
        classes = [code for code in codes if type(code) is complex]
        fresh = [code for code in dict.fromkeys(classes) if code not in numbers]
        numbers.update(zip(fresh, count(float(len(numbers)), 1.0), strict=False))
        if len(classes) == len(codes):
            codes = list(map(numbers.__getitem__, codes))
        elif classes:
            codes = [numbers[code] if type(code) is complex else code for code in codes]
        state.update(marshal.dumps(tuple(codes), _MARSHAL))
        return fresh

    @functools.cached_property
    def _content(self) -> dict[complex, tuple[_Head, Any]]:
        """Head and row of every class."""
        return {found: (head, row) for head, table in self._tables.items() for row, found in table.items()}

    def _ordered(self, row: frozenset[Any], *, depth: int) -> tuple[bytes, ...]:
        """The digests of what is in a set, in an order that does not depend on hashes (C34)."""
        return tuple(sorted(self._alone(code, depth=depth) for code in row))

    def _alone(self, code: Any, *, depth: int) -> bytes:
        digest = self._digests.get(code)
        if digest is None:
            parts = code if type(code) is tuple and code and type(code[0]) is complex else (code,)
            digest = self._digests[code] = self._written(parts, depth=depth)
        return digest


def _by_type(values: Iterable[Any]) -> Iterator[tuple[type, list[Any]]]:
    members = list(values)
    types = list(map(type, members))
    kinds = set(types)
    if len(kinds) == 1:
        yield types[0], members
    elif len(kinds) <= _FEW_TYPES:
        for cls in kinds:
            yield cls, [member for member in members if type(member) is cls]
    else:
        groups: defaultdict[type, list[Any]] = defaultdict(list)
        for cls, member in zip(types, members, strict=True):
            groups[cls].append(member)
        yield from groups.items()


def _columns(members: Sequence[Collection[Any]]) -> list[Sequence[Any]]:
    """The items of the members: as columns, which mostly hold one type each, where all have equally many."""
    lengths = set(map(len, members))
    if len(members) >= _FEW and len(lengths) == 1 and 1 < max(lengths) <= _WIDEST:
        return list(zip(*members, strict=True))
    return [list(chain.from_iterable(members))]


def _float_codes(values: Sequence[float]) -> list[tuple[int]]:
    """Floats by their bits, with one NaN; in tuples, so that they are not taken for numbers."""
    alike = [value if value == value else _NAN for value in values]  # noqa: PLR0124
    return list(zip(struct.unpack(f"<{len(alike)}q", struct.pack(f"<{len(alike)}d", *alike)), strict=True))


_NAN = float("nan")
