"""Remembers local modules as Python loaded them: their source, and the variables that the import left (traps 9, 16).

Nobody can tell later: a module and ``inspect`` go by the file, which may have been edited since, and a cell may
change ``config.LR`` right after it has imported ``config``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import site
import sys
from collections.abc import Iterator
from functools import cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from itertools import count
from pathlib import PurePath
from types import ModuleType, SimpleNamespace
from typing import Any

from msgspec import Struct, field

from keel_notebook.capture.namespace import is_data
from keel_notebook.capture.plain import plain, token

Stamp = tuple[int, int, int]
"""Size, mtime and ctime in nanoseconds."""


class Load(Struct):
    """One loading of a file. ``serial`` counts the loadings of all files."""

    stamp: Stamp
    source: bytes
    serial: int
    variables: dict[str, str] | None = None
    """The module's public plain variables when its import had ended, as tokens; None where that was not seen."""
    data: dict[str, str] = field(default_factory=dict)
    """All its variables then that hold data, as tokens: see ``all_data``."""


LOADS: dict[str, Load] = {}
"""By path: the last loading that was seen."""

_MOST_DATA = 64 << 20
_HOLDERS = (dict, list, tuple, set, frozenset, SimpleNamespace)
_serials = count(1)
_original = SourceFileLoader.path_stats


def stamp_of(path: str) -> Stamp | None:
    """What tells one version of a file from another, or None where there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def watch_loads() -> None:
    """From now on, remember every local module that is loaded or reloaded. Safe to call twice.

    ``path_stats`` is what every import of a source file asks first, whether its byte code is used or not; and it
    has returned before the module's code runs, so that no frame of keel's is in the tracebacks of that code.
    """
    if SourceFileLoader.path_stats is _original:
        setattr(SourceFileLoader, "path_stats", _path_stats)  # noqa: B010 mypy refuses a plain assignment


def unwatch_loads() -> None:
    """Leave the import system as it was."""
    setattr(SourceFileLoader, "path_stats", _original)  # noqa: B010 as above


def _path_stats(loader: SourceFileLoader, path: str) -> Any:
    stamp = None if is_installed(path) else stamp_of(path)
    if stamp is not None:
        try:
            with open(path, "rb") as file:
                LOADS[path] = Load(stamp, file.read(), next(_serials))
        except OSError:
            LOADS.pop(path, None)
        spec = getattr(sys.modules.get(loader.name), "__spec__", None)
        if type(spec) is ModuleSpec:
            spec.__class__ = _Watched
    return _original(loader, path)


class _Watched(ModuleSpec):
    """The spec of a module whose import is running: Python tells it when the import has ended, by this attribute.

    A wrapper around ``exec_module`` would tell as well, but stand in every traceback of the module's code.
    """

    @property
    def _initializing(self) -> bool:
        return True

    @_initializing.setter
    def _initializing(self, running: bool) -> None:
        self.__class__ = ModuleSpec  # type: ignore[assignment]  # what it was before its import began
        self._initializing = running
        load, module = LOADS.get(self.origin or ""), sys.modules.get(self.name)
        if load is not None and module is not None:
            load.variables, load.data = public_variables(module), all_data(module)


def public_variables(module: ModuleType) -> dict[str, str]:
    """The plain variables of a module as tokens, and the plain attributes of its classes and of their objects, under
    dotted names (``cfg.lr``). A leading underscore marks what is its own affair: memos, counters."""
    found = {name: token(value) for name, value in list(vars(module).items()) if name[:1] != "_" and plain(value)}
    return found | {path: token(value) for path, value in attributes_of(module) if plain(value)}


def attributes_of(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Public attributes of the classes that a local module defines, and of its objects of local classes."""
    for name, value in list(vars(module).items()):
        if name[:1] == "_":
            continue
        if isinstance(value, type):
            if value.__module__ == module.__name__ and value.__qualname__ == name:
                yield from ((f"{name}.{each}", held) for each, held in list(vars(value).items()) if each[:1] != "_")
        elif _is_settings(value):
            yield from _attributes(name, value, _DEPTH)


def _attributes(path: str, owner: Any, depth: int) -> Iterator[tuple[str, Any]]:
    for each, held in list(_dict_of(owner).items()):
        if isinstance(each, str) and each[:1] != "_":
            if depth and _is_settings(held):
                yield from _attributes(f"{path}.{each}", held, depth - 1)
            else:
                yield f"{path}.{each}", held


def _is_settings(value: Any) -> bool:
    """Whether a value is an object with attributes whose class a local module defines."""
    kind = type(value)
    if kind is ModuleType or issubclass(kind, type) or not kind.__flags__ & _HEAP_TYPE:
        return False
    home = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return isinstance(home, str) and not is_installed(os.path.abspath(home)) and type(_dict_of(value)) is dict


def _dict_of(value: Any) -> Any:
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None  # it has slots


_DEPTH = 2
_HEAP_TYPE = 1 << 9


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


def serial_of(path: str) -> int:
    """Which loading of a file was the last one seen; 0 for none."""
    load = LOADS.get(path)
    return 0 if load is None else load.serial


_PACKAGES = re.compile(r"[/\\](?:site|dist)-packages[/\\]")


def is_installed(path: str) -> bool:
    """Whether a file belongs to Python, to an installed package or to keel: such count by name, not by content."""
    if _PACKAGES.search(path):  # also one that a .pth file or PYTHONPATH adds, from beside this Python
        return True
    return path.startswith(_roots()) or os.path.realpath(path).startswith(_roots())


@cache
def _roots() -> tuple[str, ...]:
    python, keel = os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(__file__))
    found = [python, keel, *site.getsitepackages(), site.getusersitepackages()]
    return tuple({os.path.join(root, "") for path in found for root in (path, os.path.realpath(path))})
