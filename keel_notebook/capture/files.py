"""What files hold: digests of their content, of listings and patterns, remembered by stamp (DESIGN 6, Files)."""

from __future__ import annotations

import glob
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from blake3 import blake3

from keel_notebook.capture.held import content_through_another, is_held
from keel_notebook.core.fileholds import ABSENT
from keel_notebook.core.filerules import Stamp
from keel_notebook.core.filetexts import has_gaps
from keel_notebook.core.ids import text_digest
from keel_notebook.core.model import Digest, FileSeen

WHOLE = 256 << 20
"""Up to this size a file is digested whole; above it in samples, said as weak."""
_PIECE = 8 << 20
_SAMPLES, _SAMPLE = 64, 64 << 10
_MOST_FILES = 2_000
"""Of a folder or pattern that counts with what its files hold; of a larger one, sizes and times count."""
_SETTLES_NS = 2_000_000_000
"""A stamp younger than this may be that of two contents: clocks of file systems tick, some every two seconds."""
_NOT_LISTED = frozenset({".keel", ".ipynb_checkpoints", "__pycache__", ".git", ".DS_Store"})


class Files:
    """Digests files relative to the folder in which the kernel started, and remembers them by stamp.

    ``now_ns`` is wall time in nanoseconds, by the clock that stamps files.
    """

    def __init__(self, *, root: Path, salt: bytes, now_ns: Callable[[], int]) -> None:
        self.root = os.path.normpath(root)
        self._below = os.path.join(self.root, "")
        self._key = salt
        self._now_ns = now_ns
        self._remembered: dict[tuple[str, Stamp], tuple[Digest, bool]] = {}

    def shown(self, path: str) -> str:
        """A path as it is kept: relative to the root where it is below it, so that a moved folder still fits."""
        full = os.path.normpath(os.path.join(self.root, path))
        if full.startswith(self._below):
            return full[len(self._below) :]
        return "." if full == self.root else full

    def full(self, path: str) -> str:
        """The absolute path behind a kept one."""
        return os.path.join(self.root, path)

    def now(self, recorded: FileSeen) -> Digest | None:
        """What a kept path holds now: a digest, ``absent``, or None where it cannot be told.

        A file whose stamp is the recorded one is not read again.
        """
        full = self.full(recorded.path)
        if recorded.role == "append":
            return self._region(full, *recorded.stamp)
        if recorded.role in {"left", "base"} and recorded.digest is None:
            return None
        if recorded.stamp and recorded.digest is not None and stamp_in(full)[0] == recorded.stamp and not _beside(full):
            return recorded.digest
        return self.seen(recorded.path, recorded.role).digest

    def now_all(self, recorded: Sequence[FileSeen]) -> dict[str, Digest | None]:
        """The same for several, by ``FileSeen.asked``. A file is not read if one of them vouches for its stamp."""
        now: dict[str, Digest | None] = {}
        for seen in sorted(recorded, key=lambda seen: not seen.stamp):
            if now.get(seen.asked) is None:
                now[seen.asked] = self.now(seen)
        return now

    def made_from(self, name: str) -> bool:
        """Whether a text names a file that a value may have been made from: no database, and no log, which grow."""
        full = self.full(name)
        try:
            if not name.isprintable() or name.endswith(".log") or not os.path.isfile(full) or is_held(os.stat(full)):
                return False
            with open(full, "rb", buffering=0) as file:
                head = file.read(16)
        except OSError:
            return False
        return not head.startswith(b"SQLite format 3") and head[8:12] != b"DUCK"

    def seen(self, path: str, role: str) -> FileSeen:
        """A file as it is now: its digest, and its stamp where that will tell the next change."""
        kept = self.shown(path)
        full = self.full(kept)
        if role == "glob":
            return FileSeen(kept, role, self._names(list(matches(full))))
        try:
            found = os.stat(full)
        except (FileNotFoundError, NotADirectoryError):
            if has_gaps(kept) and (matching := list(matches(full))):
                digest, weak = self._together(full, matching)
                return FileSeen(kept, role, digest, weak=weak)
            return FileSeen(kept, role, ABSENT)
        except (OSError, ValueError):
            return FileSeen(kept, role, None)
        stamp = _stamp(found)
        try:
            digest, weak = self._digest(full, found, role)
        except OSError:
            return FileSeen(kept, role, None)
        lasting = stamp if self._is_settled(stamp) and stat.S_ISREG(found.st_mode) and not _beside(full) else ()
        return FileSeen(kept, role, digest, lasting, weak)

    def appended(self, path: str, before: Stamp | None, after: Stamp | None) -> list[FileSeen]:
        """What was appended to a file between two states of it; nothing where that is much, or nothing."""
        kept = self.shown(path)
        start, end = before[0] if before is not None else 0, after[0] if after is not None else 0
        if not 0 < end - start <= WHOLE // 4 or (digest := self._region(self.full(kept), start, end)) is None:
            return []
        return [FileSeen(kept, "append", digest, (start, end))]

    def _region(self, full: str, start: int, end: int) -> Digest | None:
        """What a file holds from one place to another; None where it is shorter or cannot be read."""
        try:
            with open(full, "rb", buffering=0) as file:
                file.seek(start)
                pieces, left = [], end - start
                while left > 0 and (piece := file.read(min(left, _PIECE))):
                    pieces.append(piece)
                    left -= len(piece)
        except (OSError, ValueError):
            return None
        return self._joined(pieces) if left == 0 else None

    def found(self, full: str) -> Digest | None:
        """What a file holds that is about to be overwritten; None where that takes long or cannot be told."""
        try:
            found = os.stat(full)
            if stat.S_ISREG(found.st_mode) and found.st_size <= WHOLE // 4:
                return self._of_file(full, found)[0]
        except (OSError, ValueError):
            pass
        return None

    def _is_settled(self, stamp: Stamp) -> bool:
        return self._now_ns() - max(stamp[1:3]) > _SETTLES_NS

    def _digest(self, full: str, found: os.stat_result, role: str) -> tuple[Digest | None, bool]:
        is_folder = stat.S_ISDIR(found.st_mode)
        if role == "there":
            return text_digest("there", "folder" if is_folder else "file"), False
        if role == "stat":
            return text_digest("stat", str(found.st_size), str(found.st_mtime_ns)), False
        if is_folder and role == "list":
            return self._names(os.listdir(full)), False
        if is_folder:
            return self._together(full, list(_below(full)))
        if not stat.S_ISREG(found.st_mode):
            return None, False  # a pipe or device: never read, never equal
        if role == "left" and found.st_size > WHOLE // 4:
            return None, False  # it hardly ever counts
        return self._of_file(full, found)

    def _of_file(self, full: str, found: os.stat_result) -> tuple[Digest, bool]:
        stamp, beside = _stamp(found), _beside(full)
        known = self._remembered.get((full, stamp)) if not beside else None
        if known is not None:
            return known
        weak = found.st_size > WHOLE
        if is_held(found):
            content = content_through_another(full, samples_at=_places(found.st_size) if weak else ())
        else:
            content = _pieces(full, found.st_size, samples=weak)
        digest = self._joined(itertools.chain(content, *(_pieces(path, 0, samples=False) for path in beside))), weak
        if self._is_settled(stamp) and not beside:
            self._remembered[full, stamp] = digest
        return digest

    def _joined(self, pieces: Iterable[bytes]) -> Digest:
        state = blake3(key=self._key)
        for piece in pieces:
            state.update(piece)
        return Digest(state.hexdigest(length=16))

    def _names(self, names: Iterable[str]) -> Digest:
        listed = sorted(os.fsencode(name) for name in names if os.path.basename(name) not in _NOT_LISTED)
        relative = os.fsencode(self.root) + b"/"
        return self._joined(
            len(name).to_bytes(4, "big") + name for name in (name.removeprefix(relative) for name in listed)
        )

    def _together(self, top: str, paths: list[str]) -> tuple[Digest | None, bool]:
        """Names and contents of several files; above a limit names, sizes and times."""
        stats = [(path, os.stat(path)) for path in sorted(paths)]
        files = [(path, found) for path, found in stats if stat.S_ISREG(found.st_mode)]
        weak = len(files) > _MOST_FILES or sum(found.st_size for _, found in files) > WHOLE
        parts = []
        for path, found in files:
            held = f"{found.st_size} {found.st_mtime_ns}" if weak else self._of_file(path, found)[0]
            parts += [os.path.relpath(path, top), held]
        return text_digest("files", *parts), weak


