"""Fingerprints of functions: their code and every value that they reach (DESIGN 5, Durable calls).

A fingerprint is asked for before every call, so it is remembered, and the memory must be sound. What is remembered is
a list of the parts that were met, each with its value. A part whose value can never change (a number, a text, the
code of a function) is compared by identity; any other part is digested again before *every* call. So a rebound
MODEL and a changed entry of a dict are both seen, and a function that reaches only constants costs a few
comparisons. Unknown is never equal: one part without a digest leaves the fingerprint empty, and the call runs.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterable, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from keel_notebook.core.fileholds import ABSENT
from keel_notebook.core.ids import text_digest
from keel_notebook.core.model import Digest
from keel_notebook.core.ports import Definition, Definitions
from keel_notebook.core.provenance import written_into
from keel_notebook.engine.counting import Counting, by_origin

_CONSTANT: Final = frozenset(
    {type(None), bool, int, float, complex, str, bytes, range, type(...), ModuleType, BuiltinFunctionType, CodeType}
)
_MISSING: Final = object()
_MOST: Final = 256
IMPORTED: Final = "import "
"""Stands before a module among the names that a definition reads."""


class Part(Struct, eq=False):
    """One value that a function reaches: where it is read from, what was found there, and its digest."""

    name: str
    read: Callable[[], Any]
    value: Any
    digest: Digest | None
    constant: bool
    shown: bool = True
    """Whether a person can name it: a notebook name or a closure variable, not the function's own innards."""
    bind: Callable[[Any], None] | None = None
    """Binds the name again, where that can be done."""
    names: Sequence[str] = ()
    """The name of the notebook that it is read by."""
    owner: Sequence[str] = ()
    """The names of the function inside which it lies."""

    def equal(self, now: Any, counting: Counting) -> bool:
        """Whether the very same object still counts as the same."""
        return self.digest is not None and counting.of(now, self.names, self.owner).digest == self.digest


class Print(Struct):
    """The fingerprint of one function, with the parts that it is made of."""

    digest: Digest | None
    parts: list[Part] = field(default_factory=list)
    unknown: str = ""
    """The first part without a digest, with the reason, for people."""

    changing: tuple[Part, ...] = ()
    """Parts that a call could change in place, or bind again."""


