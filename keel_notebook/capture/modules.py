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
from types import ModuleType
from typing import Any

from msgspec import Struct

from keel_notebook.capture.installed import is_installed, is_of_installed
from keel_notebook.capture.loads import Stamp, found, loads_seen, read_file, seen_of, serial_of, stamp_of
from keel_notebook.capture.variables import all_data, public_variables
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
    spec: Any
    stamp: Stamp | None
    """Of the file as it was loaded."""
    text: bytes | None
    """What was loaded, until somebody asks for its code; None also where nobody can tell."""
    serial: int
    variables: dict[str, str]
    data: dict[str, str]
    autoreload_saw: float | None = None
    source: Source | None = None

    def loaded(self, name: str) -> Source | None:
        """The code that was loaded, parsed when it is asked for the first time; None where nobody can tell."""
        if self.text is not None and self.stamp is not None:
            self.source, self.text = _read(name, self.path, self.stamp, self.text), None
        return self.source


_SOURCES: dict[tuple[str, str, Stamp], Source] = {}
"""Files as modules, by name, path and stamp: of each version that was asked for, parsed once."""


class _Stamps(dict[str, Stamp | None]):
    """The stamps of files, by path: each is looked up once for one question."""

    def __missing__(self, path: str) -> Stamp | None:
        self[path] = stamp = stamp_of(path)
        return stamp


class _Looks(Struct):
    """What was looked up while nobody changes anything: for one question, or for several asked at once."""

    stamps: _Stamps
    closures: dict[str, frozenset[str]]
    parts: dict[str, tuple[str | None, str, bool]]
    local: dict[str, bool]

    @classmethod
    def new(cls) -> _Looks:
        return cls(_Stamps(), {}, {}, {})


