"""Names that share an object, or a part of one."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import compress, islice
from typing import Any

from keel_notebook.capture.namespace import attributes

IMMUTABLE = frozenset({int, float, complex, bool, str, bytes, type(None), range, type(...), slice})
"""Types whose values never change and hold nothing that does."""

_NO_PARTS = (types.ModuleType, type, types.BuiltinFunctionType, types.CodeType)
_MOST_PARTS = 5000
_MOST_PER_NAME = 200
_MOST_STEPS = 20_000


def bound_to_same(namespace: Mapping[str, Any], ids: Container[int]) -> dict[int, list[str]]:
    """For each of the object ids, the names bound to that object."""
    groups: dict[int, list[str]] = {}
    for name in compress(namespace, map(ids.__contains__, map(id, namespace.values()))):
        groups.setdefault(id(namespace[name]), []).append(name)
    return groups


def sharing(changed: Iterable[Any], namespace: Mapping[str, Any], *, without: set[int]) -> set[str]:
    """Names whose value holds a changed value, or a part of one, within reason; never by way of the ids ``without``.

    It follows lists, dicts, sets, tuples, instances and array views, so far as a few thousand steps lead: an answer
    for ``boxes = [row]; row.append(1)`` and for ``opt`` that holds the parameters of ``model``, not for every library.
    """
    parts = {id(part) for value in changed for part in islice(_parts(value, without), _MOST_PARTS)}
    found, left = set(), _MOST_STEPS
    for name, value in namespace.items():
        for part in islice(_parts(value, without), min(left, _MOST_PER_NAME)):
            left -= 1
            if id(part) in parts:
                found.add(name)
                break
    return found


def _parts(value: Any, without: set[int]) -> Iterator[Any]:
    """The value and its parts that may change, each once."""
    seen = set(without)
    todo = deque([value])
    while todo:
        part = todo.popleft()
        kind = type(part)
        if kind in IMMUTABLE or id(part) in seen or issubclass(kind, _NO_PARTS):
            continue
        seen.add(id(part))
        yield part
        todo.extend(_inside(part, kind))


def _inside(part: Any, kind: type) -> Iterable[Any]:
    if issubclass(kind, list | tuple | set | frozenset | deque):
        return list(islice(part, _MOST_PARTS))
    if issubclass(kind, dict):
        return list(islice(part.values(), _MOST_PARTS))
    if issubclass(kind, types.FunctionType):
        return [cell.cell_contents for cell in part.__closure__ or () if _filled(cell)]
    if issubclass(kind, types.MethodType):
        return [part.__self__]
    inside = list(attributes(part).values())
    return [*inside, part.base] if kind.__name__ == "ndarray" else inside


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
