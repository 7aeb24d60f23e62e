"""Records as plain values.

Records here are ``msgspec.Struct``s, not dataclasses: the standard library writes and compiles five methods for each
class, and for the two hundred of them that was more than half of what a kernel's first step took.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct


def as_dict(record: Struct) -> dict[str, Any]:
    """A record as a dict by field; the records in it, in lists, tuples and dicts as well, become dicts too."""
    return {name: _plain(getattr(record, name)) for name in record.__struct_fields__}


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return as_dict(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(item) for item in value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
