"""What an object holds: the parts of values, opened without running any of their code.

The cycle collector can tell of every type what it refers to: slots, bound methods, iterators, partials. It does not
know arrays and weak references, and it would lead from a function into its whole module: those are opened here.
"""

from __future__ import annotations

import enum
import functools
import gc
import types
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from keel_notebook.capture.namespace import attributes, is_frame

IMMUTABLE = frozenset({int, float, complex, bool, str, bytes, type(None), range, type(...), slice})
"""Types whose values never change and hold nothing that does."""

MOST = 5000
"""How many parts of one container, and of one value, are looked at."""

CLOSED = (types.ModuleType, types.CodeType, enum.Enum, type)
"""Types whose values are never looked into."""
_ONLY_HOLDING: tuple[type, ...] = (
    *(tuple, frozenset, functools.partial, types.MethodType, types.BuiltinFunctionType, types.MappingProxyType),
    *(type({}.keys()), type({}.values()), type({}.items()), memoryview, weakref.ReferenceType),
)
"""Types that never change themselves, but hold what may."""
_EVERYBODYS = ("logging", "threading", "_thread", "asyncio", "_asyncio")
"""Modules whose objects are shared by what has nothing else in common."""
_CONTAINERS = (list, dict, tuple, set, frozenset, deque)
_MEMORY = frozenset({"ndarray", "bytearray", "array", "mmap", "Tensor"})
_HAS_PARTS = 1 << 14  # Py_TPFLAGS_HAVE_GC


Part = tuple[Any, str]
"""A part of a value, and through what its memory was reached where that is no ordinary reference: ``frame`` (pandas)
or ``buffer`` (memory of another type)."""


def parts(value: Any, without: Iterable[int] = ()) -> Iterator[Part]:
    """The value and all that it holds and that may change or hold more, nearest first, each once.

    Never by way of the ids ``without``.
    """
    seen = set(without)
    todo: deque[Part] = deque([(value, "")])
    while todo:
        part, way = todo.popleft()
        if id(part) in seen or issubclass(type(part), CLOSED):
            continue
        seen.add(id(part))
        yield part, way
        todo.extend(_opened(part, way))


def may_change(thing: Any) -> bool:
    """Whether a part may itself change, so that two values which hold it change together."""
    kind = type(thing)
    if kind in IMMUTABLE or issubclass(kind, (*CLOSED, *_ONLY_HOLDING)) or kind.__module__ in _EVERYBODYS:
        return False
    if issubclass(kind, types.FunctionType):
        return bool(thing.__closure__ or thing.__dict__ or thing.__defaults__ or thing.__kwdefaults__)
    if _is_pandas(kind):
        return is_frame(thing)  # what is inside belongs to it alone, or is copied before it is written
    return bool(kind.__flags__ & _HAS_PARTS) or is_memory(thing)


def is_memory(thing: Any) -> bool:
    """Whether a thing is memory that other types can lie on."""
    return type(thing).__name__ in _MEMORY


def inside(thing: Any) -> list[Any]:
    """What a thing holds directly."""
    return [part for part, _ in _opened(thing, "")]


def too_large(thing: Any) -> bool:
    """Whether a container holds more than is looked at. By its type: a weak proxy fails when asked for its class."""
    return issubclass(type(thing), _CONTAINERS) and len(thing) > MOST


def _opened(thing: Any, way: str) -> Iterable[Part]:
    kind = type(thing)
    if kind in IMMUTABLE:
        return ()
    if kind.__name__ == "ndarray" or hasattr(kind, "__array_interface__"):
        return _of_array(thing, way)
    if issubclass(kind, memoryview):
        return ((thing.obj, "buffer"),)
    if _is_pandas(kind):
        return _of_pandas(thing, way)
    return [(each, way) for each in _held(thing, kind) if type(each) not in IMMUTABLE]


def _of_array(array: Any, way: str) -> Iterator[Part]:
    base = getattr(array, "base", None)
    if base is not None:
        yield base, way if type(base).__name__ == "ndarray" else "buffer"
    if getattr(getattr(array, "dtype", None), "hasobject", False) and type(array).__name__ == "ndarray":
        yield from ((each, way) for each in islice(array.flat, MOST))
    yield from ((each, way) for each in attributes(array).values())


def is_pandas_array(thing: Any) -> bool:
    """Whether a thing is one of pandas' own arrays: who writes into it writes into the frames on its memory."""
    return _is_pandas(type(thing)) and hasattr(type(thing), "_from_sequence")


def _of_pandas(thing: Any, way: str) -> Iterator[Part]:
    """The arrays of a frame, series or index, and what stands in its ``attrs``: all that others may hold as well."""
    if not is_frame(thing):
        held = (each for each in gc.get_referents(thing) if is_memory(each) or _is_pandas(type(each)))
        yield from ((each, way if is_pandas_array(thing) else "frame") for each in held)
        return
    for block in getattr(thing._mgr, "blocks", ()):
        yield block.values, "frame"
    yield thing.index, "frame"
    yield from ((each, "frame") for each in thing.attrs.values() if type(each) not in IMMUTABLE)


def _is_pandas(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "pandas"


def _held(thing: Any, kind: type) -> Iterable[Any]:
    # The types' own iterators: those of a subclass may be anybody's code.
    if issubclass(kind, list | tuple | set | frozenset | deque):
        base = next(each for each in (list, tuple, set, frozenset, deque) if issubclass(kind, each))
        held: Iterable[Any] = islice(base.__iter__(thing), MOST)
        return held if kind is base else chain(list(held), attributes(thing).values(), _slots(thing, kind))
    if issubclass(kind, dict):
        held = chain(islice(dict.keys(thing), MOST), islice(dict.values(thing), MOST))
        return list(held) if kind is dict else [*held, *attributes(thing).values(), *_slots(thing, kind)]
    if issubclass(kind, types.FunctionType):
        cells = [content for cell in thing.__closure__ or () for content in gc.get_referents(cell)]
        return [*cells, thing.__defaults__, thing.__kwdefaults__, thing.__dict__]
    if issubclass(kind, weakref.ReferenceType):
        return [weakref.ReferenceType.__call__(thing)]
    return gc.get_referents(thing)


def _slots(thing: Any, kind: type) -> Iterable[Any]:
    """What an instance of a subclass of a container keeps in slots."""
    if not any("__slots__" in vars(each) and each.__module__ != "collections" for each in kind.__mro__[:-1]):
        return ()
    return islice(gc.get_referents(thing), MOST)