def stamp_in(path: str) -> tuple[Stamp | None, bool]:
    """What tells one state of a file from another, None where there is none; and whether it is a folder."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None, False
    return _stamp(found), stat.S_ISDIR(found.st_mode)


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _pieces(full: str, size: int, *, samples: bool) -> Iterator[bytes]:
    with open(full, "rb", buffering=0) as file:
        if samples:
            yield size.to_bytes(8, "big")
            for at in _places(size):
                file.seek(at)
                yield file.read(_SAMPLE)
        while not samples and (piece := file.read(_PIECE)):
            yield piece


def _places(size: int) -> list[int]:
    return [at * (size - _SAMPLE) // (_SAMPLES - 1) for at in range(_SAMPLES)]


def _beside(full: str) -> list[str]:
    """Where a database keeps what it has not yet taken into its own file."""
    return [path for end in ("-wal", ".wal") if os.path.exists(path := full + end)]


def matches(pattern: str) -> Iterator[str]:
    """What a pattern with ``*`` matches, ``**`` across folders."""
    return glob.iglob(pattern, recursive=True)


def _below(folder: str) -> Iterator[str]:
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NOT_LISTED)
        for name in names:
            path = os.path.join(where, name)
            if name not in _NOT_LISTED and os.path.exists(path):
                yield path
