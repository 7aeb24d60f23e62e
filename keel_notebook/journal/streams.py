"""Writing much content: through the system's pages, or straight to the disk, whichever is faster just now.

Through pages is a copy in memory, and where the system has to find fresh pages for it a slow one (measured: 8 GB/s into
pages that were used before, 0.4 GB/s into new ones of a virtual machine). Straight to the disk (``O_DIRECT``) costs no
processor time and no pages, but waits for the disk. Neither is always better, so both are timed, piece by piece.
"""

from __future__ import annotations

import errno
import mmap
import os
import threading
from collections.abc import Callable, Iterator
from typing import Final

_PIECE: Final = 2 << 20
_ALIGNED: Final = max(4096, mmap.PAGESIZE)
"""No page holds both what went straight to the disk and what went through the page cache."""
_FIRST_LOOK: Final = 16
_DIRECT: Final = getattr(os, "O_DIRECT", 0)

Monotonic = Callable[[], float]


class Ways:
    """How long a byte took last on either way. Every now and then, and ever more seldom, the slower one is tried."""

    def __init__(self) -> None:
        self.able = bool(_DIRECT)
        """Whether files can be written straight to the disk here, as far as is known."""
        self._took: dict[bool, float] = {}
        self._patience = self._left = _FIRST_LOOK

    def straight(self) -> bool:
        """Whether the next piece goes straight to the disk."""
        for way in (True, False):
            if way not in self._took:
                return way
        faster = self._took[True] <= self._took[False]
        self._left -= 1
        if self._left > 0:
            return faster
        self._patience *= 2
        self._left = self._patience
        return not faster

    def note(self, straight: bool, seconds: float, size: int) -> None:
        """What a piece took."""
        now = seconds / size
        self._took[straight] = (self._took.get(straight, now) + now) / 2


class Stream:
    """Writes one file. ``path`` is the file behind ``fd``, which is empty and has its full size reserved."""

    def __init__(self, fd: int, path: str, ways: Ways, monotonic: Monotonic) -> None:
        self._fd = fd
        self._path = path
        self._ways = ways
        self._monotonic = monotonic
        self._failed: list[BaseException] = []
        self._stop = False

    def write(self, views: list[memoryview]) -> None:
        """Write all bytes, one view behind the other. Raises OSError. Nobody reads the views any more afterwards."""
        pieces = _pieces(views)
        lock = threading.Lock()

        def take() -> tuple[int, memoryview] | None:
            with lock:
                return None if self._stop else next(pieces, None)

        direct = self._open()
        if direct is None:
            self._work(take, None)
            return
        beside = threading.Thread(target=self._beside, args=(take, direct), name="keel-write")
        try:
            beside.start()
            try:
                self._work(take, direct)
            finally:
                self._stop = True  # there is nothing left, or nobody waits for it any more
                joined(beside)
        finally:
            os.close(direct)
        if self._failed:
            raise self._failed[0]

    def _open(self) -> int | None:
        if not self._ways.able:
            return None
        try:
            return os.open(self._path, os.O_WRONLY | _DIRECT)
        except OSError:
            self._ways.able = False  # a file system that knows only pages
            return None

    def _beside(self, take: Callable[[], tuple[int, memoryview] | None], direct: int) -> None:
        try:
            self._work(take, direct)
        except BaseException as error:  # noqa: BLE001 - raised again by ``write``
            self._stop = True
            self._failed.append(error)

    def _work(self, take: Callable[[], tuple[int, memoryview] | None], direct: int | None) -> None:
        # Two at a time: while the disk has one piece, the other is copied to where the disk can fetch it.
        room = mmap.mmap(-1, _PIECE) if direct is not None else None
        while (found := take()) is not None:
            offset, piece = found
            fits = len(piece) % _ALIGNED == 0 == offset % _ALIGNED
            straight = fits and direct is not None and self._ways.able and self._ways.straight()
            began = self._monotonic()
            done = 0
            if straight and direct is not None and room is not None:
                done = self._straight(direct, room, piece, offset)
            while done < len(piece):
                done += os.pwrite(self._fd, piece[done:], offset + done)
            self._ways.note(straight, self._monotonic() - began, len(piece))

    def _straight(self, direct: int, room: mmap.mmap, piece: memoryview, offset: int) -> int:
        size = len(piece)
        room[:size] = piece
        try:
            with memoryview(room) as view:
                return os.pwrite(direct, view[:size], offset)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._ways.able = False  # it wants another alignment
            return 0


def joined(thread: threading.Thread) -> None:
    """Wait for a thread that reads the caller's memory: to its end, also where the person interrupts the waiting."""
    interrupt: BaseException | None = None
    while thread.is_alive():
        try:
            thread.join()
        except BaseException as error:  # noqa: BLE001 - raised again as soon as nobody reads any more
            interrupt = error
    if interrupt is not None:
        raise interrupt


def _pieces(views: list[memoryview]) -> Iterator[tuple[int, memoryview]]:
    offset = 0
    for view in views:
        for begin in range(0, len(view), _PIECE):
            piece = view[begin : begin + _PIECE]
            yield offset, piece
            offset += len(piece)
