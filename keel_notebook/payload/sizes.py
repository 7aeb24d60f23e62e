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


def _bytes_held(value: Any) -> float:
    """What arrays, tensors and frames say of themselves; 0 for everything else."""
    held = getattr(value, "nbytes", None)
    if isinstance(held, int | float):
        return float(held)
    if hasattr(value, "memory_usage"):
        usage = value.memory_usage(index=True)
        return float(usage.sum() if hasattr(usage, "sum") else usage)
    return 0.0


def _parts(value: Any) -> Any:
    if isinstance(value, str | bytes | bytearray | int | float | complex):
        return ()
    if isinstance(value, Mapping):
        return (part for pair in value.items() for part in pair)
    if isinstance(value, list | tuple | set | frozenset):
        return iter(value)
    kept = getattr(value, "__dict__", None)
    if isinstance(kept, dict) and not hasattr(value, "memory_usage"):
        return iter(kept.values())
    return ()


def _count(value: Any, sampled: int) -> int:
    if isinstance(value, Mapping):
        return 2 * len(value)
    if isinstance(value, list | tuple | set | frozenset):
        return len(value)
    kept = getattr(value, "__dict__", None)
    return len(kept) if isinstance(kept, dict) else sampled


def look(value: Any) -> str:
    """How a value looks from outside: its type and size. What is larger looks different."""
    size = getattr(value, "shape", None)
    if size is None:
        try:
            size = len(value)
        except Exception:  # noqa: BLE001 not every value has a length, and a type's own may raise anything
            size = ""
    return f"{type(value).__qualname__} {size}"


__all__ = ["about", "look"]
