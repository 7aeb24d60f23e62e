"""Reading what is left of a record when parts of it cannot come back: a class that changed, a module that is gone.

The patient way beside ``pickles``, for restores only: whatever fails on the way becomes ``Gone``, and so does what is
made out of it. In the end only names that reach nothing of that kind are given to anybody (C46, C56).
"""

from __future__ import annotations

import gc
import io
import pickle
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from keel_notebook.errors import DefinitionChangedError, KeelError, UntrustedError
from keel_notebook.payload.pickles import global_name, preface
from keel_notebook.payload.plain import PlainReader
from keel_notebook.payload.rebuild import Rebuild
from keel_notebook.payload.typename import type_name


class Gone:
    """Stands for a part that cannot come back, with the reason. No value that holds one leaves this module."""

    def __init__(self, reason: str, fills: Any = None) -> None:
        self.reason = reason
        self.fills = fills
        """The object that is there already and that something should have been put into."""


def gone(error: Exception) -> Gone:
    """What stands for a part whose making failed. What stops everything (no memory, no trust) is raised again."""
    if isinstance(error, MemoryError | UntrustedError):
        raise error
    if isinstance(error, DefinitionChangedError):
        return Gone(f"it needs {error.facts['name']}, which {error.facts['detail']}")
    if isinstance(error, ImportError) and error.name:
        return Gone(f"module {error.name} is missing")
    return Gone(str(error) if isinstance(error, KeelError) else f"it cannot be read back ({type_name(type(error))})")


class Losses:
    """Objects that exist and lack a part, and the search for values that reach one, or a ``Gone``."""

    def __init__(self, space: Mapping[str, Any]) -> None:
        self._space = space
        self._lacking: dict[int, tuple[Any, Gone]] = {}

    def add(self, thing: Any, part: Gone) -> None:
        """Remember that an object lacks a part."""
        self._lacking[id(thing)] = (thing, part)

    def near(self, thing: Any) -> Gone | None:
        """What of a thing's own parts is gone, as far as builtin containers lead."""
        return self._search(thing, _contents)

    def anywhere(self, value: Any) -> Gone | None:
        """What of all that a value reaches is gone. The notebook's names and modules are not part of a value."""
        seen = {id(self._space), *(id(vars(module)) for module in list(sys.modules.values()) if module is not None)}
        return self._search(value, _referents, seen)

    def _search(self, root: Any, inside: Callable[[Any], Iterable[Any]], seen: set[int] | None = None) -> Gone | None:
        met = set() if seen is None else seen
        waiting = [root]
        while waiting:
            thing = waiting.pop()
            if type(thing) is Gone:
                return thing
            if id(thing) in self._lacking:
                return self._lacking[id(thing)][1]
            if id(thing) not in met:
                met.add(id(thing))
                waiting += inside(thing)
        return None


def _contents(thing: Any) -> Iterable[Any]:
    if isinstance(thing, dict):
        return [*thing, *thing.values()]
    return thing if isinstance(thing, list | tuple | set | frozenset) else ()


def _referents(thing: Any) -> Iterable[Any]:
    if isinstance(thing, ModuleType):
        return ()
    if isinstance(thing, type):
        return () if thing.__module__ != "__main__" else gc.get_referents(thing)
    dtype = getattr(thing, "dtype", None) if hasattr(type(thing), "__array_interface__") else None
    if dtype is not None and dtype.hasobject:  # arrays do not tell Python what they hold
        return [*gc.get_referents(thing), *thing.ravel().tolist()]
    return gc.get_referents(thing)


_Steps: Any = pickle._Unpickler
"""The unpickler whose single steps are methods, so that one can fail alone."""


