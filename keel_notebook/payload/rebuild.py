"""The names that keel's pickles refer to, and what they do when a payload is read.

Part of the stored format: a name here is never removed and never changes its meaning. In this module they are only
names; ``pickles`` binds them to one reading (its buffers, the live namespace), so that nothing here works by itself.
"""

from __future__ import annotations

import importlib.util
import linecache
import marshal
import os
import re
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping
from types import CellType, CodeType, FunctionType
from typing import Any

from keel_notebook.core.model import Digest
from keel_notebook.core.ports import Definition
from keel_notebook.errors import DefinitionChangedError
from keel_notebook.payload import closedfile, ownattributes, registry
from keel_notebook.payload.buffers import BufferReader
from keel_notebook.payload.kinds.numpy import build_view
from keel_notebook.payload.plain import held as held_by_module
from keel_notebook.payload.plain import imported, kind_of
from keel_notebook.payload.widgets import Asleep

_CELL_FILE = re.compile(r".*[/\\]ipykernel_\d+[/\\]([^/\\]+\.py)")
MAGIC = importlib.util.MAGIC_NUMBER
"""Byte code is good for one minor version of Python."""


class Name:
    """A name in a pickle: what it stands for is decided by the reading."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.__module__ = __name__

    def __reduce__(self) -> str:
        return self._name

    def __call__(self, *_: Any) -> Any:
        """Pickle wants something that looks as if it could be called."""
        raise TypeError("a name of keel's pickles, which only keel reads")


array = Name("array")
memory = Name("memory")
kind = Name("kind")
view = Name("view")
named = Name("named")
module = Name("module")
function = Name("function")
fill_function = Name("fill_function")
fill_class = Name("fill_class")
cell = Name("cell")
held = Name("held")
fill_cell = Name("fill_cell")
fill_read_only = Name("fill_read_only")
registered = Name("registered")
raised = Name("raised")
fill_raised = Name("fill_raised")
dead = Name("dead")
closed_file = Name("closed_file")
widget = Name("widget")
fill_widget = Name("fill_widget")


class Rebuild:
    """The meaning of the names in one reading."""

    def __init__(  # noqa: PLR0913 - all that the names of one reading speak of
        self,
        buffers: BufferReader,
        space: Mapping[str, Any],
        *,
        learn: Callable[[Any, Definition], None],
        fingerprint: Callable[[Any], str],
        magic: bytes,
        asleep: Asleep,
    ) -> None:
        self.array = buffers.array
        self.memory = buffers.memory
        self.view = build_view
        self.module = imported
        self.held = held_by_module
        self.cell = CellType
        self.closed_file = closedfile.build
        self.widget = asleep.build
        self.fill_widget = asleep.fill
        self._space = space
        self._learn = learn
        self._fingerprint = fingerprint
        self._magic = magic

    def kind(self, tag: str, *parts: Any) -> Any:
        """A value of a kind."""
        return kind_of(tag).build(*parts)

    def named(self, name: str, fingerprint: str) -> Any:
        """A class or function of the notebook by its name, if it still is what it was (C43, C46).

        Raises DefinitionChangedError (E055).
        """
        head, *rest = name.split(".")
        if head not in self._space:
            raise DefinitionChangedError(name=name, detail="is not defined")
        found = self._space[head]
        for part in rest:
            found = getattr(found, part, None)
        if fingerprint and (not isinstance(found, type | FunctionType) or self._fingerprint(found) != fingerprint):
            raise DefinitionChangedError(name=name, detail="has changed since")
        return found

    def function(self, code: bytes, closure: Any, home: str, version: str) -> FunctionType:
        """A function from its code, in the live namespace (C54) or in that of the module that it came from."""
        if self._magic != MAGIC:
            raise DefinitionChangedError(name="a function", detail="was stored by another version of Python")
        space: Any = self._space
        if home:
            owner = imported(home)
            if version_of(home) != version:
                raise DefinitionChangedError(name=f"module {home}", detail=f"is not version {version} any more")
            space = vars(owner)
        loaded: CodeType = marshal.loads(code)  # noqa: S302 - sealed by the owner, as all of a payload is
        return FunctionType(at_home(loaded), space, closure=closure)

    def fill_function(self, built: FunctionType, state: dict[str, Any]) -> None:
        """What a function carries, and where its source is, so that tracebacks show it."""
        definition = state.pop("definition")
        source = state.pop("source")
        for attribute, value in state.items():
            if attribute == "__dict__":
                built.__dict__.update(value)
            else:
                setattr(built, attribute, value)
        if source is not None:
            name = built.__code__.co_filename
            lines = source.splitlines(keepends=True)
            linecache.cache.setdefault(name, (len(source), None, lines, name))
        self._learned(built, definition)

    def fill_class(self, built: type, state: tuple[Any, ...]) -> None:
        """What a class carries, by cloudpickle's own means, and its whole name (older records do not know it)."""
        fill, carried, definition, *qualname = state
        fill(built, carried)
        if qualname:
            built.__qualname__ = qualname[0]
        self._learned(built, definition)

    def fill_read_only(self, built: Any, state: tuple[Any, dict[str, Any] | None]) -> None:
        """The content, and attributes of its own, of an array that somebody made read-only."""
        ownattributes.put_back(built, (state[0], state[1] or {}))
        built.flags.writeable = False

    def fill_cell(self, built: CellType, content: Any) -> None:
        """The content of a closure's variable."""
        built.cell_contents = content

    def registered(self, name: str, dumped: Any) -> Any:
        """A value of a type with a codec of the user. Raises DefinitionChangedError (E055) where that is gone."""
        codec = registry.named(name)
        if codec is None:
            raise DefinitionChangedError(name=f"the codec of {name}", detail="is not registered")
        return codec.load(dumped)

    def dead(self) -> weakref.ref[Any]:
        """A weak reference to something that is gone."""
        return weakref.ref(set())

    def raised(self, cls: type[BaseException], args: tuple[Any, ...], state: dict[str, Any] | None) -> BaseException:
        """An exception without its own ``__init__``, which may want other arguments than it kept."""
        built = cls.__new__(cls, *args)
        built.args = args
        built.__dict__.update(state or {})
        return built

    def fill_raised(self, built: BaseException, carried: tuple[Any, Any, Any, bool]) -> None:
        """What an exception carries, and the exceptions from which it was raised."""
        state, cause, context, suppress = carried
        if state is not None:
            built.__setstate__(state)
        built.__cause__, built.__context__, built.__suppress_context__ = cause, context, suppress

    def _learned(self, thing: Any, definition: tuple[str, tuple[str, ...], str] | None) -> None:
        if definition is not None:
            code, reads, source = definition
            self._learn(thing, Definition(Digest(code), frozenset(reads), source))


def at_home(code: CodeType) -> CodeType:
    """The code under the name that this kernel gives to the cell it came from.

    ipykernel names cells by process and text; with the right name a traceback says ``Cell In[3]`` as before.
    """
    found = _CELL_FILE.fullmatch(code.co_filename)
    if found is None or "ipykernel" not in sys.modules:
        return code
    name = os.path.join(tempfile.gettempdir(), f"ipykernel_{os.getpid()}", found[1])
    inside = tuple(at_home(const) if isinstance(const, CodeType) else const for const in code.co_consts)
    return code.replace(co_filename=name, co_consts=inside)


def version_of(home: str) -> str:
    """The version of the package that a module belongs to, as far as it tells."""
    top = imported(home.partition(".")[0])
    return str(getattr(top, "__version__", ""))
