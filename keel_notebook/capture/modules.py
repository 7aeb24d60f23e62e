"""Modules as inputs: installed ones by name, local ones by the source that was *loaded* (DESIGN 6; C28, traps 9, 16).

A local module counts with every local module that it imports, and with its plain public variables where they
differ from what the import left (``config.LR = 0.1``). Where disk and memory differ, the digest says so: a step
then executes, and its record is valid for the loaded source only.
"""

from __future__ import annotations

import ast
import importlib.machinery
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from keel_notebook.capture.loads import LOADS, Stamp, all_data, is_installed, public_variables, serial_of, stamp_of
from keel_notebook.core.computed import computed
from keel_notebook.core.fingerprint import definition_digest
from keel_notebook.core.ids import text_digest
from keel_notebook.core.model import Digest
from keel_notebook.core.ports import Digested

EDITED = "edited but not reloaded"
"""Said of a module whose file holds other code than this kernel has loaded."""


class Source(Struct, frozen=True):
    """A version of a module's file: its code, and the names that may be modules it imports."""

    code: Digest
    imports: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    """Names whose values the code alone does not determine."""


class _Known(Struct):
    """A loaded local module."""

    path: str
    stamp: Stamp | None
    """Of the file as it was loaded."""
    source: Source | None
    """What was loaded, or None where nobody can tell."""
    serial: int
    variables: dict[str, str]
    data: dict[str, str]
    autoreload_saw: float | None = None


class LoadedModules:
    """What this kernel has loaded. One per kernel."""

    def __init__(self, shell: Any, *, process_started: Callable[[], float]) -> None:
        """``process_started`` gives the start of this process in seconds since the epoch."""
        self._shell = shell
        self._process_started = process_started
        self._known: dict[str, _Known] = {}
        self._sources: dict[tuple[str, Stamp], Source] = {}
        self._installed: set[str] = set()
        self._closures: dict[str, tuple[object, list[str]]] = {}
        self._looked_at: set[str] = set()
        self.look()

    def look(self) -> None:
        """Notice what is new. To be called after every cell: what is noticed late is known less surely."""
        if len(sys.modules) != len(self._looked_at):
            names = set(sys.modules)
            for name in names - self._looked_at:
                self._notice(name)
            self._looked_at = names
        for name, known in list(self._known.items()):
            self._notice(name)
            if known.stamp == stamp_of(known.path):
                known.autoreload_saw = self._autoreload_saw(name, known.path)

    def module(self, name: str) -> Digested:
        """The digest of a module, loaded or not: see ``ports.Definitions.module``."""
        if name == "__main__":
            return Digested(None, reason="it is the notebook itself")
        if name.startswith("_cython_"):  # where the types of compiled functions live, in every process alike
            return Digested(text_digest("module", "cython"))
        if not self.is_local(name):
            module = sys.modules.get(name)
            if module is None and _find(name) is None:
                return Digested(None, reason="it was made at run time")
            if module is not None and module.__spec__ is None and not hasattr(module, "__file__"):
                return Digested(None, reason="it was made at run time")
            return Digested(text_digest("module", name))
        parts = [name]
        for each in self._closure(name):
            part, reason = self._part(each)
            if part is None:
                return Digested(None, reason=reason)
            parts += (each, part)
        return Digested(text_digest("local module", *parts), reason=EDITED if self.is_edited(name) else "")

    def is_local(self, name: str) -> bool:
        """Whether a module counts by its source: it exists as a file that belongs to no installed package."""
        root = name.partition(".")[0]
        if root in sys.stdlib_module_names or root in self._installed:
            return False
        path = _path(name)
        if path is not None and not is_installed(path):
            return True
        if (found := _path(root)) is not None and is_installed(found):
            self._installed.add(root)
        return False

    def edited_not_reloaded(self) -> list[str]:
        """File names of loaded local modules whose file holds other code by now."""
        return sorted(
            {os.path.basename(known.path) for name, known in self._known.items() if self._edited(name, known)}
        )

    def is_edited(self, name: str) -> bool:
        """Whether the file of a loaded local module, or of one that it imports, holds other code by now."""
        if name not in sys.modules or not self.is_local(name):
            return False
        known = ((each, self._known.get(each)) for each in self._closure(name))
        return any(each is not None and self._edited(module, each) for module, each in known)

    def _closure(self, name: str) -> list[str]:
        """The local modules that a module imports, itself included, sorted."""
        remembered = self._closures.get(name)
        if remembered is not None and remembered[0] == self._state_of(remembered[1]):
            return remembered[1]
        found, todo = set[str](), [name]
        while todo:
            each = todo.pop()
            if each in found or not self.is_local(each):
                continue
            found.add(each)
            if (source := self._source(each)) is not None:
                todo += source.imports
            if "." in each:
                todo.append(each.rpartition(".")[0])  # its package was loaded before it
        closure = sorted(found)
        self._closures[name] = (self._state_of(closure), closure)
        return closure

    def _state_of(self, names: list[str]) -> object:
        paths = [known.path if (known := self._known.get(name)) is not None else _path(name) for name in names]
        return len(sys.modules), sys.path.copy(), [path and (stamp_of(path), serial_of(path)) for path in paths]

    def _source(self, name: str) -> Source | None:
        if name in sys.modules:
            known = self._notice(name)
            return None if known is None else known.source
        path = _path(name)
        return None if path is None else self._on_disk(name, path)

    def _part(self, name: str) -> tuple[str | None, str]:
        """What one module adds to a digest, or None and why nobody can say."""
        source = self._source(name)
        if source is None:
            loaded = "was edited since this kernel started: nobody can tell which version it loaded"
            return None, f"{name} {loaded if name in sys.modules else 'cannot be read'}"
        known = self._known.get(name) if name in sys.modules else None
        if known is None:
            return source.code, ""
        edited = self._edited(name, known)
        assert known.source is not None
        changed = _changed(known.variables, public_variables(sys.modules[name]))
        found = [text for each in known.source.computed if each in known.data for text in (each, known.data[each])]
        if not edited and not changed and not found:
            return known.source.code, ""
        found_too = ("import found", *found) if found else ()
        return text_digest(known.source.code, "edited, not reloaded" if edited else "", *changed, *found_too), ""

    def _edited(self, name: str, known: _Known) -> bool:
        now = stamp_of(known.path)
        if known.source is None or now == known.stamp:
            return False
        disk = self._on_disk(name, known.path)
        if disk is not None and disk.code == known.source.code:
            known.stamp = now  # touched, or formatted
            return False
        seen = self._autoreload_saw(name, known.path)
        if disk is not None and known.autoreload_saw is not None and seen not in (None, known.autoreload_saw):
            # %autoreload has patched the module's functions in place: memory says what the disk says.
            known.stamp, known.source, known.autoreload_saw = now, disk, seen
            return False
        return True

    def _notice(self, name: str) -> _Known | None:
        """What is known of a loaded module; None where it is not a local one."""
        known = self._known.get(name)
        if known is not None and known.serial == serial_of(known.path):
            return known
        module, path = sys.modules.get(name), _path(name)
        if module is None or path is None or not self.is_local(name):
            return None
        load = LOADS.get(path)
        if load is not None:
            source: Source | None = self._read(name, path, load.stamp, load.source)
            left = (load.variables, load.data) if load.variables else (public_variables(module), all_data(module))
            known = _Known(path, load.stamp, source, load.serial, *left)
        else:
            # Loaded before keel: the file is what was loaded if nobody has touched it since the process began.
            stamp = stamp_of(path)
            old = stamp is not None and max(stamp[1:]) < self._process_started() * 1e9
            source = self._on_disk(name, path) if old else None
            known = _Known(path, stamp, source, 0, public_variables(module), all_data(module))
        known.autoreload_saw = self._autoreload_saw(name, path)
        self._known[name] = known
        return known

    def _on_disk(self, name: str, path: str) -> Source | None:
        stamp = stamp_of(path)
        if stamp is None or (path, stamp) in self._sources:
            return None if stamp is None else self._sources[path, stamp]
        try:
            with open(path, "rb") as file:
                return self._read(name, path, stamp, file.read())
        except OSError:
            return None

    def _read(self, name: str, path: str, stamp: Stamp, source: bytes) -> Source:
        if (path, stamp) not in self._sources:
            self._sources[path, stamp] = read_source(name, path, source)
        return self._sources[path, stamp]

    def _autoreload_saw(self, name: str, path: str) -> float | None:
        """The modification time up to which ``%autoreload`` has brought a module, or None."""
        magics = self._shell.magics_manager.registry.get("AutoreloadMagics")
        reloader = getattr(magics, "_reloader", None)
        if not getattr(reloader, "enabled", False):
            return None
        seen: float | None = getattr(reloader, "modules_mtimes", {}).get(name)
        return None if getattr(reloader, "failed", {}).get(path) == seen else seen


