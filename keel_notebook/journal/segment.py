"""The segment of one run: claimed once, appended to by one kernel, and never rewritten (DESIGN 7).

What is acknowledged is in the file. A write that fails half-way, or that an interrupt cuts off, is settled
before the next one: a whole frame stays, a part of one is cut back, so that the next append is sound.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Final

from keel_notebook.core.ports import RunStart, Seal
from keel_notebook.journal import frames, liveness, wire
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.frames import Mark
from keel_notebook.journal.sidefile import Side, write_side
from keel_notebook.journal.wholefiles import sync_file, sync_folder, write_all

_TRIES: Final = 1000
_SAME_MEMORY: Final = 1 << 20
_SAME_MOMENT_S: Final = 0.2


class GroundLostError(Exception):
    """The segment was deleted, cut or written to by somebody else: what it held cannot be relied on."""


class Segment:
    """The writing end of one segment. One thread at a time. Methods raise OSError and GroundLostError."""

    def __init__(self, place: Folder, run: int, fd: int, *, seal: Seal) -> None:
        self.run = run
        self.rss = 0
        self.seen_at = 0.0
        self.synced = 0
        """Length that is known to be power-safe."""
        self._place = place
        self._path = place.segment(run)
        self._fd = fd
        self._seal = seal
        self.ident = os.urandom(8)
        self._seed = frames.seed_of(self.ident)
        self._tail = (0, frames.first_link(self.ident))
        self._unsettled: tuple[int, bytes] | None = None
        self._named = False
        self._side_fd: int | None = None

    @property
    def size(self) -> int:
        """Length as far as this kernel wrote it."""
        return self._tail[0]

    @property
    def closed(self) -> bool:
        """Whether nothing can be written any more."""
        return self._fd < 0

    def begin(self, start: RunStart) -> None:
        """Write the head and the first frame: who writes here."""
        body = wire.pack(wire.start_to_wire(start, liveness.pid_space()))
        raw, link = self._frames(Mark.START, body, fence=0, stamp=0, copies=1)
        self._write(frames.segment_head(self.ident) + raw, link)

    def append(self, mark: Mark, body: bytes, *, fence: int, stamp: int, copies: int = 1) -> int:
        """Write a frame (``copies`` times) and return the offset behind it. It survives ``kill -9``."""
        self.check_ground()
        raw, link = self._frames(mark, body, fence=fence, stamp=stamp, copies=copies)
        self._write(raw, link)
        return self._tail[0]

    def check_ground(self) -> None:
        """Raise GroundLostError unless the segment is there, under its name, as this kernel left it."""
        if self._unsettled is not None:
            self._settle()
        found = os.fstat(self._fd)
        if found.st_nlink == 0:
            raise GroundLostError("it was deleted")
        if found.st_size != self._tail[0]:
            raise GroundLostError("somebody else changed it")

    def is_at_its_place(self) -> bool:
        """Whether the file under this run's name is the one that this kernel writes to."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return False
        own = os.fstat(self._fd)
        return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)

    def sync(self) -> None:
        """Make everything written power-safe, the segment's name included. May run beside a ``close``."""
        upto = self._tail[0]
        fd = os.dup(self._fd)  # its own, so that the number cannot become another file's meanwhile
        try:
            if not self._named:
                self._sync_ground()
                self._named = True
            sync_file(fd)
        finally:
            os.close(fd)
        self.synced = max(self.synced, upto)

    def _sync_ground(self) -> None:
        # What the segment is worth nothing without: the salt, and the names of all folders on the way.
        with contextlib.suppress(FileNotFoundError):
            fd = os.open(self._place.salt, os.O_RDONLY)
            try:
                sync_file(fd)
            finally:
                os.close(fd)
        sync_folder(self._place.inbox)
        sync_folder(self._place.path)
        with contextlib.suppress(PermissionError):  # the folder above may be one that we can only pass through
            sync_folder(os.path.dirname(self._place.path))

    def sampled_lately(self, at: float) -> bool:
        """Whether the kernel's memory was taken in right before a wall time."""
        return 0 <= at - self.seen_at < _SAME_MOMENT_S

    def sample(self, rss: int, at: float) -> bool:
        """Take in the kernel's memory (bytes) at a wall time; whether that is news for the side file: small steps
        follow each other in milliseconds, and each begins with one."""
        news = abs(rss - self.rss) >= _SAME_MEMORY or not self.sampled_lately(at)
        if news:
            self.rss, self.seen_at = rss, at
        return news

    def tell(self) -> None:
        """Rewrite the side file."""
        if self._side_fd is None:
            self._side_fd = os.open(self._place.side(self.run), os.O_WRONLY | os.O_CREAT, 0o600)
        write_side(self._side_fd, Side(self.ident, self.rss, self.synced, self.seen_at))

    def close(self) -> None:
        """Give the lock back. Safe to call twice."""
        fd, self._fd = self._fd, -1
        side, self._side_fd = self._side_fd, None
        for one in (fd, side):
            if one is not None and one >= 0:
                os.close(one)

    def _frames(self, mark: Mark, body: bytes, *, fence: int, stamp: int, copies: int) -> tuple[bytes, bytes]:
        mac = self._seal.sign(body)
        link = self._tail[1]
        made = []
        for _ in range(copies):
            made.append(frames.encode(mark, body, fence=fence, stamp=stamp, chain=link, mac=mac, seed=self._seed))
            link = frames.link_of(made[-1])
        return b"".join(made), link

    def _write(self, raw: bytes, link: bytes) -> None:
        self._unsettled = (len(raw), link)
        try:
            write_all(self._fd, raw)
        except OSError:
            self._settle()
            raise
        self._tail = (self._tail[0] + len(raw), link)
        self._unsettled = None

    def _settle(self) -> None:
        assert self._unsettled is not None
        length, link = self._unsettled
        size = os.fstat(self._fd).st_size
        if size == self._tail[0] + length:
            self._tail = (size, link)  # it was written whole, and then an interrupt came
        elif self._tail[0] <= size < self._tail[0] + length:
            os.ftruncate(self._fd, self._tail[0])
        self._unsettled = None


def claim(place: Folder, *, floor: Callable[[], int], seal: Seal) -> Segment:
    """A segment under a run number that was never given out: larger than ``floor()`` and than all that are there.

    Kernels that race get different numbers. An ingest writes the highest number it has seen to where ``floor``
    reads it *before* it deletes a segment; so a number that is free because its segment was deleted since the
    folder was listed is below the floor by now, and is given back. Raises OSError.
    """
    for _ in range(_TRIES):
        run = max([floor(), *place.runs()]) + 1
        try:
            segment = claim_run(place, run, seal=seal)
        except FileExistsError:
            continue
        if floor() < run:
            return segment
        os.unlink(place.segment(run))
        segment.close()
    raise FileExistsError(f"no run number was free after {_TRIES} tries")


def claim_run(place: Folder, run: int, *, seal: Seal) -> Segment:
    """The segment of exactly this run. Raises FileExistsError where it is taken, OSError otherwise."""
    fd = os.open(place.segment(run), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
    try:
        liveness.take(fd)
        if os.fstat(fd).st_nlink == 0:
            raise FileExistsError("an ingest took it for a dead one before it was locked")
    except BaseException:
        os.close(fd)
        raise
    return Segment(place, run, fd, seal=seal)
