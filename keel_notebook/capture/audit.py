"""The audit hook of this process: what Python code asks of the system, passed on while somebody watches.

A hook can never be removed, so there is one, and it costs next to nothing while nobody watches.
"""

from __future__ import annotations

import functools
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

Args = tuple[Any, ...]
Touches = list[tuple[str, Any]]


class Watcher(Protocol):
    """Is told what happens, in the thread in which it happens, before it happens."""

    def note(self, event: str, args: Args) -> None:
        """One event out of ``FILES``, ``NETWORK``, ``CHILDREN`` or ``FOLDER``. Must never raise."""


def watch(watcher: Watcher) -> None:
    """Tell the watcher what happens from now on."""
    _watchers().append(watcher)


def unwatch(watcher: Watcher) -> None:
    """Stop telling it. Harmless for one that does not watch."""
    watchers = _watchers()
    if watcher in watchers:
        watchers.remove(watcher)


def count_variables() -> None:
    """From now on ``TIMES_SET`` counts, also while nobody watches."""
    _watchers()


@functools.cache
def _watchers() -> list[Watcher]:
    watchers: list[Watcher] = []

    def hook(event: str, args: Args) -> None:
        if event in _VARIABLES:
            TIMES_SET[args[0]] += 1
        elif watchers and event in EVENTS and not (event in _LOOKED_AT and _is_silent(event, args)):
            for watcher in tuple(watchers):
                watcher.note(event, args)

    sys.addaudithook(hook)
    os.register_at_fork(after_in_child=watchers.clear)
    return watchers


def _is_silent(event: str, args: Args) -> bool:
    """Whether Python only looks for code, an import or a traceback that shows a source line, or the journal syncs."""
    caller = sys._getframe(2).f_code
    if caller.co_filename.startswith(_JOURNAL):
        return True
    if event == "open" and not str(args[0]).endswith(_CODE):
        return False
    if event == "os.scandir" and caller.co_filename.startswith(_PATTERNS):
        return caller.co_name not in _LISTINGS  # a pattern is one event of its own, and counts by what it matches
    return caller.co_filename in _SILENT


def _of_open(args: Args) -> Touches:
    path, mode, flags = args
    if isinstance(mode, str):
        kinds = set(mode)
        if "a" in kinds:
            return [("append", path)]
        if kinds & {"w", "x"}:
            return [("write", path)]
        return [("read", path), ("write", path)] if "+" in kinds else [("read", path)]
    access = flags & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR)
    if access == os.O_RDONLY:
        return [("read", path)]
    if flags & os.O_APPEND:
        return [("append", path)]
    return [("write", path)] if access == os.O_WRONLY or flags & os.O_TRUNC else [("read", path), ("write", path)]


def _first(how: str) -> Callable[[Args], Touches]:
    return lambda args: [(how, args[0])]


def _second(how: str) -> Callable[[Args], Touches]:
    return lambda args: [(how, args[1])]


def _moved(args: Args) -> Touches:
    return [("rename", args[0]), ("write", args[1])]


def _listed(args: Args) -> Touches:
    return [("list", "." if args[0] is None else args[0])]


FILES: dict[str, Callable[[Args], Touches]] = {
    "open": _of_open,
    "os.listdir": _listed,
    "os.scandir": _listed,
    "glob.glob/2": lambda args: [("glob", os.path.join(args[2] or "", args[0]))],
    "pathlib.Path.glob": lambda args: [("glob", os.path.join(args[0], args[1]))],
    "pathlib.Path.rglob": lambda args: [("glob", os.path.join(args[0], "**", args[1]))],
    "os.remove": _first("remove"),
    "os.rmdir": _first("remove"),
    "os.rename": _moved,
    "os.mkdir": _first("make"),
    "os.truncate": _first("write"),
    "os.link": _second("write"),
    "os.symlink": _second("write"),
    "sqlite3.connect": _first("database"),
}
"""Events that name files, and how they say what is done with which path."""

NETWORK = frozenset(
    {
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyaddr",
        "socket.sendto",
        "socket.sendmsg",
    }
)
CHILDREN = frozenset(
    {
        "subprocess.Popen",
        "os.system",
        "os.posix_spawn",
        "os.spawn",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "pty.spawn",
    }
)
FOLDER = frozenset({"os.chdir", "os.fchdir"})
"""The working directory is about to change."""
EVENTS = frozenset(FILES) | NETWORK | CHILDREN | FOLDER

_VARIABLES = frozenset({"os.putenv", "os.unsetenv"})
TIMES_SET: Counter[bytes] = Counter()
"""How often each environment variable was set or removed since anybody watches: the same text again counts too."""

_LOOKED_AT = frozenset({"open", "os.listdir", "os.scandir"})
_CODE = (".py", ".pyc", ".so", ".pth", ".zip", ".egg", ".whl")
_LIBRARY = os.path.dirname(os.__file__)
_JOURNAL = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "journal", "")
"""It opens the notebook's folder to sync its names, from a thread that may have begun with the cell that runs."""
_PATTERNS = (os.path.join(_LIBRARY, "glob.py"), os.path.join(_LIBRARY, "pathlib"))
_LISTINGS = frozenset({"iterdir", "walk", "_walk"})
_SILENT = frozenset(
    {
        "<frozen importlib._bootstrap_external>",  # an import looks into every folder of sys.path
        "<frozen zipimport>",
        os.path.join(_LIBRARY, "importlib", "metadata", "__init__.py"),
        os.path.join(_LIBRARY, "linecache.py"),
        os.path.join(_LIBRARY, "tokenize.py"),
        os.path.join(_LIBRARY, "pkgutil.py"),
    }
)
"""Callers whose reading is no input of a cell: imports are known by their modules, tracebacks by their cell."""
