"""The fast walk: digests of values that unfold to a tree, level by level and column by column (DESIGN 10).

All values of a level are taken together, sorted by type, and each type is written by one call into C: a million
integers cost one ``struct.pack``, the records of a list are turned into columns first. What is hashed determines
the unfolded value completely and depends on nothing else, so sharing does not matter. Functions, classes and
modules are numbered where they are met and described once, at the end.

A value that is cyclic, or too large or too deep to be written out as a tree (``_DEEP``, ``_HUGE``) raises ``NotATree``
(traps 18). Which walk is taken is decided by the value alone, however its objects are shared.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, compress, islice
from operator import attrgetter
from typing import Any, Protocol

from blake3 import blake3

from keel_notebook.payload.memory import Memory, text_memory
from keel_notebook.payload.order import ORDERED, SCALARS, sortable
from keel_notebook.payload.shapes import Shapes, is_entity, is_namedtuple

_DEEP = 6
"""Levels of a record, however many there are of them. What is deeper has at most so many items:"""
_MANY = 1 << 19
_HUGE = 1 << 25
_SOME = 1 << 17
"""From so many items on it is asked whether the value is deep, before it is written out in vain."""
_MAX_DEPTH = 200
_ASKED = 50
_SORTED = 10
"""An object that has to be asked for its parts, or a set that has to be sorted, takes as long as so many items."""
_FEW, _MOST_WATCHED = 1 << 9, 1 << 14
_ASKING = 64
"""To look how far a container unfolds takes as long as to write so many items: no look takes longer than that."""
MAX_SETS = 16
_CHUNK = 1 << 13
_TEXT = 1 << 22
_WIDEST = 64

_attributes = attrgetter("__dict__")
_Write = Callable[["TreeWalk", Sequence[Any]], None]


class Fold(Protocol):
    """What the folding walk tells about a value, each decided by the value alone."""

    def unfolds(self, value: Any, *, most: int) -> tuple[float, float] | None:
        """At least how many items, at least how deep; None where that takes a look at more than ``most`` containers."""

    def deep(self, value: Any) -> bool:
        """Whether many ways lead far down right from the beginning."""


class NotATree(Exception):
    """The value is cyclic, too deep or too large as a tree: another walk has to look at it."""


class TreeWalk:
    """One digest. ``fold`` is asked about what grows large: no cycle is followed for long."""

    def __init__(self, shapes: Shapes, key: bytes, *, fold: Fold, sets: int = 0) -> None:
        self._shapes = shapes
        self._key = key
        self._sets = sets
        self._fold = fold
        self._sampled = False
        self._root: Any = None
        self._containers: set[int] = set()
        self._met = 0
        self._watching = True
        self._ask_at = 0
        self._state = blake3(key=key)
        self._codes = _Codes(self._define)
        self._writes: list[_Write] = []
        self._entities: dict[int, int] = {}
        self._queue: list[Any] = []
        self._next: list[Iterable[Any]] = []
        self.items = 0  # of containers, counted as often as they are met: 22 lists can unfold to millions
        self._inside = 0  # those met in members of sets, which are counted with the sets
        self._depth = 0

    def digest(self, value: Any) -> bytes:
        """The digest of ``value``. Raises NotATree, and Unknown for a value without a shape."""
        try:
            return self._digest(value)
        finally:
            del self._codes  # it leads back here: the value would live until the garbage is collected

    def _digest(self, value: Any) -> bytes:
        level: list[Iterable[Any]] = [(value,)]
        self._root = value
        while level:
            self._next = []
            for column in level:
                self._column(column)
            level = self._next
            self._depth += 1
            if level and self._depth > _MAX_DEPTH:
                raise NotATree
            if not level and self._queue:
                level, self._depth = self._described(), 0
        return self._state.digest()

    def _column(self, column: Iterable[Any]) -> None:
        if isinstance(column, list | tuple):
            for at in range(0, len(column), _CHUNK):
                self._chunk(column[at : at + _CHUNK] if len(column) > _CHUNK else column)
            return
        values = iter(column)
        while chunk := list(islice(values, _CHUNK)):
            self._chunk(chunk)

    def _chunk(self, chunk: Sequence[Any]) -> None:
        count = len(chunk)
        types = list(map(type, chunk))
        if types.count(types[0]) == count:
            code = self._codes[types[0]]
            self._put(b"one %d %d;" % (code, count))
            self._writes[code](self, chunk)
            return
        try:
            coded = bytes(map(self._codes.__getitem__, types))
        except ValueError:  # more types than a byte can number
            self._mixed(chunk, list(map(self._codes.__getitem__, types)))
            return
        self._put(b"mix %d;" % count + coded)
        for code in sorted(set(coded)):
            self._writes[code](self, list(compress(chunk, coded.translate(_mask(code)))))

    def _mixed(self, chunk: Sequence[Any], codes: list[int]) -> None:
        self._put(b"many %d;" % len(chunk) + struct.pack(f"<{len(codes)}I", *codes))
        members: dict[int, list[Any]] = {}
        for code, value in zip(codes, chunk, strict=True):
            members.setdefault(code, []).append(value)
        for code in sorted(members):
            self._writes[code](self, members[code])

    def _put(self, content: bytes) -> None:
        self._state.update(content)

    def _define(self, cls: type) -> int:
        """The number of a type, with a line that says what the number stands for."""
        code = len(self._writes)
        write = _WRITES.get(cls)
        if write is not None:
            self._put(b"type %d %s;" % (code, cls.__name__.encode()))
        elif is_entity(cls):
            self._put(b"type %d entity;" % code)
            write = TreeWalk._entity
        elif issubclass(cls, tuple) and is_namedtuple(cls):
            self._put(b"type %d named %d;" % (code, self._number(cls)))
            write = TreeWalk._rows
        else:
            self._put(b"type %d other;" % code)
            write = TreeWalk._other
        self._writes.append(write)
        return code

    def _number(self, entity: Any) -> int:
        number = self._entities.get(id(entity))
        if number is None:
            number = self._entities[id(entity)] = len(self._entities)
            self._queue.append(entity)
        return number

    def _described(self) -> list[Iterable[Any]]:
        """The functions and classes met so far: their labels are written, their children are the next level."""
        queue, self._queue = self._queue, []
        level: list[Iterable[Any]] = []
        for entity in queue:
            shape = self._shapes.of(entity)
            self._put(b"entity %d %d;" % (len(shape.label), len(children := tuple(shape.children))) + shape.label)
            level.append(children)
        return level

    def _entity(self, members: Sequence[Any]) -> None:
        self._put(struct.pack(f"<{len(members)}I", *map(self._number, members)))

    def _other(self, members: Sequence[Any]) -> None:
        """Values that are taken apart one by one, or all at once where attributes are all there is to them."""
        cls = type(members[0])
        layout = self._shapes.layout(cls, members[0])
        if layout is not None and self._laid_out(cls, layout, members):
            return
        labels: list[bytes] = []
        children: list[Sequence[Any]] = []
        for value in members:
            shape = self._shapes.of(value)
            parts = self._ordered(list(shape.children)) if shape.unordered else tuple(shape.children)
            labels.append(b"%d %d;%s" % (len(shape.label), len(parts), shape.label))
            children.append(parts)
        self._count(sum(map(len, children)) + _ASKED * len(members) + self._inside, members, costly=True)
        self._put(b"".join(labels))
        self._transposed(children, set(map(len, children)))

    def _laid_out(self, cls: type, slots: tuple[str, ...], members: Sequence[Any]) -> bool:
        """Instances whose attributes can all be read at once; False where some have slots that were never set."""
        if not slots:
            self._put(b"plain %d;" % self._number(cls))
            self._dicts(list(map(_attributes, members)))
            return True
        try:
            columns = [list(map(attrgetter(name), members)) for name in slots]
        except AttributeError:
            return False
        self._count(len(slots) * len(members), members)
        self._put(b"slots %d %d;" % (self._number(cls), len(slots)))
        self._texts(slots)
        self._next.extend(columns)
        return True

    def _count(self, items: int, containers: Sequence[Any], *, costly: bool = False) -> None:
        self.items += items
        self._inside = 0
        self._enough(self.items, self._depth)
        if self.items > _SOME and not self._sampled:
            self._sampled = True
            if self._fold.deep(self._root):
                raise NotATree
        if self._watching and (costly or self._depth >= _DEEP):
            self._containers.update(map(id, containers))
            self._met += len(containers)
            if len(self._containers) >= _MOST_WATCHED:
                self._watching = False
            elif self._met > 2 * len(self._containers) + _FEW and self.items >= self._ask_at:
                self._ask_at = 4 * self.items
                found = self._fold.unfolds(self._root, most=self.items // _ASKING)
                if found is not None:
                    self._watching = False
                    self._enough(*found)

    @staticmethod
    def _enough(items: float, depth: float) -> None:
        if items > (_MANY if depth >= _DEEP else _HUGE):
            raise NotATree

    def _none(self, members: Sequence[Any]) -> None:
        """A type with one value: the type says it all."""

    def _bools(self, members: Sequence[bool]) -> None:
        self._put(bytes(members))

    def _ints(self, members: Sequence[int]) -> None:
        try:
            self._put(b"q;" + struct.pack(f"<{len(members)}q", *members))
        except struct.error:
            self._put(b"long;")
            self._texts(list(map(hex, members)))

    def _floats(self, members: Sequence[float]) -> None:
        total = sum(members)
        if total != total:  # noqa: PLR0124 - NaN, of which there is only one here
            members = [value if value == value else _NAN for value in members]  # noqa: PLR0124
        self._put(struct.pack(f"<{len(members)}d", *members))

    def _texts(self, members: Sequence[str]) -> None:
        if sum(map(len, members)) > _TEXT:
            self._long([text_memory(text) for text in members])
            return
        joined = "\0".join(members)
        if joined.count("\0") != len(members) - 1:
            self._lengths(list(map(len, members)))
            joined = "".join(members)
        content = joined.encode("utf-8", "surrogatepass")
        self._put(b"%d;" % len(content) + content)

    def _bytes(self, members: Sequence[bytes]) -> None:
        if sum(map(len, members)) > _TEXT:
            self._long([Memory(len(content), lambda content=content: (content,)) for content in members])  # type: ignore[misc]
            return
        self._lengths(list(map(len, members)))
        self._put(b"".join(members))

    def _long(self, members: Iterable[Memory]) -> None:
        for memory in members:
            shape = self._shapes.of(memory)
            self._put(b"long %d;" % len(shape.label) + shape.label)

    def _lengths(self, lengths: list[int]) -> None:
        self._put(b"lengths;" + struct.pack(f"<{len(lengths)}Q", *lengths))

    def _rows(self, members: Sequence[Sequence[Any]]) -> None:
        lengths = list(map(len, members))
        self._count(sum(lengths), members)
        if lengths.count(lengths[0]) == len(lengths):
            self._put(b"rows %d;" % lengths[0])
        else:
            self._lengths(lengths)
        self._transposed(members, set(lengths))

    def _transposed(self, members: Sequence[Iterable[Any]], lengths: set[int]) -> None:
        """The items are the next level: as columns, which mostly hold one type each, where all rows are alike."""
        if len(lengths) == 1 and 0 < min(lengths) <= _WIDEST and len(members) >= 8:
            self._next.extend(zip(*members, strict=True))
        elif len(members) == 1:
            self._next.append(members[0])
        elif lengths != {0}:
            self._next.append(chain.from_iterable(members))

    def _dicts(self, members: Sequence[dict[Any, Any]]) -> None:
        self._count(sum(map(len, members)), members)
        keys = tuple(members[0])
        if 0 < len(keys) <= _WIDEST and list(map(tuple, members)).count(keys) == len(members):
            every = list(map(type, chain.from_iterable(members)))
            if every.count(str) == len(every):  # 1 == True == 1.0: only texts are equal only to texts
                self._put(b"records %d;" % len(keys))
                self._texts(keys)
                self._transposed(list(map(dict.values, members)), {len(keys)})
                return
        lengths = list(map(len, members))
        self._lengths(lengths)
        if any(lengths):
            self._next.append(chain.from_iterable(members))
            self._next.append(chain.from_iterable(map(dict.values, members)))

    def _set_members(self, members: Sequence[Iterable[Any]]) -> None:
        types = list(map(type, chain.from_iterable(members)))
        if types and types[0] in ORDERED and types.count(types[0]) == len(types):
            self._put(b"all sorted;")
            self._rows(list(map(sorted, members)))
            return
        ordered = [self._ordered(list(value)) for value in members]
        self._count(sum(map(len, ordered)) + _SORTED * len(members) + self._inside, members)
        self._lengths(list(map(len, ordered)))
        self._next.append(chain.from_iterable(ordered))

    def _ordered(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The members of a set in an order that does not depend on hashes (C34)."""
        if sortable(values):
            self._put(b"sorted;")
            return tuple(sorted(values))
        if all(type(value) in SCALARS for value in values):
            labelled = {self._label(value): value for value in values}
            if len(labelled) == len(values):  # long texts have no label of their own
                self._put(b"by label;")
                return tuple(labelled[each] for each in sorted(labelled))
        if self._sets >= MAX_SETS:
            raise NotATree
        self._put(b"digests;")
        return tuple(sorted(self._alone(value) for value in values))

    def _label(self, value: Any) -> bytes:
        return self._shapes.of(value).label

    def _alone(self, value: Any) -> bytes:
        walk = TreeWalk(self._shapes, self._key, fold=self._fold, sets=self._sets + 1)
        digest = walk.digest(value)
        self._inside += walk.items
        return digest


class _Codes(dict[type, int]):
    """Numbers of types, given when they are first asked for."""

    def __init__(self, define: Callable[[type], int]) -> None:
        super().__init__()
        self._define = define

    def __missing__(self, cls: type) -> int:
        # The definition may number other types on its way: reserve nothing before it is done.
        code = self._define(cls)
        self[cls] = code
        return code


_NAN = float("nan")
_MASKS: dict[int, bytes] = {}


def _mask(code: int) -> bytes:
    mask = _MASKS.get(code)
    if mask is None:
        mask = _MASKS[code] = bytes(code) + b"\1" + bytes(255 - code)
    return mask


_WRITES: dict[type, _Write] = {
    type(None): TreeWalk._none,
    type(...): TreeWalk._none,
    type(NotImplemented): TreeWalk._none,
    bool: TreeWalk._bools,
    int: TreeWalk._ints,
    float: TreeWalk._floats,
    str: TreeWalk._texts,
    bytes: TreeWalk._bytes,
    list: TreeWalk._rows,
    tuple: TreeWalk._rows,
    dict: TreeWalk._dicts,
    set: TreeWalk._set_members,
    frozenset: TreeWalk._set_members,
}
