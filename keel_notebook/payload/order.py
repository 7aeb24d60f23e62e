"""What Python itself can put in order, so that sets need no digests of their members (C34)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def sortable(values: Sequence[Any]) -> bool:
    """Whether Python's own order is total here and tells apart what has to be told apart."""
    if set(map(type, values)) != {tuple}:
        return _orderly(values)
    return len(set(map(len, values))) == 1 and all(map(_orderly, zip(*values, strict=True)))


def _orderly(column: Sequence[Any]) -> bool:
    types = set(map(type, column))
    if types == {float}:
        return bool(sum(column) == sum(column))
    return len(types) <= 1 and types <= ORDERED


ORDERED = {int, str, bytes, bool}
SCALARS = {*ORDERED, float, type(None)}
