"""Disks that are full, folders that are read-only or gone, drives without locks, and files that are damaged.

A recording error never replaces the user's result, earlier records stay readable, and a lost record is named.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keel_notebook.errors import DiskFullError, JournalUnreachableError
from keel_notebook.journal import spawn, troubles
from keel_notebook.journal.reader import read_journal
from tests.journal.journals import (
    FLOW,
    KeySeal,
    drop,
    entry,
    in_the_record_file,
    ingested,
    opened,
    script,
    with_object,
)


def steps(journal: Any) -> list[str]:
    return [one.step for one in journal.records(FLOW).entries]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 5 MB, where mounting one is allowed."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=5m", "keel-test", str(place)], check=False)
    yield place
    if mounted.returncode == 0:
        subprocess.run(["umount", "-l", str(place)], check=True)


def is_small(place: Path) -> bool:
    seen = os.statvfs(place)
    return seen.f_blocks * seen.f_frsize < 10_000_000


FULL = """
    import resource
    if sys.argv[2] == 'limited':     # mounting is not allowed here: a file may not grow beyond this
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    journal = opened(folder)
    journal.append(with_object(journal, b'small' * 5000, step='first'))
    try:
        journal.put([bytes(20_000_000)])
    except DiskFullError as error:
        assert journal.problem is error and 'E053' in str(error)
    else:
        raise SystemExit('20 MB fitted')
    assert not [name for name in os.listdir(folder / 'objects') if name.startswith('.')]
    journal.append(entry(journal, 'second'))
    assert journal.problem is None
    refused = 0
    for n in range(200):
        try:
            journal.append(entry(journal, f'filler {n}', source='x' * 100_000))
        except DiskFullError:
            refused += 1
            try:
                journal.append(entry(journal, 'half', source='x' * 99_000), synced=True)
            except DiskFullError:
                pass
    assert refused > 100
    steps = [one.step for one in journal.records('flow-a').entries]
    assert steps[:2] == ['first', 'second']
    assert bytes(journal.read(journal.records('flow-a').entries[0].payload.head)) == b'small' * 5000
    print(len(steps))
    os._exit(0)
"""


def test_c85_on_a_full_disk_earlier_records_stay_readable_and_the_next_append_is_sound(disk: Path) -> None:
    folder = disk / ".keel"
    how = "mounted" if is_small(disk) else "limited"
    held = int(script(FULL, folder, how).stdout)
    found = steps(read_journal(folder, seal=KeySeal()))
    assert len(found) == held
    assert found[:2] == ["first", "second"]
    assert troubles(folder) == [], "a full disk is no damage"
    if how == "mounted":
        with pytest.raises(JournalUnreachableError, match="disk is full"):
            spawn.ingest_now(folder)
        assert steps(read_journal(folder, seal=KeySeal())) == found
        subprocess.run(["mount", "-o", "remount,size=60m", str(disk)], check=True)
    again = opened(folder)
    again.append(with_object(again, b"room again" * 3000, step="again"), synced=True)
    assert steps(again) == [*found, "again"]
    spawn.ingest_now(folder)
    assert troubles(folder) == []
    assert in_the_record_file(folder) == {one.entry for one in again.records(FLOW).entries}
    drop(again)


def test_a_kernel_that_starts_on_a_full_disk_records_once_there_is_room(disk: Path) -> None:
    if not is_small(disk):
        pytest.skip("needs a file system of its own; the full disk itself is tested above without one")
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    clock = Steps()
    journal = opened(disk / ".keel", clock=clock)
    assert isinstance(journal.problem, DiskFullError)
    assert journal.run == 0
    assert len(journal.salt) == 32
    with pytest.raises(DiskFullError):
        journal.append(entry(journal))
    assert steps(journal) == []
    filler.unlink()
    clock.at += 10
    late = entry(journal)
    assert journal.run == late.run == 1
    journal.append(late)
    assert journal.problem is None
    assert steps(journal) == ["fit"]
    drop(journal)


class Steps:
    """A clock that stands until it is moved."""

    at = 1000.0

    def now(self) -> float:
        return self.at

    monotonic = now


READ_ONLY = """
    if sys.argv[2] == 'unprivileged':   # mounting is not allowed here
        os.setuid(65534) if os.getuid() == 0 else None
    journal = opened(folder)
    assert isinstance(journal.problem, JournalUnreachableError) and 'E054' in str(journal.problem)
    records = journal.records('flow-a')
    assert [one.step for one in records.entries] == ['recorded', 'waiting'], records.entries
    assert records.runs[1].end == RunEnd.DIED
    assert bytes(journal.map(records.entries[0].payload.head.object)) == b'x' * 50_000
    for refused in (lambda: journal.append(entry(journal)), lambda: journal.put([b'x'])):
        try:
            refused()
        except JournalUnreachableError:
            pass
        else:
            raise SystemExit('it was written')
    assert journal.flush() and not journal.unsynced
    journal.request_shutdown()
    reader = read_journal(folder, seal=KeySeal())
    assert [one.step for one in reader.history('flow-a')] == ['recorded', 'waiting']
    assert [flow.id for flow in reader.flows()] == ['flow-a']
    from keel_notebook.journal import spawn, flows
    assert spawn.query(folder, 'SELECT step FROM steps ORDER BY stamp')[1] == [('recorded',), ('waiting',)]
    assert flows.find_flow(folder, notebook=Path('/n/a.ipynb')).id
    journal.close(clean=True)
