"""Rows and columns of codes: what stands for a value where equal values have to be found (see ``folds``).

A scalar stands for itself, or for its bits; a container for the number of its class, in the imaginary part of a complex
number, which no scalar here is equal to.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from msgspec import Struct

from keel_notebook.payload.apart import EXACT, SCALARS
from keel_notebook.payload.memory import Contents, Memory, text_memory

_FEW = 8
_LONG = 1 << 16
_NAN = float("nan")


class Column(Struct):
    """Values in a row, looked at once: the codes of the scalars, and where the containers are."""

    scalars: list[Any] | Sequence[Any]
    """A code for each value; None where a container is. Empty where there are only containers."""
    places: list[int]
    """The numbers of the containers, in order."""
    gaps: list[int] | None = None
    """Where the containers are among the values; None where there is nothing else, or nothing of them."""

    @property
    def kind(self) -> str:
        """Which values are in it: ``""`` none, ``s`` scalars, ``c`` containers, ``m`` both."""
        if not self.places:
            return "s" if self.scalars else ""
        return "c" if self.gaps is None else "m"

    def codes(self, classes: Sequence[int], *, bare: bool = False) -> Sequence[Any]:
        """What stands for each value. ``classes`` is by number; ``bare``: no scalar can be taken for one of them."""
        if not self.places:
            return self.scalars
        found: list[Any] = list(map(classes.__getitem__, self.places))
        if not bare:
            found = list(map(complex, repeat(0.0), found))
        if self.gaps is None:
            return found
        mixed = list(self.scalars)
        for at, code in zip(self.gaps, found, strict=True):
            mixed[at] = code
        return mixed

    def plain(self) -> tuple[list[Any], list[int], list[int] | None]:
        """All of it, to be hashed."""
        return list(self.scalars), self.places, self.gaps

    def some(self, picks: list[int]) -> Column:
        """The column of the values at these places."""
        begin, end = picks[0], picks[-1] + 1
        if self.gaps is None and end - begin == len(picks) and picks == list(range(begin, end)):
            return Column(self.scalars[begin:end], self.places[begin:end])
        if not self.places:
            return Column(list(map(self.scalars.__getitem__, picks)), [])
        if self.gaps is None:
            return Column([], list(map(self.places.__getitem__, picks)))
        there = dict(zip(self.gaps, self.places, strict=True))
        gaps = [at for at, pick in enumerate(picks) if pick in there]
        places = [there[pick] for pick in picks if pick in there]
        if len(gaps) == len(picks):
            return Column([], places)
        return Column(list(map(self.scalars.__getitem__, picks)), places, gaps if gaps else None)


class Opened(NamedTuple):
    """A column whose containers have no numbers yet: they are put into ``column.places``."""

    column: Column
    parts: Sequence[Any]
    """Its containers."""
    types: set[type]
    """Theirs."""


def opened(values: Sequence[Any], contents: Contents) -> Opened:
    """A column of ``values``, looked at once."""
    types = set(map(type, values))
    if types <= SCALARS:
        return Opened(Column(scalar_codes(values, types, contents), []), (), set())
    if types.isdisjoint(SCALARS):
        return Opened(Column([], []), values, types)
    gaps = [at for at, value in enumerate(values) if type(value) not in SCALARS]
    parts = list(map(values.__getitem__, gaps))
    scalars = [value if type(value) in SCALARS else None for value in values]
    codes = scalar_codes(scalars, (types & SCALARS) | {type(None)}, contents)
    return Opened(Column(codes, [], gaps), parts, types - SCALARS)


def column(
    values: Sequence[Any], numbers: Mapping[int, int], contents: Contents, objects: Sequence[Any] = ()
) -> Column:
    """A column of ``values``. ``numbers`` has a number for every container, by identity; ``objects`` is by number."""
    found, parts, _ = opened(values, contents)
    if parts:
        places = aligned(parts, numbers, objects)
        found.places = list(map(numbers.__getitem__, map(id, parts))) if places is None else places
    return found


def aligned(parts: Sequence[Any], numbers: Mapping[int, int], objects: Sequence[Any]) -> list[int] | None:
    """The numbers of containers that were met in this order before, so that nothing has to be looked up; else None."""
    start = numbers.get(id(parts[0]))
    if start is None or not _FEW < len(parts) <= len(objects) - start:
        return None
    if parts[-1] is not objects[start + len(parts) - 1]:
        return None
    end = start + len(parts)
    return list(range(start, end)) if all(map(operator.is_, parts, objects[start:end])) else None


def scalar_codes(values: Sequence[Any], types: set[type], contents: Contents) -> Sequence[Any]:
    """What stands for scalars: equal for equal values, and for no others (``1 == True == 1.0`` are three)."""
    if types == {float}:
        return _float_codes(values)
    if not types <= EXACT:
        values = [value if type(value) in EXACT else _scalar_code(value) for value in values]
    for cls in types & {str, bytes}:
        alike = values if len(types) == 1 else [value for value in values if type(value) is cls]
        if max(map(len, alike)) >= _LONG:
            values = [_shortened(value, contents) if type(value) is cls else value for value in values]
    return values


def _scalar_code(value: Any) -> Any:
    if type(value) is float:
        return _float_codes((value,))[0]
    return (repr(value),)  # one of True, False, Ellipsis and NotImplemented


def _float_codes(values: Sequence[float]) -> list[tuple[int]]:
    """Floats by their bits, with one NaN; in tuples, so that they are not taken for numbers."""
    alike = [value if value == value else _NAN for value in values]  # noqa: PLR0124
    return list(zip(struct.unpack(f"<{len(alike)}q", struct.pack(f"<{len(alike)}d", *alike)), strict=True))


def _shortened(value: Any, contents: Contents) -> Any:
    if len(value) < _LONG:
        return value
    memory = text_memory(value) if isinstance(value, str) else Memory(len(value), lambda: (value,))
    return (type(value).__name__, memory.size, contents.digest(memory))
