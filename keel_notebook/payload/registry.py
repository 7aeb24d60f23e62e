"""Codecs for types of the user: ``keel.register(type, dump, load)`` (DESIGN 3.2).

A package may bring codecs of its own: an entry point of the group ``keel_notebook.codecs`` whose *name* is the top
module of the types (``xarray``) and whose value is a function without arguments that calls ``register``. It is
loaded when the first value of such a type is met, or is to be brought back.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from keel_notebook.payload.typename import type_name

GROUP = "keel_notebook.codecs"


class Registered(Struct, frozen=True):
    """A codec: ``dump`` turns a value into plainer ones, ``load`` turns them back."""

    name: str
    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]


_by_type: dict[type, Registered] = {}
_by_name: dict[str, Registered] = {}
_asked: set[str] = set()
_found: dict[tuple[tuple[str, int], ...], importlib.metadata.EntryPoints] = {}


def register(cls: type, dump: Callable[[Any], Any], load: Callable[[Any], Any]) -> None:
    """Store values of exactly ``cls`` as ``dump(value)``, and bring them back with ``load``.

    What ``dump`` returns is stored like any other value; it also stands for the value in digests, so it must be
    equal for equal values. Registering again replaces. Raises TypeError where ``cls`` is not a class.
    """
    if not isinstance(cls, type):
        raise TypeError("register(type, dump, load): the first argument is a class")
    codec = Registered(type_name(cls), dump, load)
    _by_type[cls] = _by_name[codec.name] = codec


def find(cls: type) -> Registered | None:
    """The codec of exactly this type."""
    _ask(str(cls.__module__))
    return _by_type.get(cls)


def named(name: str) -> Registered | None:
    """The codec that was registered for the type of this name."""
    if name not in _by_name:
        _ask(name)
    return _by_name.get(name)


def _points() -> importlib.metadata.EntryPoints:
    """The entry points of the group. Looking for them reads a file of every installed package, so it is done anew only
    where a package may have come or gone."""
    places = tuple((place, _changed_at(place)) for place in sys.path)
    if places not in _found:
        _found.clear()
        _found[places] = importlib.metadata.entry_points(group=GROUP)
    return _found[places]


def _changed_at(place: str) -> int:
    try:
        return os.stat(place or ".").st_mtime_ns
    except OSError:
        return 0


def _ask(module: str) -> None:
    top = module.partition(".")[0]
    if top in _asked:
        return
    _asked.add(top)
    for point in _points().select(name=top):
        try:
            point.load()()
        except Exception as error:  # noqa: BLE001 - a stranger's package must not take the cell down
            text = f"keel: the codecs of {point.value} could not be loaded ({type(error).__name__})"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