class PartReader(_Steps):  # type: ignore[misc]
    """Reads what a ``pickles.Writer`` wrote, as far as it can be read. Only ever given bytes that the owner sealed."""

    stack: list[Any]

    def __init__(  # noqa: PLR0913 - those of a Reader, and what it cannot read
        self, raw: bytes, rebuilt: Rebuild, *, buffers: Sequence[Any], slots: int, used: Mapping[int, Any], lost: Losses
    ) -> None:
        super().__init__(io.BytesIO(preface(slots, used) + raw if slots else raw), buffers=buffers)
        self._rebuilt = rebuilt
        self._used = used
        self._slots = slots
        self._lost = lost
        self._fillers = (
            rebuilt.fill_function,
            rebuilt.fill_class,
            rebuilt.fill_cell,
            rebuilt.fill_read_only,
            rebuilt.fill_widget,
        )

    def values(self, count: int) -> list[Any]:
        """All values, in the order written."""
        if self._slots:
            self.load()
        return [self.load() for _ in range(count)]

    def find_class(self, module: str, name: str) -> Any:
        """What a global name in the stream means."""
        try:
            return global_name(self._rebuilt, module, name, super().find_class)
        except AttributeError:
            return Gone(f"{module}.{name} is missing")
        except Exception as error:  # noqa: BLE001 - a module may fail in any way while it is imported
            return gone(error)

    def persistent_load(self, pid: int) -> Any:
        """A journaled object."""
        return self._used[pid]

    def _make(self, arguments: int, make: Callable[[], None], fills: Any = None) -> None:
        """What makes one object from so many on the stack. Where one of them is gone, or it fails, that object is."""
        below = len(self.stack) - arguments
        lacks = self._lost.near(self.stack[below:])
        if lacks is None:
            try:
                make()
            except Exception as error:  # noqa: BLE001 - any class may refuse in its own way
                lacks = gone(error)
            else:
                return
        del self.stack[below:]
        self.stack.append(Gone(lacks.reason, fills))

    def _fill(self, fill: Callable[[], None]) -> None:
        """What puts something into an object that is there already."""
        try:
            fill()
        except Exception as error:  # noqa: BLE001 - any class may refuse in its own way
            self._lost.add(self.stack[-1], gone(error))

    def load_reduce(self) -> None:
        """A call: of a class, or of what fills in an object that was made before (its result is thrown away)."""
        func, args = self.stack[-2:]
        self._make(2, super().load_reduce, args[0] if func in self._fillers else None)

    def load_newobj(self) -> None:
        """An instance."""
        self._make(2, super().load_newobj)

    def load_newobj_ex(self) -> None:
        """An instance made with names of arguments."""
        self._make(3, super().load_newobj_ex)

    def load_readonly_buffer(self) -> None:
        """A piece of memory that nobody may write to."""
        self._make(1, super().load_readonly_buffer)

    def load_build(self) -> None:
        """The state of an object."""
        built, state = self.stack[-2:]
        if (lacks := self._lost.near([built, state])) is not None and type(built) is not Gone:
            self._lost.add(built, lacks)
        if type(built) is Gone:
            self.stack.pop()
        else:
            self._fill(super().load_build)

    def load_append(self) -> None:
        """An item of a list."""
        self._fill(super().load_append)

    def load_appends(self) -> None:
        """Items of a list."""
        self._fill(super().load_appends)

    def load_setitem(self) -> None:
        """An item of a dict."""
        self._fill(super().load_setitem)

    def load_setitems(self) -> None:
        """Items of a dict."""
        self._fill(super().load_setitems)

    def load_additems(self) -> None:
        """Members of a set."""
        self._fill(super().load_additems)

    def load_pop(self) -> None:
        """The end of a filling: what could not be filled lacks it from now on."""
        top = self.stack[-1] if self.stack else None
        if type(top) is Gone and top.fills is not None:
            self._lost.add(top.fills, top)
        super().load_pop()


PartReader.dispatch = {code: getattr(PartReader, load.__name__) for code, load in _Steps.dispatch.items()}


class PartPlainReader(PlainReader):
    """Turns nodes into values again, as far as that goes."""

    def _build(self, tag: str, parts: list[Any]) -> Any:
        lacks = next((part for part in parts if type(part) is Gone), None)
        if lacks is not None:
            return lacks
        try:
            return super()._build(tag, parts)
        except Exception as error:  # noqa: BLE001 - a library may fail in any way
            return gone(error)


def attempted(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same, with what stands for a part that is gone in the place of an error."""

    def made(argument: Any) -> Any:
        try:
            return make(argument)
        except Exception as error:  # noqa: BLE001 - any class may refuse in its own way
            return gone(error)

    return made


def split(names: Iterable[str], values: Iterable[Any], lost: Losses) -> tuple[dict[str, Any], dict[str, str]]:
    """The names whose values are whole, and those whose values are not, with the reason."""
    whole: dict[str, Any] = {}
    broken: dict[str, str] = {}
    for name, value in zip(names, values, strict=True):
        if (lacks := lost.anywhere(value)) is None:
            whole[name] = value
        else:
            broken[name] = lacks.reason
    return whole, broken
