"""Where in a value a part is: ``.items[3]`` of a box. For people who look for the part that cannot be stored."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator
from typing import Any

from keel_notebook.core.secrets import looks_secret_field
from keel_notebook.payload.shapes import cells

_MAX_LOOKED_AT = 200_000


def path_to(value: Any, part: Any) -> str | None:
    """The shortest way from ``value`` to ``part`` in Python's own notation; "" for the value itself.

    None where it was not found: made on the fly, or behind too many objects. A way never shows a value: of the keys
    of a dict it shows short texts and whole numbers that do not look like a credential.
    """
    if value is part:
        return ""
    waiting: deque[tuple[str, Any]] = deque([("", value)])
    seen = {id(value)}
    while waiting and len(seen) < _MAX_LOOKED_AT:
        way, inside = waiting.popleft()
        for step, child in _steps(inside):
            if child is part:
                return way + step
            if id(child) not in seen and not issubclass(type(child), str | bytes | int | float | type(None)):
                seen.add(id(child))
                waiting.append((way + step, child))
    return None


def _steps(value: Any) -> Iterator[tuple[str, Any]]:
    kind = type(value)  # a proxy may fail when it is asked for its class
    if issubclass(kind, dict):
        for at, (key, child) in enumerate(list(value.items())):
            yield _key(key, at), child
            yield f".key({at})", key
    elif issubclass(kind, list | tuple):
        names = getattr(type(value), "_fields", None)
        for at, child in enumerate(value):
            yield (f".{names[at]}" if names and at < len(names) else f"[{at}]"), child
    elif issubclass(kind, set | frozenset):
        for child in value:
            yield ".member", child
    elif issubclass(kind, types.FunctionType):
        for name, content in cells(value):
            yield from ((f".{name}", child) for child in content)
        yield from ((".default", child) for child in value.__defaults__ or ())
    elif issubclass(kind, types.MethodType):
        yield from ((".__self__", value.__self__), (".__func__", value.__func__))
    yield from _attributes(value)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    if issubclass(type(value), type | types.ModuleType):
        return
    for name, child in list(getattr(value, "__dict__", {}).items()):
        yield f".{name}", child
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            member = cls.__dict__.get(name)
            if isinstance(member, types.MemberDescriptorType):
                try:
                    yield f".{name}", member.__get__(value)
                except AttributeError:
                    continue  # a slot that was never set
    if hasattr(type(value), "__array_interface__") or type(value).__module__.partition(".")[0] == "pandas":
        yield from _elements(value)


def _elements(value: Any) -> Iterator[tuple[str, Any]]:
    """Python objects in arrays and frames."""
    if hasattr(value, "columns") and hasattr(value, "iloc"):
        for at, name in enumerate(list(value.columns)):
            if value.dtypes.iloc[at].kind == "O":
                yield from ((_key(name, at) + f"[{row}]", child) for row, child in enumerate(value.iloc[:, at]))
    elif getattr(getattr(value, "dtype", None), "kind", "") == "O":
        flat = value.ravel() if hasattr(value, "ravel") else value
        yield from ((f"[{at}]", child) for at, child in enumerate(list(flat)))


def _key(key: Any, at: int) -> str:
    if type(key) is int:
        return f"[{key}]"
    if type(key) is str and len(key) <= 40 and key.isprintable() and not looks_secret_field("", key):
        return f"[{key!r}]"
    return f"[key {at}]"
