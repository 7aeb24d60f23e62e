"""The lease that guarded work holds, with real processes (K32, K34, K36, O12-O14, O19)."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from keel_notebook.engine.guard import Guard
from keel_notebook.engine.lease import TTL_S, Holder, Lease
from keel_notebook.errors import LeaseError
from tests.support.kernels import ManualClock

ROOT = str(Path(__file__).resolve().parents[2])


class Journal:
    fence = 0


def guard(folder, clock, pid=1, beat_s=0.01):
    lease = Lease(folder, "f", holder=Holder("h", pid, "b"), clock=clock)
    return Guard(lease, journal=Journal(), beat_s=beat_s), lease


def wait_until(ready, seconds=30.0):
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def test_k32_o13_a_thread_renews_the_lease_while_the_cell_blocks_and_never_changes_the_fence(tmp_path):
    clock = ManualClock()
    held, lease = guard(tmp_path, clock)
    with held.hold() as fence:
        before = lease.seen()
        clock.at += 10
        wait_until(lambda: lease.seen().expires_at == clock.at + TTL_S)
        assert (lease.seen().fence, before.fence) == (fence, fence)
    assert Guard(lease, journal=Journal())._beat_s <= TTL_S / 2, "two may be late, and it is still held"


def beating():
    return [t for t in threading.enumerate() if t.name == "keel-lease"]


def test_o19_after_the_last_one_that_needs_it_nothing_is_renewed_and_the_thread_ends(tmp_path):
    held, lease = guard(tmp_path, ManualClock())
    held.take()
    held.take()
    held.give_back()
    assert lease.held
    held.give_back()
    assert not lease.held
    assert lease.seen().holder is None
    wait_until(lambda: not beating())
    assert lease.seen().holder is None
    assert not held.said


def test_k32_o19_one_thread_beats_for_calls_in_a_row_and_is_joined_when_the_kernel_ends(tmp_path):
    held, _ = guard(tmp_path, ManualClock(), beat_s=60)
    with held.hold():
        (thread,) = beating()
    with held.hold():
        assert beating() == [thread]
    held.close()
    assert not beating()
    with held.hold():  # a kernel that goes on has a heartbeat again
        assert beating()
    held.close()


def test_a_forked_child_does_not_wait_for_the_heartbeat_of_its_parent(tmp_path):
    held, lease = guard(tmp_path, ManualClock(), beat_s=60)
    held.take()
    held._lock.acquire()  # as if the thread had been renewing when the process forked
    held.forget_in_child()
    assert not lease.held
    held.close()


def test_o12_the_fence_is_in_every_frame_while_the_lease_is_held(tmp_path):
    clock = ManualClock()
    lease = Lease(tmp_path, "f", holder=Holder("h", 1, "b"), clock=clock)
    journal = Journal()
    held = Guard(lease, journal=journal)
    with held.hold() as fence:
        assert journal.fence == fence == 1
    assert journal.fence == 0


def test_k34_a_file_that_cannot_be_read_or_is_missing_is_no_loss(tmp_path):
    held, _ = guard(tmp_path, ManualClock(), beat_s=60)
    with held.hold():
        good = (tmp_path / "f.json").read_text()
        (tmp_path / "f.json").write_text("{")
        held.check()
        (tmp_path / "f.json").unlink()
        held.check()
        (tmp_path / "f.json").write_text(good)


def test_k36_a_renewal_that_fails_is_noted_and_stops_nothing(tmp_path):
    held, _ = guard(tmp_path, ManualClock())
    with held.hold():
        good = (tmp_path / "f.json").read_text()
        (tmp_path / "f.json").write_text("{")
        wait_until(lambda: held.said)
        (tmp_path / "f.json").write_text(good)
        held.check()


@pytest.mark.parametrize("problem", [OSError(5, "I/O"), ValueError("torn"), LeaseError(flow="f")])
def test_k36_whatever_makes_a_renewal_fail_the_next_one_is_tried(tmp_path, problem):
    held, lease = guard(tmp_path, ManualClock())
    renew, tried = lease.renew, []

    def fails_once():
        tried.append(1)
        if len(tried) == 1:
            raise problem
        renew()

    lease.renew = fails_once
    with held.hold():
        wait_until(lambda: len(tried) > 2)
        assert held.said == [type(problem).__name__]
        held.check()


HOLD = """
import os, sys, time
sys.path.insert(0, {root!r})
from pathlib import Path
from keel_notebook.engine.guard import Guard
from keel_notebook.engine.lease import Holder, Lease
from keel_notebook.errors import LeaseError
class Clock:
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
class Journal:
    fence = 0
lease = Lease(Path(sys.argv[1]), "f", holder=Holder("h", os.getpid(), "b"), clock=Clock)
guard = Guard(lease, journal=Journal(), beat_s=0.05)
guard.take()
print(lease.fence, flush=True)
sys.stdin.readline()
try:
    guard.check()
except LeaseError as error:
    print("lost", error.facts["holder"], flush=True)
else:
    print("kept", flush=True)
"""


@pytest.fixture
def other(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(root=ROOT), str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    fence = int(child.stdout.readline())
    yield child, fence
    child.kill()
    child.communicate()


class Now:
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


@pytest.mark.crash
def test_o12_a_holder_that_was_stopped_and_taken_over_from_finds_its_lease_lost(tmp_path, other):
    child, fence = other
    mine = Lease(tmp_path, "f", holder=Holder("h", os.getpid(), "b"), clock=Now)
    with pytest.raises(LeaseError, match=f"pid {child.pid}"):
        mine.take()  # it runs: nobody takes anything from it, however late its heartbeat
    os.kill(child.pid, signal.SIGSTOP)
    wait_until(lambda: Path(f"/proc/{child.pid}/stat").read_text().split(")")[1].split()[0] == "T")
    assert mine.take() > fence
    os.kill(child.pid, signal.SIGCONT)
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline().split() == ["lost", "pid", str(os.getpid()), "on", "h"]
    assert mine.seen().holder == Holder("h", os.getpid(), "b"), "its heartbeat changed nothing"


@pytest.mark.crash
def test_a_lease_that_was_taken_over_is_not_free_for_a_third_when_the_stopped_one_dies(tmp_path, other):
    child, _ = other
    os.kill(child.pid, signal.SIGSTOP)
    wait_until(lambda: Path(f"/proc/{child.pid}/stat").read_text().split(")")[1].split()[0] == "T")
    mine = Lease(tmp_path, "f", holder=Holder("h", os.getpid(), "b"), clock=Now)
    mine.take()
    child.kill()
    child.wait()
    third = Lease(tmp_path, "f", holder=Holder("h", 2, "b"), clock=Now)
    with pytest.raises(LeaseError, match=f"pid {os.getpid()}"):
        third.acquire()
