"""Plain values as MessagePack keeps them, with their exact types: ``(1,)`` is not ``[1]`` and ``True`` is not ``1``.

For settings and other small state. The values of the notebook have a codec of their own.
"""

from __future__ import annotations

import enum
from typing import Any

_ATOMS = (str, bytes, float, bool, type(None))
_KIND, _VALUE = "t", "v"


class NotPlainError(Exception):
    """A value that is not made of numbers, texts, bytes and containers of them."""


def to_wire(value: Any) -> Any:
    """A plain value, MessagePack-able; equal values give equal bytes in every run. Raises NotPlainError."""
    kind = type(value)
    if isinstance(value, enum.Enum) and isinstance(value, str):
        return str(value.value)  # a text with a name, as matplotlib's styles are
    if kind in _ATOMS:
        return value
    if kind is int:
        return value if -(1 << 63) <= value < 1 << 63 else _tagged("int", str(value))
    if kind is complex:
        return _tagged("complex", [value.real, value.imag])
    if kind is list:
        return [to_wire(item) for item in value]
    if kind is tuple:
        return _tagged("tuple", [to_wire(item) for item in value])
    if kind is dict:
        return _tagged("dict", [[to_wire(key), to_wire(item)] for key, item in value.items()])
    if kind in {set, frozenset}:
        return _tagged(kind.__name__, sorted((to_wire(item) for item in value), key=repr))
    raise NotPlainError(f"{kind.__module__}.{kind.__qualname__}")


def from_wire(wire: Any) -> Any:
    """The value behind what ``to_wire`` made. Raises ValueError for anything else."""
    if isinstance(wire, list):
        return [from_wire(item) for item in wire]
    if not isinstance(wire, dict):
        return wire
    value = wire[_VALUE]
    match wire[_KIND]:
        case "int":
            return int(value)
        case "complex":
            return complex(*value)
        case "tuple":
            return tuple(map(from_wire, value))
        case "dict":
            return {from_wire(key): from_wire(item) for key, item in value}
        case "set":
            return set(map(from_wire, value))
        case "frozenset":
            return frozenset(map(from_wire, value))
        case other:
            raise ValueError(f"no plain value is a {other}")


def _tagged(kind: str, value: Any) -> dict[str, Any]:
    return {_KIND: kind, _VALUE: value}
