"""The code behind functions, classes and modules of the notebook, as it was executed (``ports.Definitions``).

Where a source cannot be found for sure the answer is None: unknown, never a guess.
"""

from __future__ import annotations

import builtins
import functools
import operator
import re
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from keel_notebook.capture.attributes import SetAttributes
from keel_notebook.capture.libraries import LibraryState
from keel_notebook.capture.modules import EDITED, LoadedModules
from keel_notebook.capture.namespace import attributes, kinds, persons_names
from keel_notebook.capture.started import process_started
from keel_notebook.capture.texts import ExecutedTexts, Place, places
from keel_notebook.core.cellcode import ParsedCell, parse_cell
from keel_notebook.core.hidden import NOTHING, Named
from keel_notebook.core.ids import text_digest
from keel_notebook.core.model import Digest
from keel_notebook.core.ports import Definition, Digested
from keel_notebook.core.reads import DefinedNames, analyse

IMPORTED = "import "
"""Stands before a module among the names that code reads: the code imports it itself, or reaches it by dots."""

_NOTEWORTHY = re.compile(r"\bclass |\.\w+[^\n]*=|\bdel\b|attr\(|patch\(|\.register\(|\.(?:sql|execute|query)\(")
"""Cells with a class, that set an attribute, or that speak to a database."""
_MODULES_OWN = frozenset({"__name__", "__file__", "__doc__", "__builtins__"})
_MOST_FUNCTIONS = 20_000


