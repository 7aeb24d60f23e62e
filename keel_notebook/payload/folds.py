"""The folding walk: digests of values that share their parts too much, or are too deep, to be written out as a tree.

Equal values are one *class*. Which are equal is found by refinement: first by what they hold themselves, then again and
again by the classes of what is in them, until nothing new is told apart. That is quick, because objects mostly have
names of their own, and right for cycles too. Where it takes many rounds, the order children first is looked for, in
which one round is enough. Then the classes are written once each, from the root, numbered where they are first met.
What is written depends on nothing but the unfolded value: two objects that are equal are one class, whether they are
one object or not.

A cyclic value that takes many rounds, or that holds a set in a cycle, raises ``NotATree``: ``graphs`` is more patient.
"""

from __future__ import annotations

import marshal
import math
import operator
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, repeat
from types import MappingProxyType, ModuleType
from typing import Any

from blake3 import blake3

from keel_notebook.payload.apart import SETS, Apart, Takes, containers
from keel_notebook.payload.columns import Column, Opened, column, opened
from keel_notebook.payload.groups import MARSHAL, Family, Group, Met, rows_of, start_of, unlike
from keel_notebook.payload.numbering import Numbering
from keel_notebook.payload.order import sortable
from keel_notebook.payload.shapes import Shape, Shapes
from keel_notebook.payload.trees import NotATree

_LENGTHY = frozenset({list, tuple, dict})
_CHUNK = 1 << 13
_MOST_SETS = 16
_ROUNDS = 16
_MOST_NEW = 1_000
"""So many new objects may a value have beside those that were looked at before, to be looked at alone."""
_KEYED = frozenset({"dict", "attributes"})
_FEW = 8
_DEEP = 512
_SAMPLE, _MANY, _LEVELS = 64, 32, 8


