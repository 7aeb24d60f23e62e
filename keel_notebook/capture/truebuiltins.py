"""Python's own built-ins, for keel's work in a kernel in which a cell has put others in their place.

With another ``len`` neither keel nor IPython nor Python's imports do what they say: cells run plainly until the
built-ins are themselves again. What people replace for good reasons (``print``, ``open``) is an input like others.
"""

from __future__ import annotations

import builtins
from operator import is_
from typing import Any

_NAMES = """
    all any bool bytes callable dict enumerate filter frozenset getattr hasattr hash id int isinstance issubclass iter
    len list map max min next object property range repr reversed set setattr sorted str sum super tuple type vars zip
""".split()  # noqa: SIM905 - easier to read
_TRUE = {name: vars(builtins)[name] for name in _NAMES}
_GONE = object()
_all, _map = all, map
_now: dict[str, Any] = vars(builtins)


class TrueBuiltins:
    """While it is entered, the built-ins are Python's own. Uses none itself."""

    def __enter__(self) -> dict[str, Any]:
        """What stands in the place of built-ins, by name; mostly nothing."""
        self._theirs: dict[str, Any] = {}
        if not _all(_map(is_, _map(_now.get, _TRUE), _TRUE.values())):
            self._theirs = {
                name: _now.get(name, _GONE) for name, true in _TRUE.items() if _now.get(name, _GONE) is not true
            }
            _now.update({name: _TRUE[name] for name in self._theirs})
        return self._theirs

    def __exit__(self, *_: object) -> None:
        for name, value in self._theirs.items():
            if value is _GONE:
                _now.pop(name, None)
            else:
                _now[name] = value