class NotebookDefinitions:
    """The code of functions, classes and modules of one kernel.

    Cheap to make. What it knows belongs to the shell and outlives it: classes by the cell that made them and
    modules as they were loaded, from the first ``NotebookDefinitions(shell)`` on.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._seen = _Seen.of(shell)

    def belongs(self, thing: Any) -> bool:
        """Whether a function or class was defined in the notebook (or by ``exec`` in it), not in a module."""
        thing = unwrapped(thing)
        kind = type(thing)  # isinstance would ask lazy proxies who they are
        if kind is types.FunctionType:
            where = thing.__globals__
            if where is self._shell.user_ns:
                return True
            # %run gives a script globals of its own, and takes their __name__ away when it has ended.
            return bool(thing.__module__ == where.get("__name__", "__main__") == "__main__")
        return issubclass(kind, type) and bool(thing.__module__ == "__main__")

    def of(self, thing: Any) -> Definition | None:
        """The definition of a notebook function or class; None where its source cannot be found for sure."""
        thing = unwrapped(thing)
        if (made := _made_by_dataclass(thing)) is not None:
            return made
        found = self._found(thing)
        where = thing.__globals__ if type(thing) is types.FunctionType else self._shell.user_ns
        return None if found is None else self._definition(found, where)

    def stores(self, thing: Any) -> frozenset[str]:
        """Global names that a notebook function or class may bind (``global x``)."""
        found = self._found(unwrapped(thing))
        return frozenset() if found is None else found.names.stores

    def source_of(self, thing: Any) -> str:
        """The text of a notebook function or class; empty for anything else."""
        thing = unwrapped(thing)
        found = self._found(thing) if self.belongs(thing) else None
        return "" if found is None else found.source

    def module(self, name: str) -> Digested:
        """A module: installed ones by name (version is a note), local ones by the source that was *loaded*."""
        return self._seen.modules.module(name)

    def modules_at_once(self) -> Callable[[str], Digested]:
        """``module`` for many names while nobody changes anything."""
        return self._seen.modules.at_once()

    def is_local(self, module: str) -> bool:
        """Whether a module exists and counts by its source."""
        return self._seen.modules.is_local(module)

    def note_on(self, value: Any) -> str:
        """What a person should know about the code behind a module, or a function or class of one; mostly nothing."""
        module = value.__name__ if type(value) is types.ModuleType else getattr(value, "__module__", None)
        is_code = isinstance(value, types.ModuleType | types.FunctionType | type)
        return EDITED if is_code and isinstance(module, str) and self._seen.modules.is_edited(module) else ""

    def learn(self, thing: Any, definition: Definition) -> None:
        """Remember the definition of a function or class that was put back from a record and has no cell here."""
        thing = unwrapped(thing)
        if self._found(thing) is None:
            self._seen.learn(thing, _learned(definition))

    @property
    def attributes(self) -> SetAttributes:
        """Attributes of modules that the cells of the kernel set."""
        return self._seen.attributes

    @property
    def libraries(self) -> LibraryState:
        """What libraries keep behind no variable."""
        return self._seen.libraries

    def classes(self) -> list[type]:
        """The classes of the notebook, as far as anybody met them."""
        return self._seen.classes()

    def close(self) -> None:
        """Stop watching the shell."""
        self._seen.close(self._shell)

    def edited_not_reloaded(self) -> list[str]:
        """File names of loaded local modules whose file holds other code by now (traps 9)."""
        return self._seen.modules.edited_not_reloaded()

    def _found(self, thing: Any) -> _Found | None:
        if type(thing) is types.FunctionType:
            found = self._seen.function(thing) if self.belongs(thing) else None
            owner = self._owner(thing) if found is None else None
            return found if owner is None else self._seen.class_(owner)
        return self._seen.class_(thing) if issubclass(type(thing), type) else None

    def _owner(self, function: types.FunctionType) -> type | None:
        """The class for which a method was generated (dataclasses, attrs, named tuples), if it was."""
        path, _, name = function.__qualname__.rpartition(".")
        first, *others = path.split(".")
        owner = self._shell.user_ns.get(first)
        for part in others:
            owner = getattr(owner, part, None)
        if isinstance(owner, type) and unwrapped(vars(owner).get(name)) is function and self.belongs(owner):
            return owner
        return None

    def _definition(self, found: _Found, where: Mapping[str, Any]) -> Definition | None:
        names, here = found.names, self._shell.user_ns
        reads = {name for name in names.reads if name in where or not hasattr(builtins, name)}
        if where is not here and any(
            where.get(name) is not here.get(name) for name in reads - {"__name__", "__file__"}
        ):
            return None  # a script of %run keeps its own globals, and the notebook's have moved on
        reads |= names.hidden.among(kinds(here, names.hidden.every))
        if names.everything:
            reads.update(persons_names(self._shell))
        reads.update(IMPORTED + module for module in self.modules_in(names.modules, names.chains))
        reads.update(self.attributes.used_by(names.reads, names.modules))
        reads.update(self.libraries.used_by(names.reads, names.modules))
        return Definition(found.code, frozenset(reads), found.source)

    def hidden_in(self, thing: Any) -> Named:
        """What the strings of a function or class may name."""
        found = self._found(thing)
        return found.names.hidden if found is not None else NOTHING

    def modules_in(self, imported: frozenset[str], chains: frozenset[str]) -> set[str]:
        """The local modules that code imports (``a``, or ``a:b`` for ``from a import b``) or reaches by dots."""
        found = set()
        for name in imported:
            module, _, part = name.partition(":")
            found |= {each for each in (module, f"{module}.{part}" if part else "") if each and self.is_local(each)}
        for chain in chains:
            root, *parts = chain.split(".")
            value = self._shell.user_ns.get(root)
            while parts and isinstance(value, types.ModuleType):
                value = getattr(value, parts.pop(0), None)
                if isinstance(value, types.ModuleType) and self.is_local(value.__name__):
                    found.add(value.__name__)
        return found


class _Found(Struct, frozen=True):
    """A definition before anybody looks at what else exists in the notebook."""

    code: Digest
    names: DefinedNames
    source: str


def _found_at(place: Place) -> _Found:
    return _Found(place.code, place.names, place.source)


def _learned(definition: Definition) -> _Found:
    reads = frozenset(name for name in definition.reads if not name.startswith(IMPORTED))
    modules = frozenset(name.removeprefix(IMPORTED) for name in definition.reads if name.startswith(IMPORTED))
    try:
        inside = list(analyse(parse_cell(definition.source, transform=str)).defined.values())
    except (SyntaxError, ValueError, RecursionError):
        inside = []  # a lambda out of the middle of a line
    names = DefinedNames(
        reads=reads,
        stores=frozenset(name for each in inside for name in each.stores),
        modules=modules,
        hidden=functools.reduce(operator.or_, (each.hidden for each in inside), NOTHING),
        everything=next((each.everything for each in inside if each.everything), ""),
    )
    return _Found(definition.code, names, definition.source)


class _Seen:
    """What was seen of a shell's code: kept once per shell, fed after every cell."""

    def __init__(self, shell: Any) -> None:
        self.modules = LoadedModules(shell, process_started=process_started)
        self.attributes = SetAttributes(shell.user_ns)
        self.libraries = LibraryState(shell.user_ns)
        self._texts = ExecutedTexts(shell)
        self._namespace: dict[str, Any] = shell.user_ns
        self._functions: dict[int, tuple[types.CodeType, _Found | None]] = {}
        self._classes: weakref.WeakKeyDictionary[type, _Found] = weakref.WeakKeyDictionary()

    @classmethod
    def of(cls, shell: Any) -> _Seen:
        seen = _SEEN.get(shell)
        if seen is None:
            seen = _SEEN[shell] = cls(shell)
            seen._look_back()
            shell.events.register("post_run_cell", seen._after_cell)
        return seen

    def close(self, shell: Any) -> None:
        if _SEEN.pop(shell, None) is self:
            shell.events.unregister("post_run_cell", self._after_cell)

    def learn(self, thing: Any, found: _Found) -> None:
        if isinstance(thing, type):
            self._classes[thing] = found
        elif isinstance(thing, types.FunctionType):
            self._functions[id(thing.__code__)] = (thing.__code__, found)

    def _after_cell(self, result: Any) -> None:
        self.modules.look()
        source = getattr(getattr(result, "info", None), "transformed_cell", None) or ""
        if _NOTEWORTHY.search(source) and (cell := self._texts.parsed(source)) is not None:
            self._note(cell)

    def _look_back(self) -> None:
        """Cells that ran before anybody looked: a class that is bound to its own name is from the newest of them."""
        for cell in self._texts.cells():
            if _NOTEWORTHY.search(cell.source):
                self._note(cell)

    def _note(self, cell: ParsedCell) -> None:
        for text in (cell, *self._texts.inside(cell)):
            self.attributes.note(text.source, text.tree)
            if "duckdb" in sys.modules:
                self.libraries.note(analyse(text))
            self._note_classes(text)

    def classes(self) -> list[type]:
        return list(self._classes) if len(self._classes) else []  # asked four times in a step, and mostly empty

    def _note_classes(self, text: ParsedCell) -> None:
        """Remember which class object came from which text, while that is plain to see."""
        for place in places(text):
            first, *others = place.qualname.split(".")
            thing = self._namespace.get(first)
            for part in others:
                thing = vars(thing).get(part) if isinstance(thing, type) else None
            if isinstance(thing, type) and _is_class(place, thing) and thing not in self._classes:
                self._classes[thing] = _found_at(place)

    def function(self, function: types.FunctionType) -> _Found | None:
        code = function.__code__
        known = self._functions.get(id(code))
        if known is None:
            if len(self._functions) >= _MOST_FUNCTIONS:
                self._functions.clear()
            place = self._texts.place_of(code)
            # The code object is kept beside, so that its id stays its own.
            known = self._functions[id(code)] = (code, None if place is None else _found_at(place))
        return known[1]

    def class_(self, cls: type) -> _Found | None:
        found = self._classes.get(cls)
        if found is None:
            found = self._by_method(cls) or self._by_name(cls)
            if found is not None:
                self._classes[cls] = found
        return found

    def _by_method(self, cls: type) -> _Found | None:
        for value in vars(cls).values():
            method = unwrapped(value)
            if not isinstance(method, types.FunctionType) or not method.__qualname__.startswith(cls.__qualname__ + "."):
                continue
            inside = self._texts.place_of(method.__code__)
            for place in places(inside.text) if inside is not None else ():
                if _is_class(place, cls) and inside is not None and _encloses(place, inside):
                    return _found_at(place)
        return None

    def _by_name(self, cls: type) -> _Found | None:
        """A class without methods, made before anybody looked: it does not matter where, if all texts agree."""
        found = list(self._named(cls))
        return found[0] if len({each.code for each in found}) == 1 else None

    def _named(self, cls: type) -> Iterator[_Found]:
        for cell in self._texts.cells():
            if cls.__name__ in cell.source:
                for text in (cell, *self._texts.inside(cell)):
                    yield from (_found_at(place) for place in places(text) if _is_class(place, cls))


