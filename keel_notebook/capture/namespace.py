"""The notebook's namespace: which of its names are the person's, and what kind of value they hold."""

from __future__ import annotations

import itertools
import re
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_IPYTHONS = re.compile(r"_{1,3}|_i{1,3}|_i?\d+|_dh|_oh|_ih|_sh|_exit_code|In|Out|__\w+__|__keel\w*")
"""Names that IPython and Python keep there."""
_FIRST = ("_", "I", "O")
"""What they begin with."""

_TABLES = {
    "DataFrame": "frame",
    "LazyFrame": "frame",
    "Series": "frame",
    "GeoDataFrame": "frame",
    "Table": "table",
    "RecordBatch": "table",
    "RecordBatchReader": "table",
    "Dataset": "table",
    "FileSystemDataset": "table",
    "ndarray": "array",
    "Array": "array",
    "Tensor": "array",
    "ChunkedArray": "array",
    "DuckDBPyRelation": "relation",
}


def is_ipythons(name: str) -> bool:
    """Whether a name is IPython's or Python's own (``_``, ``Out``, ``_i3``, ``__name__``), unless a cell binds it."""
    # Most names begin with none of these letters, and every cell asks of every name.
    return name[:1] in _FIRST and _IPYTHONS.fullmatch(name) is not None


def persons_names(shell: Any) -> list[str]:
    """The names of the notebook that a person made."""
    hidden = shell.user_ns_hidden
    return [
        name
        for name, value in shell.user_ns.copy().items()
        if not is_ipythons(name) and not (name in hidden and hidden[name] is value)
    ]


def attributes(value: Any) -> dict[str, Any]:
    """What an instance keeps in its ``__dict__``; nothing for one that keeps none or refuses to tell."""
    try:
        found = value.__dict__
    except Exception:  # noqa: BLE001 proxies raise whatever their target does
        return {}
    return found if type(found) is dict else {}


def kind(value: Any) -> str:
    """``frame``, ``table``, ``array``, ``relation``, ``module``, ``class`` or ``plain``.

    Told by the type's name, because none of the libraries need be there.
    """
    cls = type(value)
    if issubclass(cls, types.ModuleType):
        return "module"
    if issubclass(cls, type):
        return "class"
    return next((_TABLES[base.__name__] for base in cls.__mro__ if base.__name__ in _TABLES), "plain")


class TooLarge:
    """Tells which values are too large to be looked at, and keeps their names. Without a ``small`` none is."""

    def __init__(self, small: Callable[[Any], bool] | None) -> None:
        self._small = small
        self.names: set[str] = set()

    def holds(self, name: str, value: Any) -> bool:
        """Whether this value is too large."""
        if self._small is None or self._small(value):
            return False
        self.names.add(name)
        return True


_LIBRARIES = frozenset({"numpy", "pandas", "polars", "pyarrow", "torch"})


def is_frame(value: Any) -> bool:
    """Whether a value is a frame or series of pandas, by its class alone."""
    return type(value).__module__.partition(".")[0] == "pandas" and type(value).__name__ in ("DataFrame", "Series")


def is_data(value: Any) -> bool:
    """Whether a value is an array or frame of a known library, whose methods do what their names say."""
    if kind(value) not in _TABLES.values() or type(value).__module__.partition(".")[0] not in _LIBRARIES:
        return False
    return str(getattr(value, "dtype", "")) != "object"  # what it holds may change behind its back


def kinds(namespace: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    """The kinds of those names that exist."""
    return {name: kind(namespace[name]) for name in names if name in namespace}


def strings_in(value: Any) -> list[str]:
    """A string, or the strings in a plain container of them: the first few hundred, two containers deep."""
    if type(value) is str:
        return [value]
    if type(value) not in _CONTAINERS:
        return []
    found: list[str] = []
    todo = [(value, 0)]
    while todo and len(found) < _MOST_STRINGS:
        inside, depth = todo.pop()
        parts = inside.values() if type(inside) is dict else inside
        for part in itertools.islice(parts, _MOST_STRINGS):
            if type(part) is str:
                found.append(part)
            elif depth < _DEPTH and type(part) in _CONTAINERS:
                todo.append((part, depth + 1))
    return found


_CONTAINERS = frozenset({list, tuple, set, frozenset, dict})
_MOST_STRINGS, _DEPTH = 300, 2
