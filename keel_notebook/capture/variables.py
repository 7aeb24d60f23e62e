"""What the variables of a local module hold, as texts that compare equal while nothing changes (traps 16)."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import sys
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

from keel_notebook.capture.installed import is_installed
from keel_notebook.capture.namespace import is_data
from keel_notebook.capture.plain import plain, token

_MOST_DATA = 64 << 20
_HOLDERS = (dict, list, tuple, set, frozenset, SimpleNamespace)
_DEPTH = 2
_HEAP_TYPE = 1 << 9
_HOLD_NOTHING = frozenset(
    {FunctionType, BuiltinFunctionType, ModuleType, int, float, bool, str, bytes, type(None), list, dict, tuple, set}
)
"""Exact types of most globals: no settings are kept in attributes of such."""


def public_variables(module: ModuleType) -> dict[str, str]:
    """The plain variables of a module as tokens, and the plain attributes of its classes and of their objects, under
    dotted names (``cfg.lr``). A leading underscore marks what is its own affair: memos, counters."""
    found = {name: token(value) for name, value in list(vars(module).items()) if name[:1] != "_" and plain(value)}
    return found | {path: token(value) for path, value in attributes_of(module) if plain(value)}


def attributes_of(module: ModuleType, kinds: frozenset[type] | None = None) -> list[tuple[str, Any]]:
    """Public attributes of the classes that a local module defines, and of its objects of local classes.

    ``kinds``: only values of exactly these types.
    """
    found: list[tuple[str, Any]] = []
    for name, value in list(vars(module).items()):
        kind = type(value)
        if kind not in _HOLD_NOTHING and name[:1] != "_":
            add_attributes(module, name, value, kinds, found)
    return found


def add_attributes(
    module: ModuleType, name: str, value: Any, kinds: frozenset[type] | None, found: list[tuple[str, Any]]
) -> None:
    """Add those of one variable of the module to ``found``."""
    if issubclass(type(value), type):
        if value.__module__ == module.__name__ and value.__qualname__ == name:
            found += [
                (f"{name}.{each}", held)
                for each, held in list(vars(value).items())
                if (kinds is None or type(held) in kinds) and each[:1] != "_"
            ]
    elif (held := _settings(value)) is not None:
        _inside(name, held, kinds, _DEPTH, found)


def _inside(
    path: str, held: dict[Any, Any], kinds: frozenset[type] | None, depth: int, found: list[tuple[str, Any]]
) -> None:
    for each, value in list(held.items()):
        if isinstance(each, str) and each[:1] != "_":
            kind = type(value)
            if depth and kind not in _HOLD_NOTHING and (inner := _settings(value)) is not None:
                _inside(f"{path}.{each}", inner, kinds, depth - 1, found)
            elif kinds is None or kind in kinds:
                found.append((f"{path}.{each}", value))


def _settings(value: Any) -> dict[Any, Any] | None:
    """The attributes of an object whose class a local module defines; None of anything else."""
    kind = type(value)
    if not kind.__flags__ & _HEAP_TYPE or kind is ModuleType or issubclass(kind, type):
        return None
    held = _dict_of(value)
    if type(held) is not dict:
        return None
    home = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return held if isinstance(home, str) and not is_installed(home) else None


def _dict_of(value: Any) -> Any:
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None  # it has slots


def all_data(module: ModuleType) -> dict[str, str]:
    """The variables of a module that hold data of up to 64 MB, as tokens. Two tokens for equal data cost a run only."""
    found = {}
    for name, value in list(vars(module).items()):
        if name[:2] == "__":
            continue
        if plain(value):
            found[name] = token(value)
        elif _may_be_data(value) and sys.getsizeof(value) <= _MOST_DATA:
            with contextlib.suppress(Exception):  # it then counts by the module's source, as what is no data does
                found[name] = hashlib.blake2b(pickle.dumps(value, protocol=5)).hexdigest()
    return found


def _may_be_data(value: Any) -> bool:
    kind = type(value)
    return kind in _HOLDERS or hasattr(kind, "__dataclass_fields__") or issubclass(kind, PurePath) or is_data(value)
