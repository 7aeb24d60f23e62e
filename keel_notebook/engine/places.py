"""What a call changes in place: found after it ran, recorded with its result, and put back on replay (DESIGN 3.2).

``loss = keel.call(train_epoch, model)`` gives back a loss and leaves the model trained. A replay that only gave
back the loss would leave a silent wrong model. So the mutable arguments of a call, and the values that its function
reaches, are looked at before and after. A change is written down as a *recipe*, which updates the very same objects:
items that were there before stay the objects that they were, so that other names for them hold. Where that cannot
be done the result is given, and the call is made again by the next run: "return it instead". What happened only once
is refused with E020.
"""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from keel_notebook.core.model import Digest
from keel_notebook.engine.plain import ATOMS

MOST = 20_000
"""Objects that are looked at in one argument; beyond that a change cannot be told apart, and is refused."""

_DICTS = frozenset({dict, Counter, OrderedDict, defaultdict})

DigestOf = Callable[[Any], Digest | None]


class NoRecipe(Exception):
    """The change cannot be put back: the type that is in the way."""


class Before(Struct):
    """One object as it was: its children, and the digest of what has none."""

    thing: Any
    children: tuple[Any, ...]
    keys: tuple[Any, ...] | None
    digest: Digest | None


class Snapshot:
    """A value before a call, deep enough to tell afterwards what became of it."""

    def __init__(self, value: Any, digest: DigestOf) -> None:
        self._digest = digest
        self._seen: dict[int, Before] = {}
        self._root = value
        todo = [value]
        while todo:
            item = todo.pop()
            if type(item) in ATOMS or id(item) in self._seen:
                continue
            if len(self._seen) >= MOST:
                raise NoRecipe(type(value).__qualname__)
            keys, children = _apart(item)
            leaf = digest(item) if keys is None and children is None else None
            self._seen[id(item)] = Before(item, tuple(children or ()), keys, leaf)
            todo.extend(children or ())

    def recipe(self, new: list[Any]) -> list[Any] | None:
        """How to make the value what it is now, or None where nothing changed. New values are added to ``new``."""
        done: dict[int, list[Any] | None] = {}
        return self._recipe(self._root, new, done)

    def _recipe(self, thing: Any, new: list[Any], done: dict[int, list[Any] | None]) -> list[Any] | None:
        if id(thing) in done:
            return None  # already looked at, or being looked at: its change is in one recipe only
        done[id(thing)] = None
        before = self._seen[id(thing)]
        keys, children = _apart(thing)
        if children is None:
            return self._leaf(before, new)
        position = {
            id(child): at for at, child in reversed(list(enumerate(before.children))) if type(child) not in ATOMS
        }
        parts: list[Any] = []
        changed = keys != before.keys or len(children) != len(before.children)
        for at, child in enumerate(children):
            if type(child) in ATOMS:
                was = before.children[at] if at < len(before.children) else new
                changed = changed or (was is not child and not _same_atom(was, child))
                parts.append(_new(child, new))
            elif id(child) in position:
                old = position[id(child)]
                inner = self._recipe(child, new, done)
                changed = changed or old != at or inner is not None
                parts.append([1, old, inner])
            else:
                changed = True
                parts.append(_new(child, new))
        if not changed:
            return None
        named = None if keys is None else [_new(key, new)[1] for key in keys]
        return ["items", parts, named]

    def _leaf(self, before: Before, new: list[Any]) -> list[Any] | None:
        now = self._digest(before.thing)
        if now is not None and now == before.digest:
            return None
        if now is None and before.digest is None and _immutable(before.thing):
            return None
        return ["whole", _new(_whole(before.thing), new)[1]]


def _new(value: Any, new: list[Any]) -> list[Any]:
    new.append(value)
    return [0, len(new) - 1]


def _same_atom(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other or (one != one and other != other))  # noqa: PLR0124 - NaN


def _apart(thing: Any) -> tuple[tuple[Any, ...] | None, list[Any] | None]:
    """Keys and children of what can be rebuilt item by item; (None, None) for a leaf."""
    kind = type(thing)
    if kind is list or kind is deque or kind is tuple:
        return None, list(thing)
    if kind in _DICTS and not getattr(thing, "__dict__", None):
        return tuple(thing), list(thing.values())
    if _has_plain_attributes(thing):
        return tuple(vars(thing)), list(vars(thing).values())
    return None, None


