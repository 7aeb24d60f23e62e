"""Which values share parts that may change, and where in them: told alike in every process.

A part is where it was met first, breadth first, in the order that the value itself has: places of lists, keys of
dicts, names of attributes. Arrays share memory where their bytes overlap, whoever owns them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations_with_replacement, islice
from typing import Any

from msgspec import Struct, field

from keel_notebook.capture.aliases import held_elsewhere
from keel_notebook.capture.namespace import attributes
from keel_notebook.capture.parts import CLOSED, IMMUTABLE, MOST, inside, is_memory, may_change, parts
from keel_notebook.core.ids import text_digest
from keel_notebook.core.sharing import Pattern, pair

_MOST_PER_NAME = 200
_MOST_STEPS = 20_000


class Place(Struct, frozen=True):
    """Where a part was met: the way to it and, for memory, the bytes of it that an array lies on."""

    way: str
    low: int = 0
    high: int = 0
    seen_as: str = ""

    def meets(self, other: Place) -> bool:
        """Whether two places are places of one thing, as far as bytes tell."""
        return not self.high or not other.high or (self.low < other.high and other.low < self.high)


Places = dict[int, list[Place]]
"""By identity: where the parts of one value are."""


class Spread(Struct, frozen=True):
    """Where the parts of some names' values are. It keeps none of them alive."""

    places: Mapping[str, Places] = field(default_factory=dict)

    def pattern(self, names: Iterable[str]) -> Pattern:
        """How those of the names share parts, and which of the others hold some of theirs."""
        of = sorted(set(names) & self.places.keys())
        found = {}
        for one, other in combinations_with_replacement(of, 2):
            if token := _shared(self.places[one], self.places[other], alone=one == other):
                found[pair(one, other)] = token
        others = sorted(self.places.keys() - set(of))
        beside = [name for name in others if any(_shared(self.places[each], self.places[name]) for each in of)]
        return Pattern(tuple(of), found, tuple(beside))


def inner(names: Iterable[str], namespace: Mapping[str, Any], *, without: set[int]) -> Spread:
    """Where all parts of the values of names are, those included that never change: for who asks ``a is b``."""
    return Spread({name: _places(namespace[name], without, every=True) for name in names})


def spread(
    names: Collection[str], namespace: Mapping[str, Any], persons: Iterable[str], *, without: set[int]
) -> Spread:
    """Where the parts of the values of ``names`` are; other names of ``persons`` are in it where they hold any.

    ``namespace`` has to be a copy of the live one, so that every name counts as two references.
    """
    places = {name: _places(namespace[name], without) for name in sorted(names)}
    wanted = set().union(*places.values()) if places else set()
    if wanted and any(_is_held(name, namespace, without) for name in places):
        left = _MOST_STEPS
        for name in persons:
            value = namespace[name]
            if name in places or type(value) in IMMUTABLE:
                continue
            some = list(islice(parts(value, without), max(0, min(left, _MOST_PER_NAME))))
            left -= len(some)
            if any(id(part) in wanted for part, _ in some):
                places[name] = _places(value, without)
    return Spread(places)


def layout(value: Any, without: Iterable[int] = ()) -> str:
    """How the arrays in a value lie in memory; empty where there are none."""
    found = []
    for part, _ in islice(parts(value, without), _MOST_PER_NAME):
        flags = getattr(part, "flags", None) if type(part).__name__ in _ARRAYS else None
        if flags is not None:
            order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else str(part.strides)
            found.append(order + ("" if flags.writeable else " read-only"))
            if type(part.base).__name__ in _ARRAYS:  # its owner lies as it lies
                break
    return ", ".join(found)


_ARRAYS = ("ndarray", "memmap", "matrix", "MaskedArray", "recarray")


def _is_held(name: str, namespace: Mapping[str, Any], without: set[int]) -> bool:
    at = id(namespace[name])
    names = sum(id(value) == at for value in namespace.values())
    return held_elsewhere(namespace, name, 2 * names, without=without)


