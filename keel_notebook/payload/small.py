"""Which values are worth keeping before a step changes them."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from keel_notebook.payload.sizes import of_a_library

_KEPT_BYTES = 64 << 20
NO_DATA = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)
"""Types whose values are code, not data: using them changes nothing."""


def is_small_data(value: Any) -> bool:
    """Whether a value is worth keeping before a step changes it: data, by a quick look not above 64 MB."""
    if issubclass(type(value), NO_DATA):
        return False
    try:
        held = of_a_library(value, "nbytes")
        if held is None and (memory_usage := of_a_library(value, "memory_usage")) is not None:
            held = memory_usage(index=True)
            held = held.sum() if hasattr(held, "sum") else held
        if held is None and of_a_library(value, "__len__") is not None:
            held = len(value) * 100
    except Exception:  # noqa: BLE001 whatever a type of the person's own raises when it is asked for its size
        return False
    return not isinstance(held, int | float) or held <= _KEPT_BYTES
