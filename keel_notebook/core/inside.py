"""Ways into values: ``cfg['model'].layers[0]``, found by looking, and followed again where the value still has them.

Pure. Only what lies there in plain sight is a way: keys of dicts, places in lists and tuples, attributes of instances.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

_MOST = 1000
"""Objects that are looked at, and parts of each; what lies behind more is not found."""
_LONGEST_KEY = 40
_WORD = re.compile(r"[^\W\d]\w*\Z")
_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
_NOTHING_IN_IT = (str, bytes, int, float, complex, type(None), *_CODE)


def ways(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The objects inside a value that can be changed, each with the shortest way that leads to it from ``name``."""
    waiting: deque[tuple[str, Any]] = deque([(name, value)])
    seen = {id(value)}
    while waiting and len(seen) < _MOST:
        way, thing = waiting.popleft()
        for step, part in _steps(thing):
            if id(part) not in seen and not issubclass(type(part), _NOTHING_IN_IT):
                seen.add(id(part))
                waiting.append((way + step, part))
                if not issubclass(type(part), tuple | frozenset):
                    yield way + step, part


def in_module(name: str, module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The same for the containers that a module holds: ``settings.PATHS``."""
    for attribute, value in list(vars(module).items()):
        if type(value) in (list, dict, set) and _WORD.match(attribute) and not attribute.startswith("__"):
            yield f"{name}.{attribute}", value
            yield from ways(f"{name}.{attribute}", value)


def may_hold(value: Any) -> bool:
    """Whether a value is one that could be changed, or holds such values."""
    return not issubclass(type(value), _NOTHING_IN_IT)


def reached(values: Iterable[Any]) -> set[int]:
    """The identities of the values and of what lies in them, as far as ``ways`` would lead, and in sets."""
    waiting, seen = deque(values), set[int]()
    while waiting and len(seen) < _MOST:
        thing = waiting.popleft()
        if id(thing) not in seen and not issubclass(type(thing), _NOTHING_IN_IT):
            seen.add(id(thing))
            inside = thing if issubclass(type(thing), set | frozenset) else (part for _, part in _steps(thing))
            waiting.extend(islice(inside, _MOST))
    return seen


def follow(way: str, root: Any) -> Any:
    """What a way leads to from the value of its name. Raises LookupError where it does not lead there any more."""
    thing = root
    for kind, key in _parsed(way):
        if kind == "." and key in (own := getattr(thing, "__dict__", ())):
            thing = own[key]
        elif kind == "[" and isinstance(thing, dict):
            thing = dict.__getitem__(thing, key)
        elif kind == "[" and type(thing) in (list, tuple) and type(key) is int:
            thing = thing[key]
        else:
            raise LookupError(way)
    return thing


def root_of(way: str) -> str:
    """The name with which a way begins."""
    found = re.match(r"\w+", way)
    return found[0] if found else way


def _steps(thing: Any) -> Iterator[tuple[str, Any]]:
    if issubclass(type(thing), dict):
        for key in islice(list(dict.keys(thing)), _MOST):
            if type(key) is int or (type(key) is str and len(key) <= _LONGEST_KEY and key.isprintable()):
                yield f"[{key!r}]", dict.__getitem__(thing, key)
    elif type(thing) in (list, tuple):
        yield from ((f"[{at}]", part) for at, part in enumerate(islice(thing, _MOST)))
    if not issubclass(type(thing), dict | list | tuple | set | frozenset) and type(thing).__module__ == "__main__":
        own = getattr(thing, "__dict__", None)
        for name, part in list(own.items()) if type(own) is dict else ():
            if type(name) is str and _WORD.match(name):
                yield f".{name}", part


@lru_cache(maxsize=512)
def _parsed(way: str) -> tuple[tuple[str, Any], ...]:
    steps: list[tuple[str, Any]] = []
    node: ast.expr = ast.parse(way, mode="eval").body
    while not isinstance(node, ast.Name):
        match node:
            case ast.Attribute(value=inside, attr=name):
                steps.append((".", name))
            case ast.Subscript(value=inside, slice=key):
                steps.append(("[", ast.literal_eval(key)))
            case _:
                raise LookupError(way)
        node = inside
    return tuple(reversed(steps))