class Prints:
    """Fingerprints for the functions of one kernel."""

    def __init__(self, *, counting: Counting, definitions: Definitions, namespace: dict[str, Any]) -> None:
        self.counting = counting
        self._definitions = definitions
        self._namespace = namespace
        self._known: dict[int, tuple[Any, Print]] = {}
        self._code: dict[int, tuple[CodeType, Definition | None, frozenset[str], frozenset[str]]] = {}

    def forget(self) -> None:
        """Let go of every function: a new step has begun."""
        self._known.clear()
        if len(self._code) > _MOST:
            self._code.clear()

    def of(self, function: Callable[..., Any]) -> Print:
        """The fingerprint of a function as it stands now. Main thread, before the call."""
        found = self._known.get(id(function))
        if found is not None and found[0] is function:
            for part in found[1].parts:
                now = part.read()
                if now is not part.value or not (part.constant or part.equal(now, self.counting)):
                    break
            else:
                return found[1]
        made = self._make(function)
        if len(self._known) >= _MOST:  # lambdas of a loop: each one is a new object
            self._known.clear()
        self._known[id(function)] = (function, made)
        return made

    def moved(self, before: Print) -> bool:
        """Whether what a function reads is different from then; clients that were only used are not."""
        for part in before.parts:
            now = part.read()
            if now is not part.value:
                return True
            if part.constant or by_origin(part.digest) or self.counting.raw(now).outline:
                continue
            if not part.equal(now, self.counting):
                return True
        return False

    def _make(self, function: Any) -> Print:
        walk = _Walk(self, self._namespace, self._names_of(function))
        walk.take("", lambda: function, shown=False)
        pieces: list[str] = []
        unknown = ""
        for part in walk.parts:
            if part.digest is None:
                unknown = unknown or part.name or getattr(function, "__qualname__", type(function).__qualname__)
                continue
            pieces += (part.name, part.digest)
        digest = None if unknown else text_digest("function/v1", *pieces)
        changing = tuple(part for part in walk.parts if part.shown and (not part.constant or part.name in walk.stored))
        return Print(digest, walk.parts, unknown, changing)

    def definition(self, function: FunctionType) -> tuple[Definition | None, frozenset[str]]:
        """The definition of a notebook function and the global names that it binds, remembered by its code object.

        The definition is None for any other function: of a module, or one whose source nobody knows.
        """
        code = function.__code__
        found = self._code.get(id(code))
        if found is None or found[0] is not code:
            made = self._definitions.of(function) if self._definitions.belongs(function) else None
            stored = frozenset(stored_globals(code)) if made else frozenset()
            found = self._code[id(code)] = (code, made, stored, written_into(made.source) if made else frozenset())
        return found[1], found[2]

    def written(self, function: FunctionType) -> frozenset[str]:
        """Names into whose value a notebook function writes for all to see; its parameters as well."""
        self.definition(function)
        return self._code[id(function.__code__)][3]

    def module(self, name: str) -> Digest | None:
        """The digest of a module that code imports by itself: its loaded source, the same object while it is equal."""
        found = self._definitions.module(name.removeprefix(IMPORTED)).digest
        if found is None:
            return None
        return Digest(sys.intern(found))

    def _names_of(self, function: Any) -> list[str]:
        """The names of the notebook under which a function was made, also where it is wrapped (``@keel.durable``)."""
        name = getattr(function, "__name__", "")
        wraps = getattr(self._namespace.get(name), "__wrapped__", None) is function
        return [name] if wraps else self.counting.names_of(function)