class LoadedModules:
    """What this kernel has loaded. One per kernel."""

    def __init__(self, shell: Any, *, process_started: Callable[[], float]) -> None:
        """``process_started`` gives the start of this process in seconds since the epoch."""
        self._shell = shell
        self._process_started = process_started
        self._known: dict[str, _Known] = {}
        self._installed: set[str] = set()
        self._closures: dict[str, tuple[object, frozenset[str]]] = {}
        self._looked_at: set[str] = set()
        self._newest: tuple[int, str, int] | None = None
        self.look()

    def look(self) -> None:
        """Notice what is new. To be called after every cell: what is noticed late is known less surely.

        No file is asked for while nothing was loaded: a person may have hundreds of modules.
        """
        newest = (len(sys.modules), next(reversed(sys.modules)), loads_seen())
        if newest != self._newest:
            self._newest, names = newest, set(sys.modules)
            for name in names - self._looked_at | self._known.keys():
                self._notice(name)
            self._looked_at = names
        if (reloader := self._reloader()) is not None:
            for name, known in list(self._known.items()):
                saw = _autoreload_saw(reloader, name, known.path)
                if saw != known.autoreload_saw and known.stamp == stamp_of(known.path):
                    known.autoreload_saw = saw

    def module(self, name: str) -> Digested:
        """The digest of a module, loaded or not: see ``ports.Definitions.module``."""
        return self._module(name, _Looks.new())

    def at_once(self) -> Callable[[str], Digested]:
        """``module`` for many names while nobody changes anything: what they share is looked at once.

        The modules of one large package lead to each other: each by itself would look at all of them.
        """
        looks = _Looks.new()
        return lambda name: self._module(name, looks)

    def _module(self, name: str, looks: _Looks) -> Digested:
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
        parts, edited = [name], False
        for each in sorted(self._closure(name, looks)):
            if each not in looks.parts:
                looks.parts[each] = self._part(each, looks.stamps)
            part, reason, differs = looks.parts[each]
            if part is None:
                return Digested(None, reason=reason)
            parts += (each, part)
            edited = edited or differs
        return Digested(text_digest("local module", *parts), reason=EDITED if edited else "")

    def is_local(self, name: str) -> bool:
        """Whether a module counts by its source: it exists as a file that belongs to no installed package."""
        return self._local_path(name) is not None

    def _local_path(self, name: str) -> str | None:
        """The file of a local module; None for any other."""
        root = name.partition(".")[0]
        if root in sys.stdlib_module_names or root in self._installed:
            return None
        path = _path(name)
        if path is not None and not is_installed(path):
            return path
        if (found := _path(root)) is not None and is_installed(found):
            self._installed.add(root)
        return None

    def edited_not_reloaded(self) -> list[str]:
        """File names of loaded local modules whose file holds other code by now."""
        stamps = _Stamps()
        edited = (known.path for name, known in list(self._known.items()) if self._edited(name, known, stamps))
        return sorted({os.path.basename(path) for path in edited})

    def is_edited(self, name: str) -> bool:
        """Whether the file of a loaded local module, or of one that it imports, holds other code by now."""
        if name not in sys.modules or not self.is_local(name):
            return False
        looks = _Looks.new()
        known = ((each, self._known.get(each)) for each in self._closure(name, looks))
        return any(each is not None and self._edited(module, each, looks.stamps) for module, each in known)

    def _closure(self, name: str, looks: _Looks) -> frozenset[str]:
        """The local modules that a module imports, itself included."""
        if (remembered := self._remembered(name, looks)) is not None:
            return remembered
        found, todo = set[str](), [name]
        while todo:
            each = todo.pop()
            if each in found:
                continue
            if (remembered := self._remembered(each, looks)) is not None:
                found |= remembered
                continue
            if each not in looks.local:
                looks.local[each] = self.is_local(each)
            if not looks.local[each]:
                continue
            found.add(each)
            if (source := self._source(each, looks.stamps)) is not None:
                todo += source.imports
            if "." in each:
                todo.append(each.rpartition(".")[0])  # its package was loaded before it
        closure = looks.closures[name] = frozenset(found)
        self._closures[name] = (self._state_of(closure, looks.stamps), closure)
        return closure

    def _remembered(self, name: str, looks: _Looks) -> frozenset[str] | None:
        """The closure of a module that was found before, if it still holds."""
        if name not in looks.closures and (before := self._closures.get(name)) is not None:
            state, closure = before
            if state == self._state_of(closure, looks.stamps):
                looks.closures[name] = closure
            else:
                del self._closures[name]
        return looks.closures.get(name)

    def _state_of(self, names: frozenset[str], stamps: _Stamps) -> object:
        paths = [known.path if (known := self._known.get(name)) is not None else _path(name) for name in names]
        return len(sys.modules), sys.path.copy(), [path and (stamps[path], serial_of(path)) for path in paths]

    def _source(self, name: str, stamps: _Stamps) -> Source | None:
        if name in sys.modules:
            known = self._notice(name)
            return None if known is None else known.loaded(name)
        path = _path(name)
        return None if path is None else _on_disk(name, path, stamps)

    def _part(self, name: str, stamps: _Stamps) -> tuple[str | None, str, bool]:
        """What one module adds to a digest, or None and why nobody can say; and whether its file was edited since."""
        source = self._source(name, stamps)
        if source is None:
            loaded = "was edited since this kernel started: nobody can tell which version it loaded"
            return None, f"{name} {loaded if name in sys.modules else 'cannot be read'}", False
        known = self._known.get(name) if name in sys.modules else None
        if known is None:
            return source.code, "", False
        edited = self._edited(name, known, stamps)
        source = known.loaded(name) or source  # autoreload may have brought it up to date
        changed = _changed(known.variables, public_variables(sys.modules[name]))
        found = [text for each in source.computed if each in known.data for text in (each, known.data[each])]
        if not edited and not changed and not found:
            return source.code, "", False
        found_too = ("import found", *found) if found else ()
        return text_digest(source.code, "edited, not reloaded" if edited else "", *changed, *found_too), "", edited

    def _edited(self, name: str, known: _Known, stamps: _Stamps) -> bool:
        now = stamps[known.path]
        if now == known.stamp or (loaded := known.loaded(name)) is None:
            return False
        disk = _on_disk(name, known.path, stamps)
        if disk is not None and disk.code == loaded.code:
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
        if known is None and is_of_installed(name):
            return None
        module = sys.modules.get(name)
        spec = getattr(module, "__spec__", None)
        if known is not None and known.spec is spec and known.serial == serial_of(known.path):
            return known
        path = None if module is None else self._local_path(name)
        if module is None or path is None:
            return None
        load = seen_of(module, path)
        if load is not None:
            seen = load.variables is not None
            left = (load.variables or {}, load.data) if seen else (public_variables(module), all_data(module))
            known = _Known(path, spec, load.stamp, load.source, load.serial, *left)
        else:
            # Loaded unseen: the file is what was loaded if nobody has touched it since the process began.
            met = found(name, module, path)
            old = met.stamp is not None and max(met.stamp[1:]) < self._process_started() * 1e9
            known = _Known(path, spec, met.stamp, met.source if old else None, serial_of(path), met.variables, met.data)
        known.autoreload_saw = self._autoreload_saw(name, path)
        self._known[name] = known
        return known

    def _autoreload_saw(self, name: str, path: str) -> float | None:
        """The modification time up to which ``%autoreload`` has brought a module, or None."""
        reloader = self._reloader()
        return None if reloader is None else _autoreload_saw(reloader, name, path)

    def _reloader(self) -> Any:
        """What ``%autoreload`` reloads with; None while it is off."""
        reloader = getattr(self._shell.magics_manager.registry.get("AutoreloadMagics"), "_reloader", None)
        return reloader if getattr(reloader, "enabled", False) else None


def _autoreload_saw(reloader: Any, name: str, path: str) -> float | None:
    seen: float | None = getattr(reloader, "modules_mtimes", {}).get(name)
    return None if getattr(reloader, "failed", {}).get(path) == seen else seen


def _on_disk(name: str, path: str, stamps: _Stamps) -> Source | None:
    """What a module's file holds now; None where it cannot be read, or is being written."""
    stamp = stamps[path]
    if stamp is None or (name, path, stamp) in _SOURCES:
        return None if stamp is None else _SOURCES[name, path, stamp]
    text = read_file(path)
    return _read(name, path, stamp, text) if text is not None and stamp_of(path) == stamp else None


def _read(name: str, path: str, stamp: Stamp, text: bytes) -> Source:
    if (name, path, stamp) not in _SOURCES:
        _SOURCES[name, path, stamp] = read_source(name, path, text)
    return _SOURCES[name, path, stamp]


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
    """Where a module that is not loaded would come from. Unlike ``importlib.util.find_spec`` it imports nothing.

    As the import itself does, it goes by the packages that are loaded already.
    """
    parts = name.split(".")
    begin, path = _loaded_package(parts)
    spec = None
    for end in range(begin, len(parts) + 1):
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


def _loaded_package(parts: list[str]) -> tuple[int, Any]:
    """How many parts lead to the loaded package next to what is sought, plus one; and the folders of that package."""
    for end in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:end]))
        if type(module) is ModuleType:
            folders = vars(module).get("__path__")
            return end + 1, None if folders is None else list(folders)
    return 1, None


def _changed(before: dict[str, str], now: dict[str, str]) -> list[str]:
    names = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    return [text for name in names for text in (name, now.get(name, "deleted"))]
