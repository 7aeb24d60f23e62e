"""What a value is made of: a label and children (DESIGN 5, "Digests are structural and type-tagged").

``Shapes.of`` is the one definition of a value's structure. Two walks use it: ``trees`` (fast, for values that unfold
to a tree) and ``graphs`` (for cycles and heavy sharing). A label holds everything that is not a value of its own:
the kind, the type, lengths. Nothing here looks at identity, ``repr`` or byte code.
"""

from __future__ import annotations

import copyreg
import enum
import io
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, Protocol

from keel_notebook.core.ports import Definitions, Digested
from keel_notebook.payload import drawing, kinds, ownattributes, registry, widgets
from keel_notebook.payload.memory import Contents, Memory, text_memory
from keel_notebook.payload.typename import type_name

_INLINE = 256


_NEW_OBJECT = getattr(copyreg, "__newobj__")  # noqa: B009 - typeshed does not know it
"""What pickle calls to make an object that has nothing but state."""
_OBJECT_STATE = getattr(object, "__getstate__")  # noqa: B009 - nor this
_slot_names = getattr(copyreg, "_slotnames")  # noqa: B009 - nor this


class Shape(NamedTuple):
    """A value taken apart."""

    label: bytes
    children: Sequence[Any] = ()
    unordered: bool = False


class Unknown(Exception):
    """A value without a digest: the part that is guilty, and why."""

    def __init__(self, guilty: Any, why: str) -> None:
        super().__init__(why)
        self.guilty = guilty
        self.why = why


def label(tag: str, *parts: str | bytes | int) -> bytes:
    """A label whose parts cannot run into each other."""
    out = [tag.encode()]
    for part in parts:
        raw = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        out.append(b"%d:" % len(raw))
        out.append(raw)
    return b" ".join(out)


class Shapes:
    """Takes values apart, for one digest. Collects what the parts reach and whether all of them were vouched for."""

    def __init__(self, definitions: Definitions, contents: Contents) -> None:
        self.definitions = definitions
        self.contents = contents
        self.reaches: set[str] = set()
        self.weak = False
        self._modules: dict[str, str] = {}
        self._ask: Callable[[str], Digested] | None = None
        self._layouts: dict[type, tuple[str, ...] | None] = {}
        self._entities = _entities()

    def of(self, value: Any) -> Shape:
        """The shape of any value. Raises Unknown for what has none."""
        cls = type(value)
        known = _BUILTIN.get(cls)
        if known is not None:
            return known(value)
        if cls is Memory:
            return Shape(self._content(value))
        if is_entity(cls):
            return self._entities.shape(self, value)
        if (place := drawing.place_of(value)) is not None:
            return Shape(label("generator of a module", *place))
        codec = registry.find(cls)
        if codec is not None:
            return Shape(label("registered", codec.name), (self._dumped(codec, value),))
        kind = kinds.find(cls)
        if kind is not None and (parts := (kind.compare or kind.take)(value)) is not None:
            return Shape(label("kind", kind.tag), parts)
        named = self._entities.named(self, value)
        return named if named is not None else self._reduced(value)

    def module(self, name: str, user: Any) -> str:
        """The digest of a module that ``user`` is part of. Raises Unknown where nobody vouches for it."""
        known = self._modules.get(name)
        if known is None:
            self._ask = self._ask or self.definitions.modules_at_once()
            found = self._ask(name)
            if found.digest is None:
                raise Unknown(user, f"module {name}{found.reason and ': ' + found.reason}")
            self.weak |= found.weak
            self.reaches |= found.reaches
            known = self._modules[name] = found.digest
        return known

    def layout(self, cls: type, sample: Any) -> tuple[str, ...] | None:
        """Where all there is to instances of ``cls`` lies: its slots, or ``()`` for ``__dict__`` alone.

        None for types that have to be asked for their parts one by one.
        """
        if cls not in self._layouts:
            self._layouts[cls] = _layout(cls, sample)
        return self._layouts[cls]

    def _content(self, memory: Memory) -> bytes:
        if memory.size <= _INLINE:
            return label("bytes", bytes(memory))
        return label("content", memory.size, self.contents.digest(memory))

    def _dumped(self, codec: registry.Registered, value: Any) -> Any:
        try:
            return codec.dump(value)
        except Exception as error:
            raise Unknown(value, codec.name) from error

    def _looked(self, widget: Any) -> tuple[Any, ...]:
        try:
            return widgets.compared(widget)
        except Exception as error:
            raise Unknown(widget, type_name(type(widget))) from error

    def _reduced(self, value: Any) -> Shape:
        cls = type(value)
        if issubclass(cls, set | frozenset):
            return _subclassed_set(value)
        if one_way(cls) or keeps_cookies(cls):
            raise Unknown(value, type_name(cls))
        if widgets.is_widget(cls):
            return Shape(b"widget", self._looked(value))
        match reduced(value):
            case str() as name:
                home = str(getattr(value, "__module__", None) or cls.__module__)
                return Shape(label("named", home, name, self.module(home, value)), (cls,))
            case (func, args, *more):
                state, items, pairs, setter = [*more, None, None, None, None][:4]
                if ownattributes.forgets(cls) and (own := ownattributes.forgotten(value, (func, args, *more))):
                    state = (state, own)
                if func is _NEW_OBJECT and len(args) == 1 and not items and not pairs and not setter:
                    return Shape(b"object", (cls, state))
                listed = None if items is None else list(items)
                paired = None if pairs is None else list(pairs)
                return Shape(b"reduced", (cls, func, args, state, listed, paired, setter))
            case _:
                raise Unknown(value, type_name(cls))


