"""Objects: write-once files named by the digest of what is in them (DESIGN 7).

Content is hashed and, if it is not there, written straight from the caller's memory; large content that looks new is
written while it is hashed, and given up if it was there all the same. An object is never changed, so it may be mapped;
it appears under its name with all of its content, and a damaged one heals when equal content is put again.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import blake3

from keel_notebook.core.model import Blob, Digest
from keel_notebook.errors import DamagedError, JournalUnreachableError
from keel_notebook.journal import mapping
from keel_notebook.journal.drives import is_local
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.streams import Stream, Ways, joined
from keel_notebook.journal.wholefiles import read_whole, sync_file, sync_folder, write_all
from keel_notebook.journal.wire import is_digest

INLINE_MAX: Final = 16 << 10
"""Bytes: up to here content lies in the entry itself."""
_LARGE: Final = 1 << 20
_PIECE: Final = 8 << 20
_PROBE: Final = 4096
_RESERVE: Final = 0.05
_HASH_THREADS: Final = min(4, os.cpu_count() or 1)
_NO_FALLOCATE: Final = frozenset({errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS, errno.ENODEV})


class _Stamp(NamedTuple):
    """What tells a file that was not touched."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @property
    def touched(self) -> int:
        """When it was last changed, renamed or copied: microseconds since the epoch."""
        return max(self.mtime_ns, self.ctime_ns) // 1000


