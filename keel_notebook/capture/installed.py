"""Which files belong to Python, to an installed package or to keel: such count by name, all others by content."""

from __future__ import annotations

import os
import re
import site
from functools import cache, lru_cache

_PACKAGES = re.compile(r"[/\\](?:site|dist)-packages[/\\]")


def is_installed(path: str) -> bool:
    """Whether a file belongs to Python, to an installed package or to keel.

    Asked of every module and of the class of every object in one; following links costs a question to the system for
    each folder on the way. Where an absolute path leads was settled when something was loaded from it.
    """
    return _is_installed(path) if path[:1] == os.sep else _looked_up(path)


def _looked_up(path: str) -> bool:
    path = os.path.abspath(path)
    if _PACKAGES.search(path):  # also one that a .pth file or PYTHONPATH adds, from beside this Python
        return True
    return path.startswith(_roots()) or os.path.realpath(path).startswith(_roots())


_is_installed = lru_cache(maxsize=1 << 16)(_looked_up)


@cache
def _roots() -> tuple[str, ...]:
    python, keel = os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(__file__))
    found = [python, keel, *site.getsitepackages(), site.getusersitepackages()]
    return tuple({os.path.join(root, "") for path in found for root in (path, os.path.realpath(path))})
