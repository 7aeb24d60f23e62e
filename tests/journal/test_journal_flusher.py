"""Which writing is in a hurry to be power-safe (DESIGN 7, Durability)."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from keel_notebook.core.done import REPLAYED, StepDone, decision_entry
from keel_notebook.core.model import Status
from keel_notebook.journal import disk, flusher
from keel_notebook.journal.flusher import Duties, Flusher
from tests.journal.journals import FLOW, entry, opened, wait_for


class _Clock:
    def now(self) -> float:
        return 1e9

    def monotonic(self) -> float:
        return 0.0


def _flusher(synced: threading.Semaphore) -> Flusher:
    duties = Duties(synced.release, lambda: False, lambda _: None, lambda error: None)
    return Flusher(duties, clock=_Clock(), folder="", rest_s=None)


def test_what_is_not_in_a_hurry_goes_with_the_group_of_what_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher, "LAZY_S", 3600.0)
    synced = threading.Semaphore(0)
    flushing = _flusher(synced)
    for _ in range(100):
        flushing.touch(hurry=False)
    assert not synced.acquire(blocking=False)
    flushing.touch()
    assert synced.acquire(timeout=20)
    assert flushing.stop(20)
    assert not synced.acquire(blocking=False), "one group, whatever was in it"


def test_what_is_not_in_a_hurry_becomes_safe_by_itself() -> None:
    synced = threading.Semaphore(0)
    flushing = _flusher(synced)
    flushing.touch(hurry=False)
    assert synced.acquire(timeout=20)
    assert flushing.stop(20)


def test_a_note_of_a_replay_waits_for_the_next_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher, "LAZY_S", 3600.0)
    journal = opened(tmp_path / ".keel")
    done = StepDone("fit", REPLAYED)
    journal.append(decision_entry(done, flow=FLOW, run=journal.run, seq=journal.next_seq(), at=1.0))
    assert journal.unsynced
    journal.append(entry(journal, status=Status.OK))
    wait_for(lambda: not journal.unsynced)
    journal.close(clean=True)


def test_that_a_step_begins_wakes_nobody_while_the_thread_looks_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flusher, "LAZY_S", 3600.0)
    monkeypatch.setattr(flusher, "ACTIVE_S", 3600.0)
    journal = opened(tmp_path / ".keel")
    journal.append(entry(journal, status=Status.OK))
    wait_for(lambda: not journal.unsynced)
    thread = journal._flusher
    wait_for(lambda: thread._looks_at > thread._clock.monotonic())
    woken = []
    monkeypatch.setattr(thread, "_wake", type("Wake", (), {"put": woken.append, "get": thread._wake.get})())
    for number in range(20):
        journal.append(entry(journal, f"s{number}", status=Status.RUNNING))
    assert woken == []
    assert journal.unsynced
    monkeypatch.undo()
    journal.append(entry(journal, status=Status.OK))
    wait_for(lambda: not journal.unsynced)
    journal.close(clean=True)


def test_steps_that_follow_each_other_at_once_ask_for_the_memory_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(disk, "resident_bytes", lambda: (asked.append(1), 1 << 20)[1])
    clock = _Clock()
    journal = opened(tmp_path / ".keel", clock=clock)
    for number in range(20):
        begun = entry(journal, f"s{number}", status=Status.RUNNING)
        journal.append(begun)
        journal.append(replace(begun, status=Status.OK))
    assert len(asked) == 1
    journal.close(clean=True)
