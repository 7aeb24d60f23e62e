"""Which runs have a segment, without listing their folder at every step."""

from __future__ import annotations

import os
from typing import Final

from keel_notebook.core.ports import Clock
from keel_notebook.journal.folder import Folder

_TICK_S: Final = 0.1
"""Longer than any file system takes to give a folder another time of change."""


class RunsListed:
    """The runs of an inbox, listed again only once the folder may have changed.

    A folder's time of change moves in ticks: what is made in the same tick as the last change does not show in it.
    So a list is kept only if it was made at least a tick (by this machine's clock, not the file system's) after this
    time of change was first met. A list costs a step more than all its writes where other threads run.
    """

    def __init__(self, place: Folder, clock: Clock) -> None:
        self._place = place
        self._clock = clock
        self._stamp: tuple[int, ...] = ()
        self._met = 0.0
        self._kept: list[int] | None = None

    def runs(self) -> list[int]:
        """As ``Folder.runs``. Raises OSError."""
        now = self._clock.monotonic()
        stamp = stamp_of(self._place.inbox)
        if stamp != self._stamp:
            self._stamp, self._met, self._kept = stamp, now, None
        if self._kept is not None:
            return self._kept
        found = self._place.runs()
        if stamp and now - self._met >= _TICK_S:
            self._kept = found
        return found


def stamp_of(path: str) -> tuple[int, ...]:
    """What changes when a file is replaced or a folder's names change; empty where nothing is there. Raises OSError."""
    try:
        seen = os.stat(path)
    except FileNotFoundError:
        return ()
    return (seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_size)
