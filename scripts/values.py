"""Digests of a notebook's values, taken inside its kernel: two sessions hold equal values if these are equal.

Made without any part of keel, so that keel is not the judge of its own work. Layout in memory, identity and the way
a value came about do not count; content and types do.
"""

from __future__ import annotations

import hashlib
import json
import struct
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np
import pandas as pd


def digests(namespace: dict[str, Any], hidden: dict[str, Any]) -> str:
    """A JSON object, name to digest, of every name that the notebook's cells made."""
    made = {name: value for name, value in namespace.items() if not name.startswith("_") and name not in hidden}
    return json.dumps({name: digest(value) for name, value in sorted(made.items())})


def digest(value: Any) -> str:
    """The digest of one value."""
    return _digest(value, frozenset()).hex()


def _digest(value: Any, inside: frozenset[int]) -> bytes:
    told = hashlib.blake2b(type(value).__qualname__.encode(), digest_size=16)
    if id(value) in inside:  # a cycle: what it holds is told already
        return told.digest()
    for part in _parts(value):
        # Lengths first, so that ("ab", "c") and ("a", "bc") differ.
        raw = part if isinstance(part, bytes) else _digest(part, inside | {id(value)})
        told.update(struct.pack("<Q", len(raw)) + raw)
    return told.digest()


def _parts(value: Any) -> list[Any]:
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes() | np.generic():
            return [repr(value).encode()]
        case list() | tuple():
            return [*value]
        case dict():
            return [part for item in value.items() for part in item]
        case set() | frozenset():
            return sorted(_digest(item, frozenset()) for item in value)
        case np.ndarray():
            return _array(value)
        case pd.DataFrame():
            return [value.columns, value.index, *(value[name] for name in value.columns)]
        case pd.Series() | pd.Index():
            index = [value.index] if isinstance(value, pd.Series) else []
            return [str(value.dtype), value.name, *index, value.to_numpy()]
        case FunctionType():
            return [value.__qualname__, value.__code__.co_code, repr(value.__code__.co_names)]
        case type() | ModuleType() | BuiltinFunctionType() | np.ufunc():
            return [value.__name__]
        case _ if type(value).__module__.startswith("matplotlib."):
            return []  # a figure is compared where it is seen: in the outputs
        case _:
            return _reduced(value)


def _array(value: np.ndarray[Any, Any]) -> list[Any]:
    if value.dtype.names:  # field by field: the gaps between fields hold whatever was in memory
        return [value.dtype.str, *(value[name] for name in value.dtype.names)]
    if value.dtype.hasobject:
        return [value.shape, value.tolist()]
    return [value.dtype.str, value.shape, value.tobytes()]


def _reduced(value: Any) -> list[Any]:
    rebuilt = value.__reduce_ex__(4)
    if isinstance(rebuilt, str):
        return [rebuilt]
    return [list(part) if hasattr(part, "__next__") else part for part in rebuilt]
