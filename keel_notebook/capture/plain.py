"""Plain values: numbers, texts and containers of them, small enough to be compared as text."""

from __future__ import annotations

from typing import Any

_ATOMS = (int, float, complex, bool, str, bytes, type(None))
_MOST = 1000


def plain(value: Any) -> bool:
    """Whether a value is plain and has at most a thousand parts."""
    todo, seen = [value], 0
    while todo:
        part = todo.pop()
        seen += 1
        if seen > _MOST:
            return False
        kind = type(part)
        if kind in (list, tuple, set, frozenset):
            todo.extend(part)
        elif kind is dict:
            todo.extend(part)
            todo.extend(part.values())
        elif kind not in _ATOMS:
            return False
    return True


def token(value: Any) -> str:
    """A text that is equal for equal plain values of equal types, and for no others."""
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}({sorted(map(token, value))})"
    if isinstance(value, dict):
        return f"dict({[(token(key), token(part)) for key, part in value.items()]})"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({[token(part) for part in value]})"
    return f"{type(value).__name__} {value:x}" if type(value) is int else f"{type(value).__name__} {value!r}"
