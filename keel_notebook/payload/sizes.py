"""About how large a value is, by a quick look: never more than a few hundred parts of it are visited."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import islice
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_SAMPLE = 8
_DEPTH = 4
_NO_DATA = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, CodeType, type)


def about(value: Any) -> int:
    """Bytes that a value takes, by a sample of its parts. Functions, classes and modules take nothing.

    Never raises; a value that refuses to tell counts by what Python says of its outermost object.
    """
    return int(_about(value, _DEPTH))


def _about(value: Any, depth: int) -> float:
    if isinstance(value, _NO_DATA):
        return 0.0
    try:
        own = float(_bytes_held(value) or sys.getsizeof(value, 64))
        parts = _parts(value) if depth else ()
        sample = list(islice(parts, _SAMPLE))
        if not sample:
            return own
        each = sum(_about(part, depth - 1) for part in sample) / len(sample)
        return own + each * _count(value, len(sample))
    except Exception:  # noqa: BLE001 whatever a type of the person's own raises when it is looked at
        return 64.0


def of_a_library(value: Any, name: str) -> Any:
    """An attribute of a value where a library or Python gives it; None otherwise. Nothing that a class of the notebook
    says of itself is asked: that would run the person's code."""
    home = next((kind for kind in type(value).__mro__ if name in vars(kind)), None)
    return None if home is None or home.__module__ == "__main__" else getattr(value, name, None)


_CONTAINERS: tuple[Any, ...] = (list, tuple, set, frozenset)


def _bytes_held(value: Any) -> float:
    """What arrays, tensors and frames say of themselves; 0 for everything else."""
    held = of_a_library(value, "nbytes")
    if isinstance(held, int | float):
        return float(held)
    if (memory_usage := of_a_library(value, "memory_usage")) is not None:
        usage = memory_usage(index=True)
        return float(usage.sum() if hasattr(usage, "sum") else usage)
    return 0.0


def _parts(value: Any) -> Any:
    if isinstance(value, str | bytes | bytearray | int | float | complex):
        return ()
    if isinstance(value, dict):
        return (part for pair in dict.items(value) for part in pair)
    if isinstance(value, Mapping) and type(value).__module__ != "__main__":
        return (part for pair in value.items() for part in pair)
    for base in _CONTAINERS:
        if isinstance(value, base):
            return base.__iter__(value)
    kept = getattr(value, "__dict__", None)
    if isinstance(kept, dict) and of_a_library(value, "memory_usage") is None:
        return iter(kept.values())
    return ()


def _count(value: Any, sampled: int) -> int:
    if isinstance(value, dict):
        return 2 * dict.__len__(value)
    if isinstance(value, Mapping) and type(value).__module__ != "__main__":
        return 2 * len(value)
    for base in _CONTAINERS:
        if isinstance(value, base):
            return int(base.__len__(value))
    kept = getattr(value, "__dict__", None)
    return len(kept) if isinstance(kept, dict) else sampled


def look(value: Any) -> str:
    """How a value looks from outside: its type and size. What is larger looks different."""
    size = of_a_library(value, "shape")
    if size is None:
        try:
            size = len(value) if of_a_library(value, "__len__") is not None else ""
        except Exception:  # noqa: BLE001 not every value has a length, and a type's own may raise anything
            size = ""
    return f"{type(value).__qualname__} {size}"


__all__ = ["about", "look", "of_a_library"]
