"""Jobs on disk: one winner each, free at once after a death, sealed, and gone when they ended (K37, O17, Z18)."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from keel_notebook.core.jobs import Job
from keel_notebook.errors import DamagedError, DiskFullError
from keel_notebook.journal import liveness
from keel_notebook.journal.jobs import Held, Jobs
from tests.journal.journals import KeySeal, forked

JOB = Job(id="a" * 24, notebook="/n/a.ipynb", output="/n/a.run.ipynb", key="", flow="", parameters=(("n", 3),))


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path / ".keel", KeySeal())


def file_of(folder: Path) -> Path:
    (path,) = (folder / ".keel/jobs").iterdir()
    return path


def begun(jobs: Jobs) -> Held:
    held = jobs.begin(JOB)
    assert held is not None
    return held


def test_a_job_that_is_held_cannot_be_taken_and_one_that_was_left_by_one_only(jobs: Jobs) -> None:
    held = begun(jobs)
    assert jobs.claim(JOB.id) is None
    assert jobs.begin(JOB) is None, "the same command again: the job stays with the first"
    assert jobs.listed() == [(JOB, True)]
    held.leave()
    assert jobs.listed() == [(JOB, False)]
    won: list[Held | None] = []
    rivals = [threading.Thread(target=lambda: won.append(jobs.claim(JOB.id))) for _ in range(8)]
    for rival in rivals:
        rival.start()
    for rival in rivals:
        rival.join()
    assert sum(one is not None for one in won) == 1


def test_z18_a_job_is_free_at_once_when_its_process_is_killed(jobs: Jobs) -> None:
    def dies() -> None:
        begun(jobs)
        os.kill(os.getpid(), 9)

    forked(dies)
    (found,) = jobs.listed()
    assert found == (JOB, False)
    held = jobs.claim(JOB.id)
    assert held is not None
    held.update(replace(JOB, tries=1, mark="1.2"))
    held.leave()
    assert jobs.listed() == [(replace(JOB, tries=1, mark="1.2"), False)]


def test_who_waited_for_a_job_that_ended_meanwhile_does_not_have_it(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = begun(jobs)
    take = liveness.take_now

    def ends_first(fd: int) -> bool | None:
        held.done()  # between the other's open and its lock
        monkeypatch.setattr(liveness, "take_now", take)
        return take(fd)

    monkeypatch.setattr(liveness, "take_now", ends_first)
    assert jobs.claim(JOB.id) is None
    assert jobs.listed() == []
    assert os.listdir(tmp_path / ".keel/jobs") == []


def test_a_job_that_another_key_sealed_or_that_is_torn_is_never_gone_on_with(jobs: Jobs, tmp_path: Path) -> None:
    begun(jobs).leave()
    path = file_of(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    stranger = Jobs(tmp_path / ".keel", KeySeal(b"theirs"))
    assert stranger.listed() == []
    with pytest.raises(DamagedError, match="not what your key sealed"):
        stranger.claim(JOB.id)
    raw = path.read_bytes()
    for torn in (raw[:-9], b"", raw.replace(b"a.ipynb", b"b.ipynb")):
        path.write_bytes(torn)
        assert jobs.listed() == []
        with pytest.raises(DamagedError):
            jobs.claim(JOB.id)
    assert jobs.begin(JOB) is not None, "the command itself begins it anew"


def test_a_job_that_cannot_be_written_is_no_job(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(DiskFullError):
        jobs.begin(JOB)
    monkeypatch.undo()
    assert jobs.listed() == []
    assert jobs.begin(JOB) is not None


def test_a_drive_without_locks_has_no_jobs_and_stops_no_run(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(jobs).leave()
    monkeypatch.setattr(liveness, "take_now", lambda fd: None)
    monkeypatch.setattr(liveness, "held", lambda fd: None)
    assert jobs.begin(JOB) is None
    assert jobs.listed() == [(JOB, True)], "nobody goes on by itself where nobody can tell who works"
