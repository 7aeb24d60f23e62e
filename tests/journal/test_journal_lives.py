"""Who lives, how a run ended, and whose a segment is: with locks, without them, and in every race for one."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path
from typing import Any

import pytest

from keel_notebook.core.ports import RunEnd, RunStart
from keel_notebook.journal import ingest, liveness, wire
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.frames import Mark
from keel_notebook.journal.liveness import Life
from keel_notebook.journal.reader import read_journal
from keel_notebook.journal.segment import Segment
from keel_notebook.journal.writer import Writer
from tests.journal.journals import FLOW, KeySeal, drop, entry, ingested, killed_child, opened


def steps(journal: Any) -> list[str]:
    return [one.step for one in journal.records(FLOW).entries]


def start(**changes: Any) -> RunStart:
    own = {"run": 1, "host": liveness.host(), "pid": os.getpid(), "boot": liveness.boot()}
    return RunStart(**{**own, "started": liveness.born(os.getpid()), **changes})


@pytest.mark.parametrize(
    ("changes", "locked", "life"),
    [
        ({}, True, Life.ALIVE),
        ({}, False, Life.GONE),
        ({}, None, Life.ALIVE),
        ({"started": 1.0}, None, Life.GONE),
        ({"started": 1.0}, True, Life.GONE),
        ({"pid": 2**22 - 1}, None, Life.GONE),
        ({"host": "elsewhere"}, True, Life.ALIVE),
        ({"host": "elsewhere"}, False, Life.GONE),
        ({"host": "elsewhere"}, None, Life.UNKNOWN),
        ({"boot": "an earlier one"}, None, Life.UNKNOWN),
    ],
)
def test_c84_who_lives_with_and_without_locks(changes: dict[str, Any], locked: bool | None, life: Life) -> None:
    assert liveness.life(start(**changes), liveness.pid_space(), locked) is life


@pytest.mark.parametrize(
    ("changes", "asked", "ended", "end"),
    [
        ({}, False, False, RunEnd.DIED),
        ({}, True, False, RunEnd.ASKED),
        ({}, True, True, RunEnd.CLEAN),
        ({"boot": "an earlier one"}, False, False, RunEnd.VANISHED),
        ({"host": "elsewhere"}, False, False, RunEnd.VANISHED),
        ({"boot": "an earlier one"}, False, True, RunEnd.CLEAN),
    ],
)
def test_how_a_run_ended_is_told_apart(changes: dict[str, Any], asked: bool, ended: bool, end: str) -> None:
    assert liveness.end_of(start(**changes), Life.GONE, asked=asked, ended=ended) == end
    assert liveness.end_of(start(**changes), Life.ALIVE, asked=asked, ended=ended) == RunEnd.OPEN


def test_c84_a_live_kernel_on_a_drive_without_locks_keeps_its_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(fd: int, how: int) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    folder = tmp_path / ".keel"
    first, second = opened(folder), opened(folder)
    first.append(entry(first, "a"))
    second.append(entry(second, "b"))
    ingested(folder)
    assert Folder(folder).runs() == [1, 2]
    assert {seen.end for seen in second.records(FLOW).runs.values()} == {RunEnd.OPEN}
    first.append(entry(first, "c"))
    assert steps(second) == ["a", "b", "c"]
    assert not (folder / "journal.lock.held").exists()

    def dies(fd: int) -> None:
        third = opened(folder)
        third.append(entry(third, "d"))
        os.write(fd, b"x")
        time.sleep(60)

    with killed_child(dies) as (_, reading):
        os.read(reading, 1)
        assert second.records(FLOW).runs[3].end == RunEnd.OPEN
    assert second.records(FLOW).runs[3].end == RunEnd.DIED


def test_a_number_whose_segment_was_deleted_while_it_was_claimed_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel lists the inbox, then runs 2 and 3 come and go and are ingested: number 2 is free, and was used."""
    folder = tmp_path / ".keel"
    first = opened(folder)
    first.append(entry(first))
    drop(first)
    runs, highest = Folder.runs, Writer._highest_run

    def listed_too_early(self: Folder) -> list[int]:
        monkeypatch.setattr(Folder, "runs", runs)
        found = runs(self)
        for _ in range(2):
            comes = opened(folder)
            comes.append(entry(comes, f"run {comes.run}"))
            drop(comes)
        ingested(folder)
        return found

    early = [True]

    def read_too_early(self: Writer) -> int:
        if not early:
            return highest(self)
        early.clear()
        monkeypatch.setattr(Folder, "runs", listed_too_early)
        return 0

    monkeypatch.setattr(Writer, "_highest_run", read_too_early)
    late = opened(folder)
    assert late.run == 4
    assert steps(late) == ["fit", "run 2", "run 3"]


def test_a_segment_whose_kernel_locks_it_while_an_ingest_takes_it_for_a_dead_one_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between creating its segment and locking it, a kernel looks dead. What it writes then must not be lost."""
    folder = tmp_path / ".keel"
    first = opened(folder)
    first.append(entry(first, "first"))
    place = Folder(folder)
    fd = os.open(place.segment(2), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND)
    slow = Segment(place, 2, fd, seal=KeySeal())
    third = opened(folder)
    third.append(entry(third, "third"))
    publish = ingest.publish_heads

    def then_it_locks(*args: Any, **how: Any) -> None:
        publish(*args, **how)
        liveness.take(fd)
        slow.begin(start(run=2))
        slow.append(Mark.ENTRY, wire.pack_entry(entry(third, "slow")), fence=0, stamp=2**60)

    monkeypatch.setattr(ingest, "publish_heads", then_it_locks)
    ingest.ingest(place, wait_s=5)
    assert steps(third) == ["first", "third", "slow"]
    assert steps(read_journal(folder, seal=KeySeal())) == ["first", "third", "slow"]
    slow.close()


def test_a_segment_that_was_deleted_before_its_kernel_locked_it_is_claimed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".keel"
    opened(folder)
    take = liveness.take

    def late(fd: int) -> bool | None:
        monkeypatch.setattr(liveness, "take", take)
        os.unlink(Folder(folder).segment(2))
        return take(fd)

    monkeypatch.setattr(liveness, "take", late)
    journal = opened(folder)
    journal.append(entry(journal))
    assert steps(read_journal(folder, seal=KeySeal())) == ["fit"]
