"""The shapes of functions, classes and modules, and of what wraps them (DESIGN 5; C25, C46, C61).

Things of the notebook count by their code and by the values that live in them (defaults, closures, attributes);
things of a module by their name and by the digest of the module. The global names that notebook code reads are
inputs too: ``Shapes.reaches`` collects them wherever in a value the code is met.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
import weakref
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from keel_notebook.core.dotted import REGISTERED, registered
from keel_notebook.payload.shapes import Shape, Shapes, Unknown, by_name, cells, label

_LOOKED_UP = ("dispatch_cache", "cache_token", "_clear_cache")
"""Where ``singledispatch`` remembers what it looked up: being called is no change."""
_SKIPPED_TYPES = (types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType)


def shape(shapes: Shapes, thing: Any) -> Shape:
    """The shape of a function, class, module or enum member. Raises Unknown where nobody knows its code."""
    if isinstance(thing, FunctionType):
        return _function(shapes, thing)
    if isinstance(thing, type):
        return _class(shapes, thing)
    if isinstance(thing, enum.Enum):
        return Shape(label("enum", getattr(thing, "_name_", None) or ""), (type(thing), thing.value))
    return Shape(label("module", thing.__name__, shapes.module(thing.__name__, thing)))


def named(shapes: Shapes, value: Any) -> Shape | None:
    """The shape of bound methods, wrappers and the like; None for any other value."""
    take = _WRAPPERS.get(type(value))
    if take is not None:
        return take(shapes, value)
    if isinstance(value, typing.TypeVar):
        return Shape(label("TypeVar", value.__name__), (value.__bound__, value.__constraints__))
    if isinstance(value, typing.NewType):
        return Shape(label("NewType", value.__name__), (value.__supertype__,))
    return None


def _function(shapes: Shapes, function: FunctionType) -> Shape:
    if shapes.definitions.belongs(function):
        found = shapes.definitions.of(function)
        if found is None:
            raise Unknown(function, f"function {function.__qualname__}: its source is not known")
        shapes.reaches |= found.reads
        return Shape(label("function", found.code), _held(function))
    # ``functools.wraps`` lends names to wrappers; code and globals tell where a function really comes from.
    home, qualname = str(function.__globals__.get("__name__")), function.__code__.co_qualname
    vouched = shapes.module(home, function)
    if by_name(home, qualname) is function:
        return Shape(label("function of a module", home, qualname, vouched))
    line = function.__code__.co_firstlineno  # two lambdas of one place have one name
    return Shape(label("inner function", home, qualname, line, vouched), _held(function))


def _held(function: FunctionType) -> tuple[Any, ...]:
    """The values that live in a function."""
    kept = {name: content for name, content in cells(function) if name != "__class__"}
    attributes = dict(function.__dict__)
    if function.__globals__.get("__name__") == "functools":
        for name in _LOOKED_UP:
            kept.pop(name, None)
            attributes.pop(name, None)
    return function.__defaults__, function.__kwdefaults__, tuple(kept.values()), attributes or None


def _class(shapes: Shapes, cls: type) -> Shape:
    if cls.__module__ == "builtins":
        return Shape(label("class", "builtins", cls.__qualname__))
    if shapes.definitions.belongs(cls):
        found = shapes.definitions.of(cls)
        if found is not None:
            shapes.reaches |= found.reads
        code = label("class of the notebook", cls.__qualname__, found.code if found else "")
        return Shape(code, (*_ancestry(cls), *_attributes(cls, sourced=found is not None)))
    vouched = shapes.module(cls.__module__, cls)
    if by_name(cls.__module__, cls.__qualname__) is cls:
        return Shape(label("class", cls.__module__, cls.__qualname__, vouched))
    inner = label("inner class", cls.__module__, cls.__qualname__, vouched)
    return Shape(inner, (*_ancestry(cls), *_attributes(cls, sourced=True)))


def _ancestry(cls: type) -> tuple[type, ...]:
    return (type(cls), *cls.__bases__)


def _attributes(cls: type, *, sourced: bool) -> Iterator[Any]:
    """Name and value of what lives in a class beside the code of its own methods, in order of names.

    ``sourced``: the methods' code is vouched for already; else each method has to speak for itself.
    """
    if issubclass(cls, enum.Enum):
        for name, member in cls.__members__.items():
            yield name
            yield member.value
        return
    if issubclass(cls, tuple) and not sourced and hasattr(cls, "_fields"):
        yield cls._fields  # a class made by namedtuple(): all else follows from these two
        yield getattr(cls, "_field_defaults", None)
        return
    for name, value in sorted(vars(cls).items()):
        yield from _attribute(cls, name, value, sourced=sourced)
    if others := registered(cls):
        yield REGISTERED
        yield tuple(others)


def _attribute(cls: type, name: str, value: Any, *, sourced: bool) -> Iterator[Any]:
    if isinstance(value, _SKIPPED_TYPES) or type(value).__name__ == "_abc_data":
        return
    functions = [function for function in _functions(value) if isinstance(function, FunctionType)]
    if functions and all(_own(cls, name, function) for function in functions):
        generated = all(function.__code__.co_filename == "<string>" for function in functions)
        if sourced or generated:  # dataclasses and enum write methods from the fields, which count by themselves
            held = [_held(function) for function in functions]
            if any(any(values) for values in held):
                yield name
                yield held
            return
    elif name.startswith("__") and name.endswith("__") and name != "__dataclass_fields__" and not functions:
        return  # what Python itself keeps there: line numbers, annotations, parameters of generics
    yield name
    yield value


def _own(cls: type, name: str, function: FunctionType) -> bool:
    return function.__qualname__ == f"{cls.__qualname__}.{name}"


def _functions(value: Any) -> tuple[Any, ...]:
    match value:
        case FunctionType():
            return (value,)
        case classmethod() | staticmethod():
            return (value.__func__,)
        case property():
            return tuple(part for part in (value.fget, value.fset, value.fdel) if part is not None)
        case functools.cached_property():
            return (value.func,)
        case _:
            return ()


def _bound(_: Shapes, value: Any) -> Shape:
    return Shape(b"method", (value.__func__, value.__self__))


def _builtin(shapes: Shapes, value: Any) -> Shape:
    owner = value.__self__
    if owner is None or isinstance(owner, ModuleType):
        home = str(value.__module__ or getattr(owner, "__name__", "builtins"))
        return Shape(label("builtin", home, value.__qualname__, shapes.module(home, value)))
    return Shape(label("builtin method", value.__name__), (owner,))


def _descriptor(_: Shapes, value: Any) -> Shape:
    return Shape(label("descriptor", type(value).__name__, value.__name__), (value.__objclass__,))


def _remembering(_: Shapes, value: Any) -> Shape:
    return Shape(b"lru_cache", (value.__wrapped__, value.cache_parameters()))


def _parts(*names: str) -> Callable[[Shapes, Any], Shape]:
    def take(_: Shapes, value: Any) -> Shape:
        return Shape(label("parts", type(value).__qualname__), [getattr(value, name, None) for name in names])

    return take


def _listed(_: Shapes, value: Any) -> Shape:
    return Shape(label("view", type(value).__name__), list(value))


def _set_like(_: Shapes, value: Any) -> Shape:
    return Shape(label("view", type(value).__name__), list(value), unordered=True)


_WRAPPERS: dict[type, Callable[[Shapes, Any], Shape]] = {
    types.MethodType: _bound,
    types.BuiltinFunctionType: _builtin,
    types.MethodDescriptorType: _descriptor,
    types.ClassMethodDescriptorType: _descriptor,
    types.WrapperDescriptorType: _descriptor,
    types.GetSetDescriptorType: _descriptor,
    types.MemberDescriptorType: _descriptor,
    types.MethodWrapperType: lambda _, value: Shape(label("method wrapper", value.__name__), (value.__self__,)),
    type(functools.lru_cache(_own)): _remembering,
    property: _parts("fget", "fset", "fdel"),
    classmethod: _parts("__func__"),
    staticmethod: _parts("__func__"),
    functools.cached_property: _parts("func"),
    dataclasses.Field: _parts("name", "default", "default_factory", "init", "compare", "hash", "kw_only", "metadata"),
    types.MappingProxyType: lambda _, value: Shape(b"mappingproxy", (dict(value),)),
    type({}.keys()): _listed,
    type({}.values()): _listed,
    type({}.items()): _listed,
    # What a weak reference points to is part of the value as long as it lives.
    weakref.ReferenceType: lambda _, value: Shape(b"weakref", (value(),)),
    weakref.WeakSet: _set_like,
    weakref.WeakKeyDictionary: lambda _, value: Shape(b"WeakKeyDictionary", list(value.items()), unordered=True),
    weakref.WeakValueDictionary: lambda _, value: Shape(b"WeakValueDictionary", (dict(value),)),
}
