"""Several kernels on one folder: run numbers, who lives, and that nobody misses what another one wrote."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from keel_notebook.core.model import Status
from keel_notebook.core.ports import RunEnd
from keel_notebook.journal import troubles
from keel_notebook.journal.flowlog import FlowLog
from keel_notebook.journal.reader import read_journal
from tests.journal.journals import (
    FLOW,
    OTHER,
    KeySeal,
    RealClock,
    drained,
    drop,
    entry,
    ingested,
    killed_child,
    opened,
    with_object,
)


def steps(journal: Any) -> list[str]:
    return [one.step for one in journal.records(FLOW).entries]


def test_c79_eight_kernels_at_once_record_everything_under_numbers_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"

    def life(number: int) -> Any:
        def live(fd: int) -> None:
            journal = opened(folder)
            os.write(fd, f"{journal.run}\n".encode())
            for n in range(100):
                journal.append(entry(journal, f"{number}/{n}"))
                journal.records(FLOW)
            journal.close(clean=True)

        return live

    children = [killed_child(life(number)) for number in range(8)]
    runs = []
    readings = [child.__enter__()[1] for child in children]
    ingested(folder)
    for reading in readings:
        runs.append(int(drained(reading)))
    for child in children:
        child.__exit__(None, None, None)
    assert len(set(runs)) == 8
    found = steps(read_journal(folder, seal=KeySeal()))
    assert sorted(found) == sorted(f"{number}/{n}" for number in range(8) for n in range(100))
    for number in range(8):
        assert [step for step in found if step.startswith(f"{number}/")] == [f"{number}/{n}" for n in range(100)]


def test_c79_kernels_that_come_and_go_beside_an_ingest_hide_nothing_from_one_that_stays(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    stays = opened(folder)
    expected: list[str] = []
    for n in range(6):
        comes = opened(folder)
        for part in "ab":
            comes.append(entry(comes, f"{n}{part}"))
            expected.append(f"{n}{part}")
            if n % 3 == 0:
                assert steps(stays) == expected
        comes.close(clean=True)
        if n % 2:
            ingested(folder)  # the segment is gone before the one that stays has looked
        assert steps(stays) == expected
        assert {run: seen.end for run, seen in stays.records(FLOW).runs.items()} == dict.fromkeys(
            range(2, n + 3), RunEnd.CLEAN
        )
    mine = entry(stays, "mine")
    stays.append(mine)
    assert steps(stays) == steps(read_journal(folder, seal=KeySeal())) == [*expected, "mine"]


def test_a_run_number_is_never_given_out_twice_whatever_was_ingested_or_lost(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    seen = []
    for loss in ("nothing", "heads", "inbox", "nothing"):
        for _ in range(2):
            journal = opened(folder)
            seen.append(journal.run)
            journal.append(entry(journal))
            drop(journal)
        ingested(folder)
        if loss != "nothing":
            for name in os.listdir(folder / loss):
                os.unlink(folder / loss / name)
    assert seen == sorted(set(seen))


def test_k33_a_wall_clock_that_jumps_back_does_not_change_the_order(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"

    class Jumping(RealClock):
        at = 2_000_000_000.0

        def now(self) -> float:
            return self.at

    clock = Jumping()
    first = opened(folder, clock=clock)
    first.append(entry(first, "a"))
    second = opened(folder, clock=clock)
    assert steps(second) == ["a"]
    clock.at = 1_000_000_000.0
    second.append(entry(second, "b"))
    assert steps(first) == ["a", "b"]
    first.append(entry(first, "c"))
    assert steps(first) == steps(second) == steps(opened(folder)) == ["a", "b", "c"]


def test_an_entry_with_a_payload_is_seen_while_its_kernel_lives_and_vouched_once_it_is_safe(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    writer, watcher = opened(folder), opened(folder)
    assert steps(watcher) == []
    content = os.urandom(2_000_000)
    one = with_object(writer, content)
    writer.append(one)
    (seen,) = watcher.records(FLOW).entries
    assert seen == one
    assert one.payload is not None
    digest = one.payload.head.object
    assert digest is not None
    assert writer.flush()
    watcher.records(FLOW)
    assert watcher._vouched(digest) > 0
    assert bytes(watcher.map(digest)) == content
    ingested(folder)
    assert opened(folder)._vouched(digest) == 0  # of a flow that it did not look at
    later = opened(folder)
    later.records(FLOW)
    assert later._vouched(digest) > 0


def test_what_an_ingest_took_in_unsafe_is_vouched_for_by_a_later_frame(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    writer = opened(folder)
    writer._safety.sync()
    writer._flusher.stop(5)
    one = with_object(writer, b"o" * 100_000)
    writer.append(one)
    ingested(folder)
    early = opened(folder)
    early.records(FLOW)
    assert one.payload is not None
    assert one.payload.head.object is not None
    assert early._vouched(one.payload.head.object) == 0
    writer._safety.sync()
    early.records(FLOW)
    assert early._vouched(one.payload.head.object) > 0
    late = opened(folder)
    late.records(FLOW)
    assert late._vouched(one.payload.head.object) > 0


def test_flows_in_one_folder_have_heads_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    journal = opened(folder)
    odd = type(FLOW)("../odd name\n")
    for flow in (FLOW, OTHER, odd):
        journal.append(entry(journal, f"of {flow}", flow=flow))
    drop(journal)
    ingested(folder)
    reader = read_journal(folder, seal=KeySeal())
    for flow in (FLOW, OTHER, odd):
        assert [one.step for one in reader.records(flow).entries] == [f"of {flow}"]
    assert len([name for name in os.listdir(folder / "heads") if not name.startswith(".")]) == 3
    assert {seen.id for seen in reader.flows()} == {FLOW, OTHER, odd}


def test_trust_adds_a_seal_and_the_older_one_stays_valid(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    theirs = opened(folder, seal=KeySeal(b"theirs"))
    theirs.append(entry(theirs, "a"))
    theirs.append(entry(theirs, "b"))
    drop(theirs)
    ingested(folder)
    for when in ("at once", "after an ingest"):
        mine = opened(folder)
        if when == "at once":
            assert len(mine.records(FLOW).untrusted) == 2
            assert mine.trust(FLOW) == 2
            assert mine.trust(FLOW) == 0
        assert mine.records(FLOW).untrusted == frozenset()
        assert read_journal(folder, seal=KeySeal(b"theirs")).records(FLOW).untrusted == frozenset()
        assert len(read_journal(folder, seal=KeySeal(b"of a stranger")).records(FLOW).untrusted) == 2
        drop(mine)
        ingested(folder)
    assert troubles(folder) == []


def test_a_dead_runs_running_entry_and_its_fence_are_kept_by_the_head(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    journal = opened(folder)
    journal.fence = 5
    running = entry(journal, status=Status.RUNNING, fence=5)
    journal.append(running)
    drop(journal)
    ingested(folder)
    later = opened(folder)
    records = later.records(FLOW)
    assert list(records.entries) == [running]
    assert records.runs[1].end == RunEnd.DIED


def test_records_may_be_asked_while_the_flush_thread_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ".keel"
    journal = opened(folder)
    syncing, go_on = threading.Event(), threading.Event()
    real = os.fdatasync

    def slow(fd: int) -> None:
        syncing.set()
        assert go_on.wait(20)
        real(fd)

    monkeypatch.setattr(os, "fdatasync", slow)
    journal.append(with_object(journal, b"x" * 50_000))
    assert syncing.wait(20)
    assert journal.unsynced
    assert not journal.flush(0.05)
    journal.append(entry(journal, "meanwhile"))
    assert steps(journal) == ["fit", "meanwhile"]
    go_on.set()
    assert journal.flush(20)
    assert not journal.unsynced
    journal.close(clean=True)


@pytest.mark.parametrize("where", ["while attaching", "while keeping up", "while noting its own entry"])
def test_an_interrupt_while_records_are_read_leaves_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    folder = tmp_path / ".keel"
    other, mine = opened(folder), opened(folder)
    other.append(entry(other, "before"))
    if where != "while attaching":
        assert steps(mine) == ["before"]
    other.append(entry(other, "after"))
    cut = FlowLog.add_own if where == "while noting its own entry" else FlowLog.add

    def interrupted(*args: Any) -> None:
        monkeypatch.setattr(FlowLog, cut.__name__, cut)
        raise KeyboardInterrupt

    monkeypatch.setattr(FlowLog, cut.__name__, interrupted)
    with pytest.raises(KeyboardInterrupt):
        mine.append(entry(mine, "own")) if where == "while noting its own entry" else mine.records(FLOW)
    assert sorted(steps(mine)) == sorted(steps(read_journal(folder, seal=KeySeal())))
    assert {"before", "after"} <= set(steps(mine))