class Objects:
    """The objects of one journal, as one kernel or reader sees them.

    ``vouched`` gives the microsecond at which an object was known to be sound and power-safe, 0 if never. ``run``
    marks unfinished files, so that an ingest finds those of dead runs. ``monotonic`` times the ways to write much;
    without it there is one. Methods raise OSError where nothing else is said.
    """

    def __init__(
        self,
        place: Folder,
        *,
        run: int,
        vouched: Callable[[Digest], int],
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self.unsafe: dict[Digest, int] = {}
        """Not known to be power-safe, in the order written, each with a number of its own per writing."""
        self.checked: list[tuple[Digest, int]] = []
        """Read and found sound since this list was last emptied, although nobody vouched for them, each with the
        microsecond at which its file was last touched."""
        self.claims: set[Digest] = set()
        """Put, whether they were there before or not, and not named by an entry yet: nobody may let them go."""
        self.run = run
        self._place = place
        self._vouched = vouched
        self._known: dict[Digest, _Stamp] = {}
        self._serial = itertools.count(1)
        self._monotonic = monotonic
        self._ways = Ways()

    @functools.cached_property
    def mappable(self) -> bool:
        """Whether files of this folder may be mapped."""
        return is_local(self._place.path)

    def path(self, digest: Digest) -> str:
        """Where an object lies. Raises DamagedError (E051) where this is no digest: it must not lead elsewhere."""
        if not is_digest(digest):
            raise DamagedError(what="a payload", detail="its object has no digest as name")
        return f"{self._place.objects}/{digest[:2]}/{digest[2:]}"

    def put(self, parts: Iterable[memoryview | bytes]) -> Digest:
        """Write one object, the parts joined, and return its digest."""
        if not isinstance(parts, list | tuple):
            return self._put_stream(parts)
        views = [_flat(part) for part in parts]
        size = sum(map(len, views))
        if size >= _PIECE and self._has_room(size) and not self._looks_known(views, size):
            return self._put_while_hashing(views, size)
        digest = _digest(views, size)
        self.claims.add(digest)  # before one looks whether it is there: else it could be let go in between
        if not self._is_there(digest, size):
            self._room(size)
            with self._scratch() as (fd, scratch):
                self._write(fd, views, size)
                self._name(digest, scratch, fd)
        return digest

    def _put_while_hashing(self, views: list[memoryview], size: int) -> Digest:
        found: list[Digest] = []
        hashing = threading.Thread(target=lambda: found.append(_digest(views, size)), name="keel-digest")
        with self._scratch() as (fd, scratch):
            hashing.start()
            try:
                self._write(fd, views, size, scratch)
            finally:
                joined(hashing)  # it reads the caller's memory, which may change once this has returned
            digest = found[0]
            self.claims.add(digest)
            if not self._is_there(digest, size):
                self._name(digest, scratch, fd)
        return digest

    def _write(self, fd: int, views: list[memoryview], size: int, path: str = "") -> None:
        reserved = size >= _LARGE and self.mappable and _reserve(fd, size)
        if reserved and path and self._monotonic is not None:
            Stream(fd, path, self._ways, self._monotonic).write(views)
            return
        offset = 0
        for piece in _pieces(views):
            offset += _write_at(fd, piece, offset)

    def _looks_known(self, views: list[memoryview], size: int) -> bool:
        """Whether an object that this kernel met has the same size and the same beginning."""
        alike = [digest for digest, stamp in self._known.items() if stamp.size == size]
        return any(self._begins_with(digest, views[0][:_PROBE]) for digest in alike)

    def _begins_with(self, digest: Digest, beginning: memoryview) -> bool:
        try:
            with self._open(digest) as fd:
                return os.pread(fd, len(beginning), 0) == beginning
        except (OSError, DamagedError, JournalUnreachableError):
            return False

    def holds(self, digest: Digest) -> bool:
        """Whether an object is there."""
        return is_digest(digest) and os.path.exists(self.path(digest))

    def content(self, blob: Blob) -> bytes:
        """What a blob stands for, checked. Raises DamagedError (E051)."""
        content = blob.inline
        if content is None:
            if blob.object is None:
                raise DamagedError(what="a payload", detail="it names no content")
            content = self.read(blob.object)
        if len(content) != blob.size:
            raise DamagedError(what="a payload", detail=f"{len(content)} bytes instead of {blob.size}")
        return content

    def read(self, digest: Digest) -> bytes:
        """The content of an object, checked. Raises DamagedError (E051)."""
        try:
            content = read_whole(self.path(digest))
        except FileNotFoundError:
            raise self._missing(digest) from None
        if _digest([memoryview(content)], len(content)) != digest:
            raise self._damaged(digest)
        return content

    def map(self, digest: Digest) -> memoryview:
        """An object as private writable memory. Raises DamagedError (E051).

        Not checked where somebody vouches for it and the file was not touched since. So never unpickle from it:
        for that there is ``read``.
        """
        with self._open(digest) as fd:
            stamp = _stamp(fd)
            if not self.mappable:
                memory = memoryview(_read_into(fd, stamp.size))
                if _digest([memory], stamp.size) != digest:
                    raise self._damaged(digest)
                return memory
            memory = mapping.private(fd, stamp.size)
        if not self._trusted(digest, stamp):
            self._verify(digest, memory, stamp)
        return memory

    def check(self, digest: Digest) -> None:
        """Read an object and compare it with its digest. Raises DamagedError (E051)."""
        with self._open(digest) as fd:
            stamp = _stamp(fd)
            memory = mapping.private(fd, stamp.size) if self.mappable else memoryview(_read_into(fd, stamp.size))
        self._verify(digest, memory, stamp)

    def make_safe(self, digests: Iterable[Digest]) -> None:
        """Make objects power-safe: content, then names. One that is gone is left to whoever reads it."""
        folders: dict[str, None] = {}
        for digest in digests:
            path = self.path(digest)
            try:
                fd = os.open(path, os.O_RDONLY)
            except FileNotFoundError:
                continue
            try:
                sync_file(fd)
            finally:
                os.close(fd)
            folders[os.path.dirname(path)] = None
        for folder in (*folders, self._place.objects) if folders else ():
            sync_folder(folder)

    def _put_stream(self, parts: Iterable[memoryview | bytes]) -> Digest:
        state = blake3.blake3()
        size = 0
        with self._scratch() as (fd, scratch):
            for part in parts:
                for piece in _pieces([_flat(part)]):
                    self._room(len(piece))
                    state.update(piece)
                    write_all(fd, piece)
                    size += len(piece)
            digest = Digest(state.hexdigest())
            self.claims.add(digest)
            if not self._is_there(digest, size):
                self._name(digest, scratch, fd)
        return digest

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[tuple[int, str]]:
        # A file that nobody sees until it is named; gone if it never is.
        path = f"{self._place.objects}/.{self.run}.{next(self._serial)}.tmp"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            yield fd, path
        finally:
            os.close(fd)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _name(self, digest: Digest, scratch: str, fd: int) -> None:
        target = self.path(digest)
        try:
            os.rename(scratch, target)
        except FileNotFoundError:
            os.mkdir(os.path.dirname(target), 0o700)
            os.rename(scratch, target)
        self._known[digest] = _stamp(fd)
        self.unsafe[digest] = next(self._serial)

    def _is_there(self, digest: Digest, size: int) -> bool:
        try:
            with self._open(digest) as fd:
                stamp = _stamp(fd)
            if stamp.size != size:
                return False
            if not self._trusted(digest, stamp):
                self.check(digest)
        except DamagedError:
            return False  # missing, or about to be healed
        if not self._vouched(digest):
            self.unsafe[digest] = next(self._serial)
        return True

    def _trusted(self, digest: Digest, stamp: _Stamp) -> bool:
        if self._known.get(digest) == stamp:
            return True
        return stamp.touched <= self._vouched(digest)

    def _verify(self, digest: Digest, memory: memoryview, stamp: _Stamp) -> None:
        if _digest([memory], stamp.size) != digest:
            self._known.pop(digest, None)
            raise self._damaged(digest)
        self._known[digest] = stamp
        self.unsafe[digest] = next(self._serial)
        self.checked.append((digest, stamp.touched))

    @contextlib.contextmanager
    def _open(self, digest: Digest) -> Iterator[int]:
        try:
            fd = os.open(self.path(digest), os.O_RDONLY)
        except FileNotFoundError:
            raise self._missing(digest) from None
        try:
            yield fd
        finally:
            os.close(fd)

    def _has_room(self, size: int) -> bool:
        seen = os.statvfs(self._place.objects)  # the last 5 % of a disk is never used
        return (seen.f_bavail * seen.f_frsize) - size >= _RESERVE * seen.f_blocks * seen.f_frsize

    def _room(self, size: int) -> None:
        if not self._has_room(size):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _missing(self, digest: Digest) -> DamagedError | JournalUnreachableError:
        if not os.path.isdir(self._place.path):
            return JournalUnreachableError(journal=self._place.path, detail="the folder is gone")
        return DamagedError(what="a payload", detail=f"object {digest[:12]}… is missing")

    def _damaged(self, digest: Digest) -> DamagedError:
        return DamagedError(what="a payload", detail=f"object {digest[:12]}… is not what was written")


def _flat(part: memoryview | bytes) -> memoryview:
    view = memoryview(part)
    return view if view.ndim == 1 and view.format == "B" else view.cast("B")


def _pieces(views: Iterable[memoryview]) -> Iterator[memoryview]:
    for view in views:
        for begin in range(0, len(view), _PIECE):
            yield view[begin : begin + _PIECE]


def _digest(views: Iterable[memoryview], size: int) -> Digest:
    # Its own threads, not blake3's shared pool, which a forked child would wait for without end.
    state = blake3.blake3(max_threads=_HASH_THREADS if size >= _PIECE else 1)
    for view in views:
        state.update(view)
    return Digest(state.hexdigest())


def _stamp(fd: int) -> _Stamp:
    seen = os.fstat(fd)
    return _Stamp(seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)


def _write_at(fd: int, piece: memoryview, offset: int) -> int:
    done = 0
    while done < len(piece):
        done += os.pwrite(fd, piece[done:], offset + done)
    return done


def _reserve(fd: int, size: int) -> bool:
    if not hasattr(os, "posix_fallocate"):
        return False
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as error:
        if error.errno not in _NO_FALLOCATE:
            raise
        return False
    return True


def _read_into(fd: int, size: int) -> bytearray:
    content = bytearray(size)
    view = memoryview(content)
    done = 0
    while done < size and (got := os.preadv(fd, [view[done : done + _PIECE]], done)):
        done += got
    return content[:done] if done < size else content
