"""The random generators that belong to a module: one of each, whoever holds it (DESIGN 6, Seeds).

``random.random``, ``numpy.random.rand`` and ``scipy.stats.norm`` all draw from one of them. How it stands is no part of
a value that draws from it: seeds and draws are known by themselves (``capture.seeds``). And it comes back as itself: a
copy would go its own way, whatever is seeded.
"""

from __future__ import annotations

import sys
from types import BuiltinMethodType, MethodType
from typing import Any

_GENERATORS = (("random", "_inst"), ("numpy.random.mtrand", "_rand"), ("torch", "default_generator"))
_HOMES = ("random", "numpy.random")
"""Modules that offer the methods of their generator as functions of their own."""
_TYPES = frozenset({"Random", "RandomState", "Generator"})


def place_of(value: Any) -> tuple[str, str] | None:
    """The module and the name of such a generator, or of what a module offers of it; None for any other value."""
    if type(value) is MethodType or type(value) is BuiltinMethodType:
        if place_of(value.__self__) is not None:
            return next(((home, value.__name__) for home in _HOMES if _held(home, value.__name__) is value), None)
    elif type(value).__name__ in _TYPES:
        return next((place for place in _GENERATORS if _held(*place) is value), None)
    return None


def _held(module: str, name: str) -> Any:
    return vars(sys.modules[module]).get(name) if module in sys.modules else None
