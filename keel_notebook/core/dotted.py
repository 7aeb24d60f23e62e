"""Dotted names: attributes of classes and modules under the name that the notebook has for them (``Cfg.lr``)."""

from __future__ import annotations

import abc
from collections.abc import Mapping, MutableMapping
from typing import Any

PATCHED = "patched"
"""In ``Entry.ambient``: classes among the names written whose payload is that of their attributes."""


REGISTERED = "<registered>"
"""Stands for an attribute of abstract classes that Python keeps to itself: the classes registered with one."""


class Registered(tuple[type, ...]):
    """The classes that were registered with an abstract class, in an order of their own."""

    __slots__ = ()


def registered(cls: type) -> Registered:
    """The classes that ``cls.register(…)`` was called with."""
    told = getattr(abc, "_get_dump", None)
    if told is None or not isinstance(cls, abc.ABCMeta):
        return Registered()
    found = {ref() for ref in told(cls)[0]} - {None}
    return Registered(sorted(found, key=lambda each: (each.__module__, each.__qualname__)))


def is_module(name: str) -> bool:
    """Whether the name of an input is that of a local module, which goes under its file's name."""
    return name.endswith(".py")


def value_at(namespace: Mapping[str, Any], name: str) -> Any:
    """The value of a variable or, for a dotted name, of an attribute. Raises KeyError or AttributeError.

    An attribute of a class is what stands in the class itself: a method is no bound method.
    """
    root, *rest = name.split(".")
    value = namespace[root]
    for part in rest:
        if part == REGISTERED:
            value = registered(value)
        elif isinstance(value, type):
            held = next((vars(base) for base in value.__mro__ if part in vars(base)), None)
            value = getattr(value, part) if held is None else held[part]
        else:
            value = getattr(value, part)
    return value


def put_at(namespace: MutableMapping[str, Any], name: str, value: Any) -> None:
    """Bind a variable or, for a dotted name, set an attribute. Raises KeyError or AttributeError."""
    owner, _, attribute = name.rpartition(".")
    if owner and attribute == REGISTERED:
        for each in value:
            value_at(namespace, owner).register(each)
    elif owner:
        setattr(value_at(namespace, owner), attribute, value)
    else:
        namespace[name] = value


def remove_at(namespace: MutableMapping[str, Any], name: str) -> None:
    """Delete a variable or an attribute; nothing happens where there is none."""
    owner, _, attribute = name.rpartition(".")
    if not owner:
        namespace.pop(name, None)
        return
    try:
        delattr(value_at(namespace, owner), attribute)
    except (KeyError, AttributeError):
        return