def _shared(one: Places, other: Places, *, alone: bool = False) -> str:
    """A token for what two values share; empty where that is nothing."""
    told = []
    if len(other) < len(one):
        one, other = other, one
    for at in one.keys() & other.keys():
        pairs = combinations_with_replacement(one[at], 2) if alone else ((a, b) for a in one[at] for b in other[at])
        for a, b in pairs:
            if (a is not b or not alone) and a.meets(b):
                near = min(a.low, b.low)
                told.append(sorted((f"{a.way} {a.low - near} {a.seen_as}", f"{b.way} {b.low - near} {b.seen_as}")))
    return text_digest(*(text for both in sorted(told) for text in both)) if told else ""


def _places(value: Any, without: Iterable[int], *, every: bool = False) -> Places:
    """Where the parts of a value are that may change; with ``every`` also those that never do."""
    found: Places = {}
    seen = set(without)
    todo: deque[tuple[Any, str]] = deque([(value, "")])
    count = 0
    while todo and len(seen) < MOST:
        part, way = todo.popleft()
        if issubclass(type(part), CLOSED) or type(part) in IMMUTABLE:
            continue
        is_array = type(part).__name__ == "ndarray"
        if is_array or every or may_change(part):
            owner, place = _memory(part, way) if is_array else (part, Place(way))
            found.setdefault(id(owner), []).append(place)
        if id(part) in seen:
            continue
        seen.add(id(part))
        if way.endswith("*"):
            todo.extend((child, way) for child in _children(part))
            continue
        for label, child in _edges(part):
            todo.append((child, f"{count}{label}"))
        count += 1
    return found


def _memory(array: Any, way: str) -> tuple[Any, Place]:
    """Who owns the memory of an array, and which bytes the array lies on."""
    owner = array
    while (base := owner.obj if type(owner) is memoryview else getattr(owner, "base", None)) is not None:
        owner = base
        if is_memory(owner) and type(owner).__name__ != "ndarray":
            break
    start = array.__array_interface__["data"][0]
    reach = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)]
    low = start + sum(each for each in reach if each < 0)
    high = start + sum(each for each in reach if each > 0) + array.itemsize
    seen_as = f"{array.dtype.str} {array.shape} {array.strides}"
    return owner, Place(way, low, max(high, low + 1) if array.size else low, seen_as)


def _edges(part: Any) -> Iterator[tuple[str, Any]]:
    """What a part holds, each with its place in it; ``*`` where it has none that is told alike everywhere."""
    kind = type(part)
    if issubclass(kind, list | tuple | deque):
        base = next(each for each in (list, tuple, deque) if issubclass(kind, each))
        yield from ((f"[{at}]", each) for at, each in enumerate(islice(base.__iter__(part), MOST)))
        yield from _attribute_edges(part)
    elif issubclass(kind, dict):
        yield from ((f"<{at}>", each) for at, each in enumerate(islice(dict.keys(part), MOST)))
        yield from ((f"[{at}]", each) for at, each in enumerate(islice(dict.values(part), MOST)))
        yield from _attribute_edges(part)
    elif type(part).__name__ == "ndarray" and getattr(part.dtype, "hasobject", False):
        yield from ((f"[{at}]", each) for at, each in enumerate(islice(part.flat, MOST)))
    elif type(part).__name__ != "ndarray":
        held = attributes(part)
        yield from _attribute_edges(part)
        named = {id(held), *map(id, held.values())}
        yield from (("*", each) for each in _children(part) if id(each) not in named)


def _attribute_edges(part: Any) -> Iterator[tuple[str, Any]]:
    held = attributes(part)
    yield from ((f".{name}", held[name]) for name in sorted(held, key=str))


def _children(part: Any) -> list[Any]:
    return [each for each in inside(part) if type(each).__name__ != "ndarray" or not _is_table(part)]


def _is_table(part: Any) -> bool:
    # Frames share columns until one of them is written: pandas copies it then.
    return type(part).__module__.partition(".")[0] == "pandas"