def read_source(name: str, path: str, source: bytes) -> Source:
    """A module's file as an input: normalised where it is Python, byte by byte where it is not."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return Source(text_digest("bytes", source.decode("latin-1")))
    package = name if os.path.basename(path).startswith("__init__.") else name.rpartition(".")[0]
    return Source(definition_digest(tree), tuple(sorted(set(_imports(tree, package)))), computed(tree))


def _imports(tree: ast.Module, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            base = parents[: len(parents) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module:
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names if alias.name != "*")


def _path(name: str) -> str | None:
    """The file of a module, loaded or not; None for built-in modules, namespaces and what does not exist."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None) if module is not None else _find(name)
    path = getattr(module, "__file__", None) if spec is None else spec.origin if spec.has_location else None
    return os.path.abspath(path) if isinstance(path, str) else None


def _find(name: str) -> importlib.machinery.ModuleSpec | None:
    """Where a module that is not loaded would come from. Unlike ``importlib.util.find_spec`` it imports nothing."""
    path: Any = None
    spec = None
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        if end > 1 and path is None:
            return None
        try:
            spec = importlib.machinery.PathFinder.find_spec(".".join(parts[:end]), path)
        except (ImportError, ValueError, OSError):
            return None
        if spec is None:
            return None
        path = spec.submodule_search_locations
    return spec


def _changed(before: dict[str, str], now: dict[str, str]) -> list[str]:
    names = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    return [text for name in names for text in (name, now.get(name, "deleted"))]