"""


def test_a_folder_that_can_only_be_read_is_read_in_full_and_says_why_nothing_is_recorded(
    disk: Path, tmp_path: Path
) -> None:
    place = disk if is_small(disk) else tmp_path
    folder = place / ".keel"
    journal = opened(folder)
    journal.append(with_object(journal, b"x" * 50_000, step="recorded"))
    assert journal.flush()
    ingested(folder)
    journal.append(entry(journal, "waiting"))
    drop(journal)
    if is_small(disk):
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        script(READ_ONLY, folder, "mounted")
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    else:
        for where, _, names in os.walk(folder):
            for name in names:
                os.chmod(os.path.join(where, name), 0o444)
            os.chmod(where, 0o555)
        script(READ_ONLY, folder, "unprivileged")
    assert troubles(folder) == []


def test_a_folder_that_cannot_be_made_is_a_problem_and_no_exception(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    journal = opened(tmp_path / "file" / ".keel")
    assert isinstance(journal.problem, JournalUnreachableError)
    with pytest.raises(JournalUnreachableError):
        journal.append(entry(journal))
    with pytest.raises(JournalUnreachableError):
        journal.records(FLOW)
    journal.close(clean=True)


def test_a_folder_deleted_under_a_live_kernel_is_made_anew_and_its_loss_is_told(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    journal = opened(folder)
    salt = journal.salt
    journal.append(entry(journal, "lost"))
    payload = with_object(journal, b"p" * 50_000, step="its object is gone")
    assert journal.flush()
    shutil.rmtree(folder)
    with pytest.raises(JournalUnreachableError, match="deleted"):
        journal.append(payload)
    journal.append(with_object(journal, b"q" * 50_000, step="kept"), synced=True)
    assert journal.problem is None
    assert journal.salt == salt
    assert steps(journal) == ["kept"]
    assert steps(opened(folder)) == ["kept"]
    assert "gone" in troubles(folder)[0]
    assert opened(folder).salt == salt


def test_two_kernels_whose_folder_was_deleted_never_share_a_run_number(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    first, second = opened(folder), opened(folder)
    for journal in (first, second):
        journal.append(entry(journal))
        assert journal.flush()
    shutil.rmtree(folder)
    third = opened(folder)
    assert third.run == 1
    third.append(entry(third, "third"))
    stale = entry(first, "first")
    with pytest.raises(JournalUnreachableError):
        first.append(stale)  # its salt is not the folder's any more: nothing that it knows fits
    second_run = second.run
    with pytest.raises(JournalUnreachableError):
        second.append(entry(second, "second"))
    assert second_run == 2
    assert steps(third) == ["third"]


def test_a_segment_that_somebody_changed_under_a_live_kernel_is_set_aside(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    journal = opened(folder)
    journal.append(entry(journal, "before"))
    ingested(folder)
    os.truncate(folder / "inbox" / "1.seg", 100)
    journal.append(entry(journal, "after"))
    assert steps(journal) == ["before", "after"]
    assert steps(opened(folder)) == ["before", "after"]
    assert "run 1" in troubles(folder)[0]
    assert (folder / "damaged" / "1-1.seg").exists()
    ingested(folder)
    assert len(in_the_record_file(folder)) == 2


def test_an_ingest_that_goes_wrong_leaves_a_note_and_the_next_one_takes_it_away(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    journal = opened(folder)
    journal.append(entry(journal))
    (folder / "heads").write_text("in the way")
    child = spawn.start_ingest(str(folder))
    assert child.wait(60) != spawn.Exit.DONE
    assert "nothing is lost" in troubles(folder)[0]
    (folder / "heads").unlink()
    spawn.ingest_now(folder)
    assert troubles(folder) == []


def test_reading_takes_no_longer_than_it_may(tmp_path: Path) -> None:
    import fcntl

    folder = tmp_path / ".keel"
    journal = opened(folder)
    journal.append(entry(journal))
    with (folder / "journal.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(JournalUnreachableError, match="another process"):
            spawn.ingest_now(folder, 0.3)
    spawn.ingest_now(folder)


def test_an_interpreter_that_cannot_be_started_is_no_exception_in_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    journal = opened(tmp_path / ".keel", rest_s=0.01)
    journal.append(entry(journal))
    assert journal.flush()
    with pytest.raises(JournalUnreachableError, match="could not be started"):
        spawn.ingest_now(tmp_path / ".keel")
    journal.close(clean=True)
    monkeypatch.undo()
    assert steps(read_journal(tmp_path / ".keel", seal=KeySeal())) == ["fit"]
