"""Accessors of frames that the notebook's own classes are: ``@register_dataframe_accessor("geo")`` (DESIGN 6, Reads).

``df.geo.area()`` does not name the class behind it, and it counts all the same: for everybody who uses the library.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

REGISTER: Mapping[tuple[str, str], tuple[str, str]] = {
    ("pandas", "DataFrame"): ("pandas.api.extensions", "register_dataframe_accessor"),
    ("pandas", "Series"): ("pandas.api.extensions", "register_series_accessor"),
    ("pandas", "Index"): ("pandas.api.extensions", "register_index_accessor"),
    ("polars", "DataFrame"): ("polars.api", "register_dataframe_namespace"),
    ("polars", "LazyFrame"): ("polars.api", "register_lazyframe_namespace"),
    ("polars", "Series"): ("polars.api", "register_series_namespace"),
    ("polars", "Expr"): ("polars.api", "register_expr_namespace"),
}
"""By library and class: what registers an accessor of it."""

Place = tuple[str, str, str]
"""Library, class, and name of an accessor."""


def registered() -> dict[Place, Any]:
    """The accessors that are classes of the notebook."""
    return {
        (library, kind, name): accessor
        for library, kind in REGISTER
        if (owner := getattr(sys.modules.get(library), kind, None)) is not None
        for name in getattr(owner, "_accessors", ())
        if getattr(accessor := getattr(owner, name, None), "__module__", "") == "__main__"
    }


def accessors_among(names: Iterable[str], namespace: Mapping[str, Any]) -> frozenset[str]:
    """The names of the accessors' classes, where what some names hold is of a library that has such accessors."""
    own = registered()
    if not own:
        return frozenset()
    libraries = {library for library, _, _ in own}
    values = (namespace.get(name) for name in names)
    homes = {value.__name__ if type(value) is ModuleType else type(value).__module__ for value in values}
    used = {home.partition(".")[0] for home in homes} & libraries
    classes = {accessor.__qualname__.partition(".")[0] for (library, _, _), accessor in own.items() if library in used}
    return frozenset(classes & namespace.keys())