class FoldWalk:
    """The digests of values; what one walk has seen of the first it need not look at for the next.

    Objects have numbers, in the order in which they are met. A class has the number of one of its objects.
    """

    def __init__(self, shapes: Shapes, key: bytes) -> None:
        self._shapes = shapes
        self._key = key
        self._takes = Takes(shapes)
        self._forget()

    def _forget(self) -> None:
        self._numbering = Numbering()
        self._numbers = self._numbering.numbers
        self._objects = self._numbering.objects
        self._classes: list[int] = []
        self._groups: list[Group] = []
        self._levels = 0
        self._open: tuple[Any, list[Family]] | None = None
        self._sizes: set[tuple[type, int]] | None = None
        self._digests: dict[Any, bytes] = {}
        self._rounds: int | None = None

    def digest(self, value: Any) -> bytes:
        """The digest of ``value``. Raises NotATree as said above, and Unknown for a value without a shape."""
        if not self._beside(value):
            self._sort_out(value)
        return self._written(self._column([value]), depth=0)

    def stamp(self, value: Any) -> bytes | None:
        """Bytes that no other value has, to know it again: half the work of ``digest``, which goes on from here.

        They tell which objects are one, and so they are no digest. None for what is looked at beside other values.
        """
        if self._beside(value):
            return None
        self._forget()
        found = self._found(value)
        self._open = (value, found)
        state = blake3(b"as it was met;", key=self._key)
        for each in (self._column([value]), *chain.from_iterable(map(self._as_met, self._groups))):
            state.update(marshal.dumps(each if type(each) is tuple else each.plain(), MARSHAL))
        return state.digest()

    def deep(self, value: Any) -> bool:
        """Whether even the first objects of every level have many levels below them: no tree to be written out."""
        level = [value]
        for _ in range(_LEVELS):
            level = [part for each in level[:_SAMPLE] for part in self._takes.below(each, _SAMPLE)]
        return len(level) >= _MANY

    def unfolds(self, value: Any, *, most: int) -> tuple[float, float] | None:
        """How many items the value has at least as a tree, and how deep that is at least; endless for a cycle.

        None for a value with more than ``most`` containers.
        """
        items: dict[int, float] = {}
        depths: dict[int, float] = {}
        try:
            for part in self._children_first(value):
                if len(items) >= most:
                    return None
                parts = self._takes.parts(part)
                inside = [id(each) for each in parts if not issubclass(type(each), type | ModuleType)]
                own = len(part) if type(part) in _LENGTHY else 0
                items[id(part)] = own + sum(map(items.__getitem__, inside))
                below = max(map(depths.__getitem__, inside), default=-1.0) if type(part) not in SETS else -1.0
                depths[id(part)] = below + 1
        except NotATree:
            return math.inf, math.inf
        return items.get(id(value), 0), depths.get(id(value), 0)

    # ---- which are equal ---------------------------------------------------------------------------------

    def _beside(self, value: Any) -> bool:
        """Whether everything in ``value`` has a class, or has one now."""
        return bool(self._objects) and self._open is None and self._added(value)

    def _sort_out(self, value: Any) -> None:
        """Give a class to everything in ``value``, and to nothing else."""
        try:
            if self._open is None or self._open[0] is not value:
                self._forget()
                self._open = (value, self._found(value))
            families = self._open[1]
            self._open = None
            if self._levels > _DEEP:  # a chain: children first is quick, where there is no cycle
                try:
                    self._one_by_one(self._children_first(value))
                except NotATree:
                    self._rounds = self._refined(families)
                    if self._rounds is None:
                        raise
            else:
                self._rounds = self._refined(families)
                if self._rounds is None:
                    self._one_by_one(self._children_first(value))
        except BaseException:
            self._forget()
            raise

    def _found(self, value: Any) -> list[Family]:
        """Every container in ``value``, by type, with a number."""
        families: dict[type, Family] = {}
        contents = self._shapes.contents
        waiting = [opened([value], contents)]
        while waiting:
            below: list[Opened] = []
            for cls, start, members in self._numbering.put(waiting):
                apart = self._takes.apart(cls, members)
                inside = [opened(each, contents) for each in apart.columns]
                columns = [each.column for each in inside]
                inside += [opened(each, contents) for each in apart.uncolumned()]
                inside = [each for each in inside if each.parts]
                group = Group(cls, start, members, apart, set().union(*(each.types for each in inside)), columns)
                below += inside
                family = families.setdefault(cls, Family([], set()))
                family.groups.append(group)
                family.size += len(members)
                family.inside |= group.inside
                self._groups.append(group)
            waiting = below
            self._levels += 1
        self._classes = list(range(len(self._objects)))
        for family in families.values():
            family.look()
        return list(families.values())

    def _as_met(self, group: Group) -> Iterator[Any]:
        """Everything that there is to the members of a group, with other containers by their numbers."""
        apart = group.apart
        heads: Any = next(apart.heads) if isinstance(apart.heads, repeat) else list(apart.heads)
        yield apart.tag, len(group.members), [self._numbers[id(cls)] for cls in apart.types], heads, apart.lengths
        yield from group.columns
        if apart.rows is not None:
            yield "rows", [(row.unordered, len(row.children)) for row in apart.rows]
            yield self._column(list(chain.from_iterable(row.children for row in apart.rows)))

    def _column(self, values: Sequence[Any]) -> Column:
        return column(values, self._numbers, self._shapes.contents, self._objects)

    def _refined(self, families: list[Family]) -> int | None:
        """Tell apart what differs; in how many rounds, or None if a few were not enough. The value alone decides it."""
        self._classes = [0] * len(self._objects)
        changed: set[type] | None = None
        for at in range(_ROUNDS):
            new = [
                (family, *self._classed(family))
                for family in families
                if changed is None or (family.classes < family.size and not changed.isdisjoint(family.inside))
            ]
            first, changed = changed is None, set()
            for family, found, classes in new:  # all at once: a round tells apart what differs one level further down
                if first or classes > family.classes:
                    family.classes = classes
                    changed.add(family.groups[0].cls)
                    family.inside = set()
                    for group, each in zip(family.groups, found, strict=True):
                        self._classes[group.start : group.start + len(each)] = each
                        if not unlike(group, found):
                            family.inside |= group.inside
            if not changed:
                return at
        return None

    def _classed(self, family: Family) -> tuple[list[list[int]], int]:
        """The class of every member, group by group, and how many there are."""
        distinct = family.distinct() if family.classes == 1 else set()
        tables: defaultdict[Hashable, dict[Any, int]] = defaultdict(dict)
        found, classes = [], 0
        for group in family.groups:
            own = range(group.start, group.end)
            if group.by_place and isinstance(group.apart.heads, repeat) and next(group.apart.heads) in distinct:
                found.append(list(own))
                classes += len(own)
                continue
            heads, rows = self._rows(group.apart, group.columns, bare=family.bare)
            if isinstance(heads, repeat):
                found.append(list(map(tables[next(heads)].setdefault, rows, own)))
            else:
                triples = zip(heads, rows, own, strict=True)
                found.append([tables[head].setdefault(row, number) for head, row, number in triples])
        return found, classes + sum(map(len, tables.values()))

    def _rows(self, apart: Apart, columns: list[Column], *, bare: bool) -> tuple[Iterable[Hashable], Iterable[Any]]:
        """What tells members apart: what stands before, and the codes of what is in them, a tuple for each."""
        owner = tuple(self._classes[self._numbers[id(cls)]] for cls in apart.types)
        heads = apart.heads
        if owner:
            heads = repeat((owner, next(heads))) if isinstance(heads, repeat) else [(owner, head) for head in heads]
        if apart.rows is not None:
            return heads, map(self._row, apart.rows)
        coded = [each.codes(self._classes, bare=bare) for each in columns]
        if apart.lengths is None:
            return heads, zip(*coded, strict=True)
        return heads, rows_of(coded[0], apart.lengths)

    def _row(self, shape: Shape) -> Any:
        values = list(shape.children)
        if not shape.unordered:
            return tuple(self._column(values).codes(self._classes))
        if sortable(values):
            return ("sorted", *self._column(sorted(values)).codes(self._classes))
        return frozenset(Counter(self._column(values).codes(self._classes)).items())

    # ---- object by object --------------------------------------------------------------------------------

    def _added(self, value: Any) -> bool:
        """Whether ``value`` has few objects that have no class yet, and now they have one."""
        new: list[Any] = []
        # What was refined may be cyclic: with all rounds that the new objects could need, it must still be few.
        room = _MOST_NEW if self._rounds is None else _ROUNDS - 1 - self._rounds
        if self._sizes is None:
            lengthy = [group for group in self._groups if group.cls in _LENGTHY]
            self._sizes = {pair for group in lengthy for pair in zip(repeat(group.cls), map(len, group.members))}
        try:
            for part in self._children_first(value, known=self._numbers):
                cls = type(part)
                new.append(part)
                # Only what is surely not equal to anything that was there before.
                if cls not in _LENGTHY or (cls, len(part)) in self._sizes or len(new) >= room:
                    return False
        except NotATree:
            return False
        self._one_by_one(new)
        self._sizes.update((type(part), len(part)) for part in new)
        return True

    def _one_by_one(self, parts: Iterable[Any]) -> None:
        """Give classes to parts that come children first, and numbers to those that have none."""
        tables: defaultdict[Hashable, dict[Any, int]] = defaultdict(dict)
        for part in parts:
            number = self._numbers.setdefault(id(part), len(self._objects))
            apart = self._takes.apart(type(part), [part])
            columns = list(map(self._column, apart.columns))
            heads, rows = self._rows(apart, columns, bare=False)
            if number == len(self._objects):
                self._objects.append(part)
                self._classes.append(number)
                self._groups.append(Group(type(part), number, [part], apart, set(), columns))
            table = tables[type(part), next(iter(heads))]
            self._classes[number] = table.setdefault(next(iter(rows)), number)

    def _children_first(self, value: Any, known: Mapping[int, int] = MappingProxyType({})) -> Iterator[Any]:
        """All containers but the known ones, each after whatever is in it. Raises NotATree for a cycle."""

        def new(parts: list[Any]) -> Iterator[Any]:
            return (
                compress(parts, map(operator.not_, map(known.__contains__, map(id, parts)))) if known else iter(parts)
            )

        done: set[int] = set()
        open_now: set[int] = set()
        way: list[tuple[Any, Iterator[Any]]] = [(None, new(containers([[value]])))]
        while way:
            thing, parts = way[-1]
            for part in parts:
                if id(part) in done:
                    continue
                if id(part) in open_now:
                    raise NotATree
                open_now.add(id(part))
                way.append((part, new(self._takes.parts(part))))
                break
            else:
                way.pop()
                if way:
                    open_now.discard(id(thing))
                    done.add(id(thing))
                    yield thing

    # ---- what is hashed ----------------------------------------------------------------------------------

    def _written(self, root: Column, *, depth: int, times: int = 1) -> bytes:
        """The digest of a column, and of all that it leads to. ``times``: how often it is in a set."""
        if depth > _MOST_SETS:
            raise NotATree
        state = blake3(b"folded by columns %d;" % times, key=self._key)
        met = Met(state, self._classes)
        level = met.put(root)
        while level:
            later: list[int] = []
            for at in range(0, len(level), _CHUNK):
                chunk = level[at : at + _CHUNK]
                first = self._group_of(min(chunk))
                if max(chunk) < first.end:
                    types, kinds, mixed = [], {first.cls: 0}, []
                else:
                    types = list(map(type, map(self._objects.__getitem__, chunk)))
                    kinds = {cls: number for number, cls in enumerate(dict.fromkeys(types))}
                    mixed = list(map(kinds.__getitem__, types)) if len(kinds) > 1 else []
                state.update(marshal.dumps((len(chunk), mixed), MARSHAL))
                for cls in kinds:
                    alike = chunk
                    if mixed:
                        alike = [each for each, kind in zip(chunk, types, strict=True) if kind is cls]
                    later += self._described(met, cls, alike, depth)
            level = later
        return state.digest()

    def _described(self, met: Met, cls: type, chunk: list[int], depth: int) -> list[int]:
        apart, columns = self._selected(cls, chunk)
        fresh = met.put(self._column(apart.types))
        heads: Any = apart.heads
        met.state.update(marshal.dumps((apart.tag, next(heads) if isinstance(heads, repeat) else heads), MARSHAL))
        if apart.rows is not None:
            for shape in apart.rows:
                fresh += self._one_row(met, shape, depth)
            return fresh
        met.state.update(marshal.dumps(len(columns) if apart.lengths is None else apart.lengths, MARSHAL))
        for each in columns:
            fresh += met.put(each)
        return fresh

    def _group_of(self, number: int) -> Group:
        return self._groups[bisect_right(self._groups, number, key=start_of) - 1]

    def _selected(self, cls: type, chunk: list[int]) -> tuple[Apart, list[Column]]:
        """Some objects of one type taken apart: out of the columns of one group, where that says the same."""
        group = self._group_of(min(chunk))
        apart = group.apart
        keyed = apart.tag in _KEYED and apart.lengths is None
        if keyed and max(chunk) < group.end:
            picks = [number - group.start for number in chunk]
            return apart, [each.some(picks) for each in group.columns]
        apart = self._takes.apart(cls, list(map(self._objects.__getitem__, chunk)))
        return apart, list(map(self._column, apart.columns))

    def _one_row(self, met: Met, shape: Shape, depth: int) -> list[int]:
        """What is in a set goes by digests, in an order that does not depend on hashes (C34)."""
        values = list(shape.children)
        if not shape.unordered or sortable(values):
            met.state.update(b"row;")
            return met.put(self._column(sorted(values) if shape.unordered else values))
        codes = self._column(values).codes(self._classes)
        found = dict(zip(codes, values, strict=True))
        digests = sorted(self._alone(found[code], code, times, depth + 1) for code, times in Counter(codes).items())
        met.state.update(b"set;" + marshal.dumps(digests, MARSHAL))
        return []

    def _alone(self, value: Any, code: Any, times: int, depth: int) -> bytes:
        digest = self._digests.get((code, times))
        if digest is None:
            digest = self._digests[code, times] = self._written(self._column([value]), depth=depth, times=times)
        return digest
