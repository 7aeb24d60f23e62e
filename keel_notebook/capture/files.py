"""Files as inputs of a step: which of those that were touched count, and what they hold (DESIGN 6, Files)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from blake3 import blake3

from keel_notebook.core.decide import ABSENT
from keel_notebook.core.model import Digest, FileSeen
from keel_notebook.core.ports import FileTouch

WHOLE = 256 << 20
"""Up to this size a file is digested whole; above it in samples, said as weak."""
_PIECE = 8 << 20
_SAMPLES = 64

READ, LIST, ABSENT_ROLE = "read", "list", "absent"
CHANGING = frozenset({"write", "append", "remove", "rename", "database"})


class Files:
    """Digests files relative to the folder in which the kernel started, and remembers them by stamp."""

    def __init__(self, *, root: Path, salt: bytes) -> None:
        self._root = root
        self._key = salt
        self._remembered: dict[tuple[str, tuple[int, ...]], tuple[Digest, bool]] = {}

    def shown(self, path: str) -> str:
        """A path as it is kept: relative to the root where it is below it, so that a moved folder still fits."""
        full = os.path.normpath(os.path.join(self._root, path))
        inside = os.path.relpath(full, self._root)
        return full if inside.startswith("..") else inside

    def now(self, path: str) -> Digest | None:
        """What a kept path holds now: a digest, ``absent``, or None where it cannot be told."""
        return self.seen(path, READ).digest

    def made_from(self, name: str) -> bool:
        """Whether a text names a file that a value may have been made from: no database, and no log, which grow."""
        full = os.path.join(self._root, name)
        try:
            if not name.isprintable() or name.endswith(".log") or not os.path.isfile(full):
                return False
            with open(full, "rb", buffering=0) as file:
                head = file.read(16)
        except OSError:
            return False
        return not head.startswith(b"SQLite format 3") and head[8:12] != b"DUCK"

    def seen(self, path: str, role: str) -> FileSeen:
        """A file with its stamp and digest."""
        kept = self.shown(path)
        full = os.path.join(self._root, kept)
        try:
            found = os.stat(full)
        except (FileNotFoundError, NotADirectoryError):
            return FileSeen(kept, role, ABSENT)
        except OSError:
            return FileSeen(kept, role, None)
        stamp = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
        try:
            digest, weak = self._digest(full, found, stamp)
        except OSError:
            return FileSeen(kept, role, None, stamp)
        return FileSeen(kept, role, digest, stamp, weak)

    def _digest(self, full: str, found: os.stat_result, stamp: tuple[int, ...]) -> tuple[Digest | None, bool]:
        if stat.S_ISDIR(found.st_mode):
            return self._of(sorted(os.fsencode(name) for name in os.listdir(full))), False
        if not stat.S_ISREG(found.st_mode):
            return None, False  # a pipe or device: never equal
        if (full, stamp) not in self._remembered:
            weak = found.st_size > WHOLE
            self._remembered[full, stamp] = self._content(full, found.st_size, weak=weak), weak
        return self._remembered[full, stamp]

    def _content(self, full: str, size: int, *, weak: bool) -> Digest:
        state = blake3(key=self._key)
        with open(full, "rb", buffering=0) as file:
            if not weak:
                while piece := file.read(_PIECE):
                    state.update(piece)
            else:
                state.update(size.to_bytes(8, "big"))
                for at in range(_SAMPLES):
                    file.seek(at * (size - 65536) // (_SAMPLES - 1))
                    state.update(file.read(65536))
        return Digest(state.hexdigest(length=16))

    def _of(self, names: Iterable[bytes]) -> Digest:
        state = blake3(key=self._key)
        for name in names:
            state.update(len(name).to_bytes(4, "big") + name)
        return Digest(state.hexdigest(length=16))

    def inputs(self, touches: Iterable[FileTouch]) -> tuple[FileSeen, ...]:
        """The files that count as inputs of the step that touched them: read and never written by it."""
        how: dict[str, set[str]] = {}
        for touch in touches:
            how.setdefault(self.shown(os.path.join(touch.folder, touch.path)), set()).add(touch.how)
        found = []
        for path, ways in sorted(how.items()):
            if ways & CHANGING:
                continue
            if READ in ways:
                seen = self.seen(path, READ)
                found.append(seen if seen.digest != ABSENT else FileSeen(path, ABSENT_ROLE, ABSENT))
            elif LIST in ways:
                found.append(self.seen(path, LIST))
        return tuple(found)
