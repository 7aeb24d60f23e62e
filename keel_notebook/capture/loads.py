"""Remembers local modules as Python loaded them: their source, and the variables that the import left (traps 9, 16).

Nobody can tell later: a module and ``inspect`` go by the file, which may have been edited since, and a cell may
change ``config.LR`` right after it has imported ``config``.
"""

from __future__ import annotations

import os
import sys
import weakref
from importlib.machinery import ModuleSpec, SourceFileLoader
from itertools import count
from types import ModuleType
from typing import Any

from msgspec import Struct, field

from keel_notebook.capture.installed import is_installed
from keel_notebook.capture.variables import all_data, public_variables

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
    spec: weakref.ref[ModuleSpec] | None = None
    """Which spec the module had: a reload makes a new one, also where nobody watches."""


LOADS: dict[str, Load] = {}
"""By path: the last loading that was seen. The newest one is the last."""


class Found(Struct):
    """A local module that had been loaded before anybody watched, as it was when it was first met."""

    module: weakref.ref[ModuleType]
    spec: Any
    """As in ``Load``."""
    stamp: Stamp | None
    source: bytes | None
    """What its file held then; None where it could not be read, or changed meanwhile."""
    variables: dict[str, str]
    data: dict[str, str]


_FOUND: dict[str, Found] = {}
"""By name. What a module was does not depend on who asks: it belongs to the process, as ``LOADS`` does."""

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
        LOADS.pop(path, None)
        spec = getattr(sys.modules.get(loader.name), "__spec__", None)
        if (source := read_file(path)) is not None:
            LOADS[path] = Load(stamp, source, next(_serials))
        if type(spec) is ModuleSpec:
            if source is not None:
                LOADS[path].spec = weakref.ref(spec)
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


def serial_of(path: str) -> int:
    """Which loading of a file was the last one seen; 0 for none."""
    load = LOADS.get(path)
    return 0 if load is None else load.serial


def loads_seen() -> int:
    """Which loading of any file was the last one seen."""
    return next(reversed(LOADS.values())).serial if LOADS else 0


def seen_of(module: ModuleType, path: str) -> Load | None:
    """The last loading of a module, if it was seen: None where it was loaded again while nobody watched."""
    load, spec = LOADS.get(path), getattr(module, "__spec__", None)
    again = load is not None and load.spec is not None and isinstance(spec, ModuleSpec) and load.spec() is not spec
    return None if again else load


def found(name: str, module: ModuleType, path: str) -> Found:
    """What is known of a module whose loading nobody saw: its file and its variables when it was first met."""
    known, spec = _FOUND.get(name), getattr(module, "__spec__", None)
    if known is None or known.module() is not module or known.spec is not spec:
        stamp = stamp_of(path)
        source = None if stamp is None else read_file(path)
        if source is not None and stamp_of(path) != stamp:
            source = None  # which of the two is this?
        known = Found(weakref.ref(module), spec, stamp, source, public_variables(module), all_data(module))
        _FOUND[name] = known
    return known


def read_file(path: str) -> bytes | None:
    """What a file holds, or None where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None
