"""Functions and classes in payloads: by name where the notebook has them, by value where the step makes them.

An instance must come back as an instance of *the* class of the notebook (``isinstance``, enum identity, ``==`` of
dataclasses: C43), so values refer to classes and functions by name, with a fingerprint of their code that is checked
when they come back (C46). What the step itself defines has no other home: it is stored by value, a function as its
code, which comes back in the live namespace and does not drag it along (C45, C54).
"""

from __future__ import annotations

import io
import linecache
import marshal
import sys
import types
import typing
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

from keel_notebook.core.ids import text_digest
from keel_notebook.core.ports import Definitions, Digester
from keel_notebook.payload import rebuild
from keel_notebook.payload.guilty import Refused
from keel_notebook.payload.shapes import by_name

_Definition = tuple[str, tuple[str, ...], str]
_NAMED_BY_TYPES = {
    getattr(types, name): name
    for name in types.__all__
    if isinstance(getattr(types, name), type) and by_name("builtins", getattr(types, name).__name__) is None
}
"""Classes that call themselves builtins and are not there: methods, functions, mappingproxy."""
_NO_SOURCE = "its source is not known, so nobody could tell whether it changed"


class ByCode:
    """How the definitions of one notebook are pickled while ``writing`` is written."""

    def __init__(
        self, space: Mapping[str, Any], writing: Mapping[str, Any], *, definitions: Definitions, digester: Digester
    ) -> None:
        self.dispatch_table: Mapping[type, Any] | None = None
        """What else pickle needs once a class is stored by value."""
        self._space = space
        self._writing = writing
        self._definitions = definitions
        self._digester = digester
        self._names = {
            id(thing): name
            for name, thing in space.items()
            if name not in writing and isinstance(thing, type | FunctionType)
        }
        self._codes: dict[int, tuple[CodeType, bytes]] = {}
        self._sources: dict[str, str | None] = {}
        self._cloud: Any = None

    def class_reduce(self, cls: type) -> Any:
        """A class: as pickle does it, by name, or by value."""
        if cls.__module__ == "builtins":
            name = _NAMED_BY_TYPES.get(cls)
            return NotImplemented if name is None else (getattr, (types, name))
        if not self._definitions.belongs(cls) and by_name(cls.__module__, cls.__qualname__) is cls:
            return NotImplemented
        name = self._name(cls)
        if name is not None:
            return rebuild.named, (name, self._vouched(cls))
        if type(cls).__module__ == "_ctypes":
            raise Refused(cls, "a type of ctypes: what it describes is memory of C")
        make, args, state, *_, fill = self._cloudpickle().reducer_override(cls)
        told = (fill, state, self._definition(cls), cls.__qualname__)
        return make, args, told, None, None, rebuild.fill_class

    def function_reduce(self, function: FunctionType) -> Any:
        """A function: as pickle does it, by name, or as its code."""
        home = self._home(function)
        if home is None:
            return self._cloudpickle().reducer_override(function)
        # A wrapper may call itself one of the notebook's (the repr of a dataclass): then its name is no home.
        named = home and function.__module__ != "__main__"
        if named and by_name(function.__module__, function.__qualname__) is function:
            return NotImplemented
        name = self._name(function)
        if home == "" and name is not None:
            return rebuild.named, (name, self._vouched(function))
        version = rebuild.version_of(home) if home else ""
        arguments = (self._code(function.__code__), function.__closure__, home, version)
        return rebuild.function, arguments, self._carried(function, home), None, None, rebuild.fill_function

    def extra_reduce(self, cls: type) -> Callable[[Any], Any] | None:
        """Type variables and the like, which are known by the name that the notebook gave them (C47)."""
        if issubclass(cls, typing.TypeVar | typing.ParamSpec | typing.TypeVarTuple | typing.NewType):
            return self._variable
        return None

    def importable(self, module: ModuleType) -> bool:
        """Whether a module comes back by importing its name (C53)."""
        return sys.modules.get(module.__name__) is module

    def _variable(self, variable: Any) -> Any:
        if variable.__module__ != "__main__":
            return NotImplemented
        name = variable.__name__
        if name not in self._writing and self._space.get(name) is variable:
            return rebuild.named, (name, "")
        reduce = self._cloudpickle().dispatch_table.get(type(variable))
        return NotImplemented if reduce is None else reduce(variable)

    def _name(self, thing: type | FunctionType) -> str | None:
        """Under which name the notebook has a thing when the step is replayed: not one that the step itself binds."""
        name = self._names.get(id(thing))
        if name is not None or "<" in thing.__qualname__ or "." not in thing.__qualname__:
            return name
        head, *rest = thing.__qualname__.split(".")
        found = self._space.get(head) if head not in self._writing else None
        for part in rest:
            found = getattr(found, part, None)
        return thing.__qualname__ if found is thing else None

    def _vouched(self, thing: Any) -> str:
        code = fingerprint(thing, definitions=self._definitions, digester=self._digester)
        if not code:
            raise Refused(thing, _NO_SOURCE)
        return code

    def _home(self, function: FunctionType) -> str | None:
        """The module in whose namespace a function runs; "" for the notebook, None for generated code."""
        space = function.__globals__
        name = str(space.get("__name__"))
        if space is self._space or name == "__main__":
            return ""
        if vars(sys.modules.get(name, object)) is not space:
            if function.__code__.co_filename.startswith("<"):
                return None  # namedtuple, attrs: text compiled in a namespace with just what it needs
            raise Refused(function, "a function with a namespace of its own")
        return name

    def _code(self, code: CodeType) -> bytes:
        known = self._codes.get(id(code))
        if known is None:
            known = self._codes[id(code)] = (code, marshal.dumps(code))
        return known[1]

    def _carried(self, function: FunctionType, home: str) -> dict[str, Any]:
        return {
            "__name__": function.__name__,
            "__qualname__": function.__qualname__,
            "__module__": function.__module__,
            "__defaults__": function.__defaults__,
            "__kwdefaults__": function.__kwdefaults__,
            "__annotations__": _annotations(function),
            "__doc__": function.__doc__,
            "__dict__": function.__dict__,
            "definition": None if home else self._definition(function),
            "source": None if home else self._source(function.__code__.co_filename),
        }

    def _definition(self, thing: Any) -> _Definition | None:
        found = self._definitions.of(thing) if self._definitions.belongs(thing) else None
        return None if found is None else (found.code, tuple(sorted(found.reads)), found.source)

    def _source(self, file: str) -> str | None:
        if file not in self._sources:
            self._sources[file] = "".join(linecache.getlines(file)) or None
        return self._sources[file]

    def _cloudpickle(self) -> Any:
        if self._cloud is None:
            import cloudpickle  # noqa: PLC0415 - only for classes that a step defines

            self._cloud = cloudpickle.Pickler(io.BytesIO())
            self.dispatch_table = self._cloud.dispatch_table
        return self._cloud


def fingerprint(thing: Any, *, definitions: Definitions, digester: Digester) -> str:
    """The code of a function, or of a class and all its bases that the notebook defined; "" where it is not known.

    A class without a source (made by ``namedtuple``, ``make_dataclass``) counts by what is in it.
    """
    codes = []
    for part in thing.__mro__ if isinstance(thing, type) else (thing,):
        belongs = definitions.belongs(part)
        if not belongs and part is not thing:
            continue
        found = definitions.of(part) if belongs else None
        code = found.code if found is not None else digester.digest(part).digest
        if code is None:
            return ""
        codes.append(code)
    return text_digest(*codes)


def _annotations(function: FunctionType) -> dict[str, Any]:
    try:
        return function.__annotations__
    except NameError:  # Python 3.14 evaluates them only now
        return {}
