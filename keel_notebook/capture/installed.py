"""Which files belong to Python, to an installed package or to keel: such count by name, all others by content."""

from __future__ import annotations

import os
import re
import site
import sys
from functools import cache, lru_cache
from types import ModuleType

_PACKAGES = re.compile(r"[/\\](?:site|dist)-packages[/\\]")


def is_installed(path: str) -> bool:
    """Whether a file belongs to Python, to an installed package or to keel.

    Asked of every module and of the class of every object in one; following links costs a question to the system for
    each folder on the way. Where an absolute path leads was settled when something was loaded from it.
    """
    return _is_installed(path) if path[:1] == os.sep else _looked_up(path)


def _looked_up(path: str) -> bool:
    if path.startswith(_roots()) and os.pardir not in path:
        return True  # nearly all of a thousand modules, which a first step asks for
    path = os.path.abspath(path)
    if _PACKAGES.search(path):  # also one that a .pth file or PYTHONPATH adds, from beside this Python
        return True
    return path.startswith(_roots()) or os.path.realpath(path).startswith(_roots())


_PACKAGES_AS_A_WHOLE: dict[str, object] = {}
"""The loaded top packages all of whose modules are installed, by name."""


def is_of_installed(name: str) -> bool:
    """Whether a loaded module belongs to a package that is installed as a whole: told by its name, in no time.

    A first step asks for each of some thousand modules. False says nothing: the module's own file then tells.
    """
    top = name.partition(".")[0]
    package = sys.modules.get(top)
    if package is not None and _PACKAGES_AS_A_WHOLE.get(top) is package:
        return True
    if not isinstance(package, ModuleType):
        return False
    file, folders = vars(package).get("__file__"), vars(package).get("__path__", ())
    # More than one folder: a namespace, parts of which may be the person's own.
    if not isinstance(file, str) or not is_installed(file) or len(list(folders)) > 1:
        return False
    _PACKAGES_AS_A_WHOLE[top] = package
    return True


_is_installed = lru_cache(maxsize=1 << 16)(_looked_up)


@cache
def _roots() -> tuple[str, ...]:
    python, keel = os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(__file__))
    found = [python, keel, *site.getsitepackages(), site.getusersitepackages()]
    return tuple({os.path.join(root, "") for path in found for root in (path, os.path.realpath(path))})
