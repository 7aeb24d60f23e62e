"""Accessors that a step gives to the frames of pandas and polars.

The class is a name of the notebook and comes back as one; that frames know it is state of the library.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from keel_notebook.capture.accessors import REGISTER, registered
from keel_notebook.capture.ambient_part import Lost


class Accessors:
    """Those that the notebook's own classes are."""

    name = "accessors"

    def look(self) -> Any:
        """By library, class and name: the class behind it."""
        return registered()

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """Those that are new, with the name of the class."""
        new = {place: accessor for place, accessor in after.items() if (before or {}).get(place) is not accessor}
        nameless = {place for place, accessor in new.items() if _held(accessor.__qualname__) is not accessor}
        lost.extend(f"the accessor {name} of {library}.{kind}" for library, kind, name in sorted(nameless))
        return [[*place, new[place].__qualname__] for place in sorted(new.keys() - nameless)] or None

    def put(self, change: Any, lost: Lost) -> None:
        """Register them."""
        for library, kind, name, qualname in change:
            accessor = _held(qualname)
            if accessor is None:
                lost.append(f"the accessor {name} of {library}.{kind}")
            elif getattr(getattr(importlib.import_module(library), kind), name, None) is not accessor:
                home, register = REGISTER[library, kind]
                getattr(importlib.import_module(home), register)(name)(accessor)


def _held(qualname: str) -> Any:
    found: Any = sys.modules["__main__"]
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found