def _has_plain_attributes(thing: Any) -> bool:
    kind = type(thing)
    if isinstance(thing, type) or callable(getattr(kind, "load_state_dict", None)) or hasattr(kind, "_update_inplace"):
        return False
    if kind.__module__ in {"builtins", "types", "threading", "_thread"} or hasattr(kind, "__array_interface__"):
        return False
    reduce = kind.__reduce_ex__ is object.__reduce_ex__ and kind.__reduce__ is object.__reduce__  # type: ignore[comparison-overlap]
    custom = "__getstate__" in {name for base in kind.__mro__[:-1] for name in vars(base)} and not _estimator(kind)
    return hasattr(thing, "__dict__") and reduce and not custom and not getattr(kind, "__slots__", ())


def _estimator(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "sklearn"  # its __getstate__ adds a version, nothing else


def _whole(thing: Any) -> Any:
    """The content of a leaf, as ``put_back`` takes it. Raises NoRecipe."""
    kind = type(thing)
    if kind in {set, bytearray}:
        return kind(thing)
    if callable(getattr(kind, "load_state_dict", None)) and callable(getattr(kind, "state_dict", None)):
        return thing.state_dict()
    if hasattr(kind, "_update_inplace"):  # a frame or series of pandas
        return thing.copy()
    numpy = sys.modules.get("numpy")  # never imported: only a value that is there can be an array
    if numpy is not None and isinstance(thing, numpy.ndarray):
        return thing.copy()
    raise NoRecipe(kind.__qualname__)


def _immutable(thing: Any) -> bool:
    return isinstance(thing, type) or (type(thing).__module__ == "builtins" and callable(thing))


def put_back(thing: Any, recipe: list[Any], new: list[Any]) -> None:
    """Do to the live object what the call had done to it. Raises NoRecipe where it is not what it was."""
    if recipe[0] == "whole":
        _put_whole(thing, new[recipe[1]])
        return
    _, parts, named = recipe
    _, children = _apart(thing)
    if children is None:
        raise NoRecipe(type(thing).__qualname__)
    made = []
    for part in parts:
        if part[0] == 0:
            made.append(new[part[1]])
            continue
        if part[1] >= len(children):
            raise NoRecipe(type(thing).__qualname__)
        if part[2] is not None:
            put_back(children[part[1]], part[2], new)
        made.append(children[part[1]])
    if named is None:
        _refill(thing, made)
    else:
        pairs = zip((new[at] for at in named), made, strict=True)
        if type(thing) not in _DICTS:
            vars(thing).clear()
            vars(thing).update(pairs)
            return
        thing.clear()
        for key, value in pairs:  # a Counter's own update would add
            thing[key] = value


def _refill(thing: Any, items: list[Any]) -> None:
    if type(thing) is list:
        thing[:] = items
    elif type(thing) is deque:
        thing.clear()
        thing.extend(items)
    # A tuple holds the same items; what changed is inside of them.


def _put_whole(thing: Any, content: Any) -> None:
    kind = type(thing)
    if kind is set:
        thing.clear()
        thing.update(content)
    elif kind is bytearray:
        thing[:] = content
    elif callable(getattr(kind, "load_state_dict", None)):
        thing.load_state_dict(content)
    elif hasattr(kind, "_update_inplace"):
        thing._update_inplace(content)
    else:
        if getattr(thing, "shape", None) != content.shape or thing.dtype != content.dtype:
            raise NoRecipe(kind.__qualname__)
        thing[...] = content


def mutable(values: Iterable[tuple[str, Any]]) -> Mapping[str, Any]:
    """Those of the named values that a call could change in place."""
    return {name: value for name, value in values if type(value) not in ATOMS and not callable_only(value)}


def callable_only(value: Any) -> bool:
    """Functions, classes and modules: what counts of them is their code."""
    return isinstance(value, type) or type(value).__name__ in {"function", "builtin_function_or_method", "module"}
