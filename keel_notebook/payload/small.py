"""Which values are worth keeping before a step changes them."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

_KEPT_BYTES = 64 << 20
NO_DATA = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)
"""Types whose values are code, not data: using them changes nothing."""


def is_small_data(value: Any) -> bool:
    """Whether a value is worth keeping before a step changes it: data, by a quick look not above 64 MB."""
    if isinstance(value, NO_DATA):
        return False
    try:
        held = getattr(value, "nbytes", None)
        if held is None and hasattr(value, "memory_usage"):
            held = value.memory_usage(index=True)
            held = held.sum() if hasattr(held, "sum") else held
        if held is None and hasattr(value, "__len__"):
            held = len(value) * 100
    except Exception:  # noqa: BLE001 whatever a type of the person's own raises when it is asked for its size
        return False
    return not isinstance(held, int | float) or held <= _KEPT_BYTES