def reduced(value: Any) -> Any:
    """What pickle would make of a value. Raises Unknown where it would refuse."""
    cls = type(value)
    try:
        reduce = copyreg.dispatch_table.get(cls)
        return value.__reduce_ex__(5) if reduce is None else reduce(value)
    except Exception as error:
        raise Unknown(value, type_name(cls)) from error


def is_builtin(cls: type) -> bool:
    """Whether values of exactly this type are taken apart without asking anybody."""
    return cls in _BUILTIN or cls is Memory


def is_entity(cls: type) -> bool:
    """Functions, classes, modules and enum members: there is one of each, met many times in one value."""
    return cls is FunctionType or issubclass(cls, type | ModuleType | enum.Enum)


def is_namedtuple(cls: type) -> bool:
    """Whether values of this type are their fields and nothing else."""
    return (
        cls.__bases__ == (tuple,)
        and hasattr(cls, "_fields")
        and "__reduce__" not in vars(cls)
        and "__reduce_ex__" not in vars(cls)
        and "__getstate__" not in vars(cls)
    )


class _Entities(Protocol):
    """The module ``entities``, which needs this one."""

    def shape(self, shapes: Shapes, thing: Any) -> Shape: ...

    def named(self, shapes: Shapes, value: Any) -> Shape | None: ...


def _entities() -> _Entities:
    from keel_notebook.payload import entities  # noqa: PLC0415 - the two need each other

    return entities


_HEAP_TYPE = 1 << 9


def one_way(cls: type) -> bool:
    """Generators, iterators and open files: looking changes them, so they stay unknown (DESIGN 5).

    Temporary files and folders as well, which go with the process. An iterator that is an ordinary class counts by its
    attributes like any other object.
    """
    if cls.__module__ == "tempfile":
        return True
    if issubclass(cls, itertools.count | itertools.repeat | io.BytesIO | io.StringIO):
        return False
    return hasattr(cls, "__next__") and (not cls.__flags__ & _HEAP_TYPE or cls.__module__ in ("itertools", "_io"))


def keeps_cookies(cls: type) -> bool:
    """Whether a type is a jar of cookies: it changes with every request, if only by the time. Who holds one, like a
    session of requests, is a client and counts by how it was made. Never imported for the question."""
    return any(base.__name__ == "CookieJar" and base.__module__ == "http.cookiejar" for base in cls.__mro__)


def _layout(cls: type, sample: Any) -> tuple[str, ...] | None:
    if is_builtin(cls) or kinds.find(cls) or registry.find(cls) or is_entity(cls) or one_way(cls):
        return None
    if cls in copyreg.dispatch_table or cls.__module__.partition(".")[0] in ("typing", "weakref", "functools"):
        return None
    if any(getattr(cls, name) is not getattr(object, name) for name in ("__reduce_ex__", "__reduce__")):
        return None
    own_state = getattr(cls, "__getstate__", None)
    if own_state is not _OBJECT_STATE and getattr(own_state, "__qualname__", "") != "_dataclass_getstate":
        return None
    slots: tuple[str, ...] = tuple(_slot_names(cls))
    if hasattr(cls, "__getnewargs_ex__") or hasattr(cls, "__getnewargs__") or (slots and hasattr(sample, "__dict__")):
        return None
    # One trial finds C state that only __reduce_ex__ knows of, and subclasses of list and dict.
    try:
        func, args, *more = sample.__reduce_ex__(5)
        if not slots:
            sample.__dict__  # noqa: B018 - an object without attributes
    except Exception:  # noqa: BLE001 - the generic way reports it, with the path
        return None
    return slots if func is _NEW_OBJECT and args == (cls,) and not any(more[1:]) else None


def _subclassed_set(value: Any) -> Shape:
    state = getattr(value, "__dict__", None) or None
    return Shape(b"set subclass", (type(value), frozenset(value), state))


def _float(value: float) -> Shape:
    return Shape(b"float " + (value if value == value else float("nan")).hex().encode())  # noqa: PLR0124 - NaN


def _str(value: str) -> Shape:
    if len(value) >= _LONG:
        return Shape(b"long str", (text_memory(value),))
    return Shape(label("str", value))


def _bytes(value: bytes) -> Shape:
    if len(value) >= _LONG:
        return Shape(b"long bytes", (Memory(len(value), lambda: (value,)),))
    return Shape(label("bytes", value))


def _dict(value: dict[Any, Any]) -> Shape:
    return Shape(b"dict", [*value.keys(), *value.values()])


_LONG = 1 << 16


def _context_variable(value: ContextVar[Any]) -> Shape:
    return Shape(label("context variable", value.name), (value.get(_UNSET),))


_UNSET = None
"""What a context variable holds that was never set: setting it to None is as good."""


_BUILTIN: dict[type, Callable[[Any], Shape]] = {
    type(None): lambda _: Shape(b"None"),
    type(...): lambda _: Shape(b"..."),
    type(NotImplemented): lambda _: Shape(b"NotImplemented"),
    bool: lambda value: Shape(b"True" if value else b"False"),
    int: lambda value: Shape(b"int %x" % value),
    float: _float,
    str: _str,
    bytes: _bytes,
    list: lambda value: Shape(b"list", list(value)),
    tuple: lambda value: Shape(b"tuple", value),
    dict: _dict,
    set: lambda value: Shape(b"set", list(value), unordered=True),
    frozenset: lambda value: Shape(b"frozenset", list(value), unordered=True),
    ContextVar: _context_variable,
}


def by_name(home: str, qualname: str) -> Any:
    """The object that a module holds under a dotted name, or None."""
    found: Any = sys.modules.get(home)
    for part in qualname.split("."):
        if found is None or part == "<locals>":
            return None
        found = getattr(found, part, None)
    return found


def cells(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The variables that a closure holds: name and content, or an empty tuple of nothing for an unset one."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, (cell.cell_contents,)
        except ValueError:
            yield name, ()
