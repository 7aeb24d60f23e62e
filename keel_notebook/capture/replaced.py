"""Parts that a cell put in the place of others with the same content: ``o.rows = rows`` where both were ``[]``.

Digests are as before then, but what is shared with whom is not: a change made through one name later on has to show
under the other. So for a value that a cell may change it is remembered which object stood where, in containers and in
instances of the notebook's own classes. Libraries' objects move their parts about when they are only read.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from keel_notebook.capture.namespace import attributes
from keel_notebook.capture.parts import CLOSED, IMMUTABLE, MOST, may_change

_FEW: Final = 100
"""Items up to which a container is kept, so that its place in memory is not given to the one that follows it."""


class Links(Struct, frozen=True):
    """Which object stood where in a value."""

    at: dict[str, int]
    """By the way to it, its identity."""
    alive: dict[str, weakref.ref[Any]]
    kept: list[Any]
    """Small containers of what never changes: they hold nothing alive, and a new one likes to lie where one was."""


def links(value: Any, own: Callable[[type], bool], without: Collection[int] = ()) -> Links:
    """Where the parts of a value are that may change.

    Args:
        value: of a name.
        own: whether a class is the notebook's own: the attributes of its instances are looked at.
        without: identities that are not looked into.
    """
    found = Links({}, {}, [])
    for way, part in _walk(value, own, without):
        found.at[way] = id(part)
        if type(part) in (list, dict, set):
            if len(part) <= _FEW and all(type(each) in IMMUTABLE for each in _items(part)):
                found.kept.append(part)
            continue
        try:
            found.alive[way] = weakref.ref(part)
        except TypeError:
            continue
    return found


def replaced(before: Links, value: Any, own: Callable[[type], bool], without: Collection[int] = ()) -> bool:
    """Whether another object stands where one stood. The value has the digest that it had before."""
    return any(
        way in before.at and (before.at[way] != id(part) or (way in before.alive and before.alive[way]() is not part))
        for way, part in _walk(value, own, without)
    )


def _walk(value: Any, own: Callable[[type], bool], without: Collection[int]) -> Iterator[tuple[str, Any]]:
    seen = set(without)
    todo: deque[tuple[str, Any]] = deque([("", value)])
    while todo and len(seen) < MOST:
        way, part = todo.popleft()
        if id(part) in seen:
            continue
        seen.add(id(part))
        for label, child in islice(_edges(part, own), MOST):
            if type(child) in IMMUTABLE or issubclass(type(child), CLOSED):
                continue
            if may_change(child):
                yield way + label, child
            todo.append((way + label, child))


def _edges(part: Any, own: Callable[[type], bool]) -> Iterator[tuple[str, Any]]:
    kind = type(part)
    if issubclass(kind, list | tuple | deque):
        base = next(each for each in (list, tuple, deque) if issubclass(kind, each))
        yield from ((f"[{at}]", each) for at, each in enumerate(base.__iter__(part)))
    elif issubclass(kind, dict):
        yield from ((f"[{at}]", each) for at, each in enumerate(dict.values(part)))
    elif kind.__name__ == "ndarray" and getattr(part.dtype, "hasobject", False):
        yield from ((f"[{at}]", each) for at, each in enumerate(part.flat))
    if own(kind):
        yield from ((f".{name}", each) for name, each in attributes(part).items())
        for name in _slots(kind):
            try:
                yield f".{name}", object.__getattribute__(part, name)
            except AttributeError:
                continue  # nothing was put there yet


def _slots(kind: type) -> Iterator[str]:
    for base in kind.__mro__:
        named = vars(base).get("__slots__", ())
        for name in (named,) if isinstance(named, str) else named:
            if name not in ("__dict__", "__weakref__"):
                yield f"_{base.__name__.lstrip('_')}{name}" if _is_private(name) else name


def _is_private(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")


def _items(part: Any) -> Iterator[Any]:
    if type(part) is dict:
        yield from dict.keys(part)
        yield from dict.values(part)
    else:
        yield from part
