"""Rows and columns of codes: what stands for a value where equal values have to be found (see ``folds``).

A scalar stands for itself, or for its bits; a container for the number of its class, in the imaginary part of a complex
number, which no scalar here is equal to.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Mapping, Sequence
from typing import Any

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

    def codes(self, classes: Sequence[Any]) -> Sequence[Any]:
        """What stands for each value. ``classes`` is by number."""
        if not self.places:
            return self.scalars
        found = list(map(classes.__getitem__, self.places))
        if self.gaps is None:
            return found
        mixed = list(self.scalars)
        for at, code in zip(self.gaps, found, strict=True):
            mixed[at] = code
        return mixed

    def some(self, picks: list[int]) -> Column:
        """The column of the values at these places."""
        size = len(self.places) if self.places and self.gaps is None else len(self.scalars)
        if len(picks) == size and picks == list(range(size)):
            return self
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


def column(
    values: Sequence[Any], numbers: Mapping[int, int], contents: Contents, objects: Sequence[Any] = ()
) -> Column:
    """A column of ``values``. ``numbers`` has a number for every container, by identity; ``objects`` is by number."""
    types = set(map(type, values))
    if types <= SCALARS:
        return Column(scalar_codes(values, types, contents), [])
    if types.isdisjoint(SCALARS):
        start = numbers[id(values[0])]
        end = start + len(values)
        if _FEW < len(values) <= len(objects) - start and all(map(operator.is_, values, objects[start:end])):
            return Column([], list(range(start, end)))  # met in this order: nothing to look up
        return Column([], list(map(numbers.__getitem__, map(id, values))))
    gaps = [at for at, value in enumerate(values) if type(value) not in SCALARS]
    places = [numbers[id(values[at])] for at in gaps]
    scalars = [value if type(value) in SCALARS else None for value in values]
    return Column(scalar_codes(scalars, set(map(type, scalars)), contents), places, gaps)


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
