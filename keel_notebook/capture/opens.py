"""Tells which files of watched folders were opened and written, by whatever road: native code, child processes.

Linux only (inotify): elsewhere ``Opens.make`` gives None, and what the code names counts instead. The system does not
say who opened a file; another program's doings in the same folder cannot be told from the step's own.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable, Iterator

from msgspec import Struct

_MODIFY, _CLOSE_WRITE, _CLOSE_NOWRITE, _OPEN = 0x2, 0x8, 0x10, 0x20
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_OVERFLOW, _IGNORED, _IS_FOLDER = 0x4000, 0x8000, 0x40000000
_ONLY_FOLDERS, _NO_LINKS_UNLINKED = 0x01000000, 0x04000000
_MASK = _MODIFY | _CLOSE_WRITE | _CLOSE_NOWRITE | _OPEN | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_HEAD = struct.Struct("iIII")
_MOST_FOLDERS = 400
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "site-packages", "dist-packages"})


class Opened(Struct):
    """What the system told of one path."""

    opened: bool = False
    written: bool = False
    read_first: bool = False
    """Opened and closed again before anything was written to it."""
    folder: bool = False


class Opens:
    """A watch on folders that lasts as long as the kernel. Nothing is read from it until somebody asks."""

    def __init__(self, libc: ctypes.CDLL, fd: int) -> None:
        self._libc = libc
        self._fd = fd
        self._folders: dict[int, str] = {}
        self._watches: dict[str, int] = {}

    @classmethod
    def make(cls) -> Opens | None:
        """A watch on nothing yet; None where this system has none, or has no more to give."""
        if not sys.platform.startswith("linux"):
            return None
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, AttributeError):
            return None
        return cls(libc, fd) if fd >= 0 else None

    def close(self) -> None:
        """Watch no longer. Safe to call twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def watches(self, folder: str) -> bool:
        """Whether opens in a folder (absolute) are seen."""
        return folder in self._watches

    def add(self, folder: str) -> bool:
        """Watch one folder; whether that can be done."""
        if folder in self._watches:
            return True
        if self._fd < 0 or len(self._watches) >= 2 * _MOST_FOLDERS:
            return False
        watch = self._libc.inotify_add_watch(self._fd, os.fsencode(folder), _MASK | _ONLY_FOLDERS | _NO_LINKS_UNLINKED)
        if watch < 0:
            return False
        if (other := self._folders.get(watch)) is not None:  # the same folder under another name
            self._watches.pop(other, None)
        self._folders[watch], self._watches[folder] = folder, watch
        return True

    def add_tree(self, top: str) -> None:
        """Watch a folder and what is below it: nearest first, hidden and installed ones left out, 400 at most."""
        level, left = [top], _MOST_FOLDERS
        while level and left > 0:
            below: list[str] = []
            for folder in level[:left]:
                if self.add(folder):
                    left -= 1
                    below += _folders_in(folder)
            level = below

    def take(self) -> dict[str, Opened] | None:
        """What was told since the last call, by absolute path. None where the system lost count."""
        found: dict[str, Opened] = {}
        sure = self._fd >= 0
        for watch, mask, name in self._events():
            if mask & _OVERFLOW:
                sure = False
                continue
            folder = self._folders.get(watch)
            if folder is None:
                continue
            if mask & _IGNORED:
                self._watches.pop(self._folders.pop(watch), None)
                continue
            path = os.path.join(folder, name) if name else folder
            seen = found.setdefault(path, Opened())
            if mask & _IS_FOLDER:
                seen.folder = True
                seen.opened |= bool(mask & _OPEN)
                if mask & (_CREATE | _MOVED_TO) and _is_watched(name):
                    self.add_tree(path)
            else:
                _note(seen, mask)
        return found if sure else None

    def _events(self) -> Iterator[tuple[int, int, str]]:
        while self._fd >= 0:
            try:
                raw = os.read(self._fd, 1 << 16)
            except (BlockingIOError, OSError):
                return
            at = 0
            while at < len(raw):
                watch, mask, _, length = _HEAD.unpack_from(raw, at)
                at += _HEAD.size + length
                yield watch, mask, os.fsdecode(raw[at - length : at].rstrip(b"\0"))


def _note(seen: Opened, mask: int) -> None:
    if mask & _OPEN:
        seen.opened = True
    if mask & _CLOSE_NOWRITE and not seen.written:
        seen.read_first = True
    if mask & (_MODIFY | _CREATE | _DELETE | _MOVED_FROM | _MOVED_TO):
        seen.written = True


def _folders_in(folder: str) -> Iterable[str]:
    try:
        with os.scandir(folder) as found:
            return sorted(each.path for each in found if _is_watched(each.name) and each.is_dir(follow_symlinks=False))
    except OSError:
        return ()


def _is_watched(name: str) -> bool:
    return name[:1] != "." and name not in _PASSED_OVER
