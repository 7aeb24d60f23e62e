"""What a namespace holds, as text: values by structure, and which names hold one and the same object.

Independent of keel: two processes show the same picture exactly if a notebook's cells cannot tell them apart.
"""

from __future__ import annotations

import random
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

SHELLS_OWN = frozenset({"In", "Out", "exit", "quit", "open", "get_ipython", "hit"})
_ATOMS = (int, float, complex, str, bytes, type(None), type(Ellipsis))
_NO_STATE = frozenset(
    {"__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__", "__static_attributes__", "__slotnames__"}
)  # the last one is what pickle notes down in a class


def users(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The names that cells bound, in order."""
    return {name: namespace[name] for name in sorted(namespace) if not name.startswith("_") and name not in SHELLS_OWN}


def whole(namespace: Mapping[str, Any]) -> dict[str, str]:
    """Each name's value; an object that was seen under an earlier name (or twice) is a number from then on."""
    walk = _Walk(namespace)
    named = users(namespace)
    shown = {name: walk.see(value) for name, value in named.items()}
    arrays = [(name, value) for name, value in named.items() if isinstance(value, np.ndarray)]
    for at, (name, value) in enumerate(arrays):
        shared = [other for other, it in arrays[:at] if np.shares_memory(value, it)]
        shown[name] += f" shares memory with {shared}" if shared else ""
    return shown


def single(namespace: Mapping[str, Any]) -> dict[str, str]:
    """Each name's value, looked at by itself."""
    return {name: _Walk(namespace).see(value) for name, value in users(namespace).items()}


def generators() -> dict[str, str]:
    """The state of each global random generator, under the call that seeds it."""
    kind, keys, *rest = np.random.get_state()
    return {"random.seed": str(random.getstate()), "np.random.seed": f"{kind} {keys.tolist()} {rest}"}


class _Walk:
    """One walk through a graph of objects."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._seen: dict[int, int] = {}
        self._keep: list[Any] = []

    def see(self, value: Any) -> str:
        """The text of a value."""
        if type(value) in _ATOMS or type(value) is bool:
            return repr(value)
        if isinstance(value, np.generic):
            return f"{value.dtype}:{value!r}"
        if isinstance(value, tuple | frozenset):
            parts = [self.see(part) for part in value]
            return f"{type(value).__name__}({', '.join(parts if isinstance(value, tuple) else sorted(parts))})"
        if id(value) in self._seen:
            return f"#{self._seen[id(value)]}"
        self._seen[id(value)] = len(self._seen)
        self._keep.append(value)  # or another object could get its id
        return f"{type(value).__name__}{self._parts(value)}"

    def _parts(self, value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(self.see, value))}]"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{self.see(k)}: {self.see(v)}' for k, v in value.items())}}}"
        if isinstance(value, set):
            return f"{{{', '.join(sorted(map(self.see, value)))}}}"
        if isinstance(value, np.ndarray):
            return f"({value.dtype}, {value.shape}, {value.tolist()})"
        if isinstance(value, pd.DataFrame):
            columns = [(name, str(column.dtype), self.see(column.tolist())) for name, column in value.items()]
            return f"({columns}, {value.index.dtype}, {value.index.tolist()}, {self.see(value.attrs)})"
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.MethodType):
            return f"({self.see(value.__self__)}, {self.see(value.__func__)})"
        if isinstance(value, types.ModuleType):
            plain = {k: v for k, v in vars(value).items() if isinstance(v, (*_ATOMS, list, dict)) and k[:2] != "__"}
            return f"({value.__name__}, {self.see(plain) if value.__name__.startswith('local') else ''})"
        if isinstance(value, np.random.Generator | random.Random):
            return repr(value.bit_generator.state if isinstance(value, np.random.Generator) else value.getstate())
        if isinstance(value, staticmethod | classmethod):
            return self.see(value.__func__)
        if isinstance(value, type):
            return self._class(value)
        if type(value).__module__ == "__main__":
            return f"({self.see(type(value))}, {self.see(vars(value))})"
        return repr(value)

    def _function(self, value: types.FunctionType) -> str:
        cells = [self.see(cell.cell_contents) for cell in value.__closure__ or ()]
        where = "here" if value.__globals__ is self._namespace else value.__module__
        parts = [_code(value.__code__), where, cells, self.see(value.__defaults__), self.see(value.__kwdefaults__)]
        return f"({value.__qualname__}, {parts}, {self.see(vars(value))})"

    def _class(self, value: type) -> str:
        if value.__module__ != "__main__":
            return f"({value.__module__}.{value.__qualname__})"
        state = {name: vars(value)[name] for name in sorted(vars(value)) if name not in _NO_STATE}
        bases = [self.see(base) for base in value.__bases__ if base is not object]
        return f"({value.__qualname__}, {bases}, {self.see(state)})"


def _code(code: types.CodeType) -> str:
    consts = [_code(const) if isinstance(const, types.CodeType) else repr(const) for const in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars} {consts}"