class _Walk:
    """Collects the parts of one function: itself, what lives in it, and the notebook names that its code reads."""

    def __init__(self, prints: Prints, namespace: dict[str, Any], owner: Sequence[str]) -> None:
        self.parts: list[Part] = []
        self.stored: set[str] = set()
        self._prints = prints
        self._namespace = namespace
        self._names: set[str] = set()
        self._functions: set[int] = set()
        self._owner = owner
        self._written: frozenset[str] = frozenset()

    def take(
        self,
        name: str,
        read: Callable[[], Any],
        *,
        shown: bool = True,
        bind: Callable[[Any], None] | None = None,
        names: Sequence[str] = (),
    ) -> None:
        """Add the value behind ``read``, and all that it reaches. ``bind`` binds its name again; ``names``: the name
        of the notebook that it is."""
        value = read()
        kind = type(value)
        if kind is FunctionType and self._function(name, read, value):
            return
        if kind is MethodType:
            self._add(name, read, text_digest("method"), constant=False, shown=False, by_identity=False)
            self.take(name + ".__func__", lambda: read().__func__, shown=False)
            self.take(name + ".self" if name else "self", lambda: read().__self__)
            return
        if value is _MISSING:
            self._add(name, read, ABSENT, constant=True, shown=shown)
            self.parts[-1].bind = bind
            return
        found = self._prints.counting.of(value, names, self._owner)
        if by_origin(found.digest) and not self._written.isdisjoint((name.rpartition(".")[2], *names)):
            self._prints.counting.written(value)
            found = replace(found, digest=None)  # what it writes into a client no record can put back
        self._add(name, read, found.digest, constant=kind in _CONSTANT or still(value), shown=shown)
        part = self.parts[-1]
        part.bind, part.names, part.owner = bind, names, self._owner
        self._reach(found.reaches)

    def _add(  # noqa: PLR0913 - the fields of a part
        self,
        name: str,
        read: Callable[[], Any],
        digest: Digest | None,
        *,
        constant: bool,
        shown: bool,
        by_identity: bool = True,
    ) -> None:
        if by_identity:
            self.parts.append(Part(name, read, read(), digest, constant, shown))
        else:  # a bound method is a new object at every look; what counts are its two halves
            self.parts.append(Part(name, lambda: None, None, digest, constant=True, shown=False))

    def _function(self, name: str, read: Callable[[], Any], function: FunctionType) -> bool:
        if id(function) in self._functions:
            self._add(name, read, text_digest("again"), constant=True, shown=False)
            return True
        definition, stored = self._prints.definition(function)
        if definition is None:
            return False  # of a module: the digester vouches for it by its name and the module's source
        self._functions.add(id(function))
        self._add(name, read, text_digest("function", definition.code), constant=True, shown=False)
        below = name + "." if name else ""
        # Each look is a part of its own: the very same function object may get other code, defaults or contents.
        self._inner(below + "__code__", lambda: function.__code__, text_digest("code"))
        for at in range(len(function.__defaults__ or ())):
            self.take(f"{below}default {at}", lambda at=at: _default(function, at))  # type: ignore[misc]
        self._inner(below + "__defaults__", lambda: function.__defaults__, text_digest("defaults"))
        if function.__kwdefaults__:
            self.take(below + "__kwdefaults__", lambda: function.__kwdefaults__)
        if function.__dict__:
            self.take(below + "__dict__", lambda: function.__dict__, shown=False)
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._variable(below + variable, cell)
        self.stored |= stored
        self._written |= self._prints.written(function)
        self._reach(definition.reads | stored)
        return True

    def _variable(self, name: str, cell: Any) -> None:
        self.take(name, lambda: _content(cell), bind=lambda value: setattr(cell, "cell_contents", value))

    def _module(self, name: str) -> None:
        # Code that imports inside of itself: its source as it was loaded, asked for anew before every call.
        def read() -> Any:
            return self._prints.module(name)

        self.parts.append(Part(name, read, read(), read(), constant=True, shown=False))

    def _global(self, name: str) -> None:
        namespace, above = self._namespace, self._owner

        def bind(value: Any) -> None:
            namespace[name] = value

        self._owner = (name,)
        self.take(name, lambda: namespace.get(name, _MISSING), bind=bind, names=(name,))
        self._owner = above

    def _inner(self, name: str, read: Callable[[], Any], digest: Digest) -> None:
        self.parts.append(Part(name, read, read(), digest, constant=True, shown=False))

    def _reach(self, names: Iterable[str]) -> None:
        for name in sorted(set(names) - self._names):
            self._names.add(name)
            if name.startswith(IMPORTED):
                self._module(name)
            elif name in self._namespace or not hasattr(builtins, name):
                self._global(name)


def still(value: Any) -> bool:
    """Whether a function of a module holds nothing that could change: then being the same object is enough."""
    if type(value) is BuiltinFunctionType:
        return True
    if type(value) is not FunctionType or value.__closure__ or value.__kwdefaults__:
        return False
    # IPython's own `open` is one of these: whoever opens a file in a call asked for it.
    if value.__dict__ and (value.__dict__.keys() != {"__wrapped__"} or not still(value.__wrapped__)):  # type: ignore[attr-defined]
        return False
    return all(type(default) in _CONSTANT for default in value.__defaults__ or ())


def _default(function: FunctionType, at: int) -> Any:
    defaults = function.__defaults__ or ()
    return defaults[at] if at < len(defaults) else _MISSING


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def stored_globals(code: CodeType) -> set[str]:
    """Global names that a piece of code binds, nested code included: ``global count; count += 1``."""
    import dis  # noqa: PLC0415 - once for each function, not on the way of %load_ext

    found = {i.argval for i in dis.get_instructions(code) if i.opname in {"STORE_GLOBAL", "DELETE_GLOBAL"}}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= stored_globals(inner)
    return found
