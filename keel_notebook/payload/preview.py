"""Short texts that show a value to people: for the table, the lineage view and the line of a divergence.

No code of the value's type runs: sizes and types only, and the content of numbers, short texts and small plain
containers. Nothing is shown of what may be secret.
"""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any

from keel_notebook.core.secrets import looks_secret, looks_secret_field
from keel_notebook.payload.typename import type_name

_LONGEST = 60
_MOST_ITEMS = 6


def preview(name: str, value: Any) -> str:
    """A short text for the value of ``name``; empty for what looks like a credential."""
    return "" if looks_secret(name, value) else _short(value, name, depth=2)


def _short(value: Any, name: str, *, depth: int) -> str:
    cls = type(value)
    if cls in (int, float, complex, bool, type(None), range):
        return _cut(repr(value)) if cls is not int or abs(value) < 10**40 else f"int of {value.bit_length()} bits"
    if cls is str:
        if looks_secret_field(name if depth < 2 else "", value):
            return "…"
        return repr(value) if len(value) <= _LONGEST else f"{value[:_LONGEST]!r}… ({len(value):,} characters)"
    if cls in (bytes, bytearray):
        return f"{cls.__name__} of {size(len(value))}"
    if cls in (list, tuple, set, frozenset, dict):
        return _container(value, depth=depth)
    if issubclass(type(value), FunctionType):
        return f"function {value.__name__}"
    if issubclass(type(value), type):
        return f"class {type_name(value)}"
    if issubclass(type(value), ModuleType):
        return f"module {value.__name__}"
    return _shaped(value)


def _container(value: Any, *, depth: int) -> str:
    kind = type(value).__name__
    if not value:
        return repr(value)
    if len(value) > _MOST_ITEMS or depth == 0 or type(value) in (set, frozenset):
        return f"{kind} of {len(value):,}"
    if issubclass(type(value), dict):
        if not all(type(key) in (str, int, bool) for key in value):
            return f"{kind} of {len(value):,}"
        inner = ", ".join(
            f"{_short(key, '', depth=0)}: {_short(item, str(key), depth=depth - 1)}" for key, item in value.items()
        )
        text = "{" + inner + "}"
    else:
        inner = ", ".join(_short(item, "", depth=depth - 1) for item in value)
        text = f"[{inner}]" if issubclass(type(value), list) else f"({inner}{',' if len(value) == 1 else ''})"
    return text if len(text) <= 2 * _LONGEST else f"{kind} of {len(value):,}"


_SHAPED = ("numpy", "pandas", "polars", "pyarrow", "torch", "scipy", "xarray", "jax", "tensorflow")


def _shaped(value: Any) -> str:
    """Arrays and frames by shape; numpy's scalars by value; anything else by type."""
    cls = type(value)
    top = cls.__module__.partition(".")[0]
    if top not in _SHAPED:
        return type_name(cls)
    # Asked of the type first: a frame answers with a column of that name.
    shape = value.shape if hasattr(cls, "shape") else None
    if not isinstance(shape, tuple) or not all(type(length) is int for length in shape):
        return cls.__name__
    shape = tuple(shape)
    dtype = value.dtype if hasattr(cls, "dtype") else None
    if shape == () and hasattr(value, "item") and top == "numpy":
        plain = value.item()
        return f"{_short(plain, '', depth=0)} ({dtype})" if type(plain) in (int, float, bool) else cls.__name__
    if len(shape) == 2 and dtype is None:
        return f"{cls.__name__} {shape[0]}x{shape[1]}"
    return f"{cls.__name__} {dtype} {shape}" if dtype is not None else f"{cls.__name__} {shape}"


def size(count: int) -> str:
    """A number of bytes for people: ``20 MB``."""
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= step:
            return f"{count / step:.3g} {unit}"
    return f"{count} B"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
