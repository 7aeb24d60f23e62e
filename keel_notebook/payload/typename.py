"""The name of a type, as people know it."""

from __future__ import annotations


def type_name(cls: type) -> str:
    """``generator``, ``sqlite3.Connection``."""
    return cls.__qualname__ if cls.__module__ in ("builtins", "__main__") else f"{cls.__module__}.{cls.__qualname__}"
