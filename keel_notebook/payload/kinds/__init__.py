"""Kinds: types whose values keel takes apart into plainer parts, and puts together again (DESIGN 6, Payload).

A kind serves all three readers of a value: the digester compares the parts, the plain encoding writes them, and
pickle is handed them instead of what the library would have pickled. So an array, a frame or a date is described
once, in a form that no library version changes.

A library's kinds live in a module of their own that is imported when the first value of that library is met:
numpy, pandas, pyarrow, polars and torch are never imported for somebody who does not use them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct


class Kind(Struct, frozen=True):
    """How values of one type are taken apart and built again.

    ``take`` gives the parts, or None for a value that this kind does not cover. Parts are plain values, ``Memory``
    or values of other kinds, in tuples (never in lists or dicts: those may be in a cycle). ``build`` gets the parts
    back; for a ``Memory`` it gets a writable ``memoryview``. ``native``: pickle handles the type well by itself.
    ``compare`` gives other parts to the digester, where what is stored says more than what is equal.
    """

    tag: str
    type: type
    take: Callable[[Any], tuple[Any, ...] | None]
    build: Callable[..., Any]
    native: bool = False
    compare: Callable[[Any], tuple[Any, ...] | None] | None = None


_HOMES = {
    "numpy": "keel_notebook.payload.kinds.numpy",
    "pandas": "keel_notebook.payload.kinds.pandas",
    "pyarrow": "keel_notebook.payload.kinds.arrow",
    "polars": "keel_notebook.payload.kinds.polars",
    "matplotlib": "keel_notebook.payload.kinds.matplotlib",
    "torch": "keel_notebook.payload.kinds.torch",
}
_NEEDED = {"keel_notebook.payload.kinds.matplotlib": "matplotlib.figure"}
"""A library whose types are spread over modules: not before this one is there."""
TENSORS = frozenset({"torch.tensor", "torch.parameter"})
"""Tags of what may lie on the memory of a journaled tensor."""
_STANDARD = "keel_notebook.payload.kinds.standard"
_STANDARD_TOPS = frozenset(
    [
        "builtins",
        "datetime",
        "zoneinfo",
        "decimal",
        "_decimal",
        "fractions",
        "uuid",
        "pathlib",
        "re",
        "collections",
        "array",
        "random",
        "_random",
    ]
)

_by_type: dict[type, Kind] = {}
_by_tag: dict[str, Kind] = {}
_loaded: set[str] = set()


def find(cls: type) -> Kind | None:
    """The kind of exactly this type, if it has one."""
    kind = _by_type.get(cls)
    if kind is not None:
        return kind
    top = str(cls.__module__).partition(".")[0]
    home = _STANDARD if top in _STANDARD_TOPS else _HOMES.get(top)
    if cls.__module__ == _HOMES["numpy"]:  # its Column; no other type of keel asks for numpy
        home = _HOMES["numpy"]
    if home is None or home in _loaded or _NEEDED.get(home, "sys") not in sys.modules:
        return None
    _load(home)
    return _by_type.get(cls)


def tagged(tag: str) -> Kind:
    """The kind that wrote ``tag``. Raises KeyError for a tag that this version does not know."""
    if tag not in _by_tag:
        for home in (_STANDARD, _HOMES.get(tag.partition(".")[0], _STANDARD)):
            if home not in _loaded:
                _load(home)
    return _by_tag[tag]


def _load(home: str) -> None:
    _loaded.add(home)
    kinds: Iterable[Kind] = importlib.import_module(home).kinds()
    for kind in kinds:
        _by_type[kind.type] = kind
        _by_tag.setdefault(kind.tag, kind)
