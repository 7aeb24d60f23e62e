"""The inbox is listed again exactly when a list could miss a segment."""

from __future__ import annotations

import os
from pathlib import Path

from keel_notebook.journal.folder import Folder
from keel_notebook.journal.listing import RunsListed


class Ticking:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at


def test_a_segment_made_in_the_tick_of_the_last_change_is_seen(tmp_path: Path) -> None:
    """Two changes of a folder within one tick leave the same time of change: the list before must not be kept."""
    place, clock = Folder(tmp_path), Ticking()
    inbox = Path(place.inbox)
    inbox.mkdir()
    listed = RunsListed(place, clock)
    for run in range(1, 20):
        (inbox / f"{run}.seg").touch()
        stamp = inbox.stat()
        assert run in listed.runs()
        clock.at += 0.01
        (inbox / f"{run}00.seg").touch()
        os.utime(inbox, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # as a coarse file system would have it
        assert run * 100 in listed.runs()
        clock.at += 1


def test_a_list_is_kept_once_its_tick_is_over_and_made_anew_after_a_change(tmp_path: Path) -> None:
    place, clock = Folder(tmp_path), Ticking()
    listed = RunsListed(place, clock)
    assert listed.runs() == []
    inbox = Path(place.inbox)
    inbox.mkdir()
    (inbox / "7.seg").touch()
    assert listed.runs() == [7]
    clock.at += 1
    kept = listed.runs()
    clock.at += 1
    assert listed.runs() is kept, "nothing changed: not listed again"
    (inbox / "8.seg").touch()
    assert listed.runs() == [7, 8]
    (inbox / "7.seg").unlink()
    assert listed.runs() == [8]