_SEEN: weakref.WeakKeyDictionary[Any, _Seen] = weakref.WeakKeyDictionary()


def _is_class(place: Place, cls: type) -> bool:
    return place.is_class and place.qualname == cls.__qualname__ and cls.__module__ == "__main__"


def _encloses(outer: Place, inner: Place) -> bool:
    return outer.first_line <= inner.first_line and (inner.node.end_lineno or 0) <= (outer.node.end_lineno or 0)


def _made_by_dataclass(thing: Any) -> Definition | None:
    """The definition of a method that ``dataclass`` compiled under a name of its own, such as the inner ``__repr__``.

    It follows from the class that carries it, whose code and fields count by themselves.
    """
    if type(thing) is not types.FunctionType or not thing.__qualname__.startswith("__create_fn__.<locals>."):
        return None
    if not thing.__code__.co_filename.startswith("<"):
        return None
    return Definition(text_digest("dataclass", thing.__name__), frozenset(), "")


def unwrapped(thing: Any) -> Any:
    """The function or class inside a method, a descriptor, or a wrapper that is no function itself."""
    for _ in range(100):  # a wrapper may wrap itself
        kind = type(thing)
        if issubclass(kind, types.FunctionType | type):
            break
        if issubclass(kind, types.MethodType | classmethod | staticmethod):
            thing = thing.__func__
        elif issubclass(kind, property):
            thing = thing.fget
        elif issubclass(kind, functools.cached_property | functools.partial):
            thing = thing.func
        elif "__wrapped__" in attributes(thing):
            thing = thing.__wrapped__
        else:
            break
    return thing
