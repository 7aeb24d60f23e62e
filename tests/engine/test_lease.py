"""The lease of a flow with real processes (DESIGN 5, Lease; Z18, O12, O13, O15)."""

import json
import os
import signal
import subprocess
import sys
import zlib

import pytest

from keel_notebook.engine.lease import TTL_S, Holder, Lease, LeaseSeen
from keel_notebook.errors import LeaseError

HOLD = """
import os, sys, time
from pathlib import Path
from keel_notebook.engine.lease import Holder, Lease
class Clock:
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
lease = Lease(Path(sys.argv[1]), "f", holder=Holder("h", os.getpid(), "b"), clock=Clock)
print(lease.acquire(), flush=True)
sys.stdin.read()
"""


class Clock:
    def __init__(self, now=1_000.0):
        self.at = now

    def now(self):
        return self.at

    def monotonic(self):
        return self.at


@pytest.fixture
def clock():
    return Clock()


def lease(folder, clock, pid=1):
    return Lease(folder, "f", holder=Holder("h", pid, "b"), clock=clock)


@pytest.fixture
def other(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    fence = int(child.stdout.readline())
    yield child, fence
    child.kill()
    child.communicate()


def test_z18_a_second_process_is_refused_and_told_who_holds_it(tmp_path, clock, other):
    child, _ = other
    with pytest.raises(LeaseError, match=f"pid {child.pid} on h"):
        lease(tmp_path, clock).acquire()


def test_z18_after_sigkill_the_lease_is_free_at_once_and_the_fence_is_larger(tmp_path, clock, other):
    child, fence = other
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert lease(tmp_path, clock).acquire() == fence + 1


def test_z18_a_holder_that_lives_keeps_it_however_late_its_heartbeat_is(tmp_path, clock, other):
    """A C call that keeps the interpreter starves a thread: the lock decides on one machine, not the clock (K32)."""
    child, _ = other
    clock.at = lease(tmp_path, clock).seen().expires_at + 10 * TTL_S
    with pytest.raises(LeaseError, match=f"pid {child.pid} on h"):
        lease(tmp_path, clock).acquire()


def test_o12_who_takes_over_from_a_stopped_holder_has_a_larger_fence(tmp_path, clock, other):
    child, fence = other
    os.kill(child.pid, signal.SIGSTOP)
    os.waitpid(child.pid, os.WUNTRACED)
    try:
        taken = lease(tmp_path, clock)
        assert taken.take() == fence + 1
        assert taken.seen().fence == fence + 1, "what the stopped one writes carries an older one"
    finally:
        os.kill(child.pid, signal.SIGCONT)


def test_a_stopped_holder_keeps_its_lock(tmp_path, clock, other):
    child, _ = other
    os.kill(child.pid, signal.SIGSTOP)
    try:
        with pytest.raises(LeaseError):
            lease(tmp_path, clock).acquire()
    finally:
        os.kill(child.pid, signal.SIGCONT)


def test_o12_the_fence_grows_with_every_acquire_but_not_with_a_second_one_of_the_holder(tmp_path, clock):
    first = lease(tmp_path, clock)
    assert first.acquire() == 1
    assert first.acquire() == 1
    first.release()
    assert lease(tmp_path, clock, pid=2).acquire() == 2


def test_o13_a_renewal_moves_the_expiry_on_and_never_back_and_never_the_fence(tmp_path, clock):
    held = lease(tmp_path, clock)
    held.acquire()
    clock.at += 10
    held.renew()
    assert held.seen().expires_at == clock.at + TTL_S
    clock.at -= 500  # the wall clock was set back
    held.renew()
    assert held.seen().expires_at == 1_010 + TTL_S
    assert held.seen().fence == 1


def test_k34_a_holder_whose_fence_was_passed_cannot_renew(tmp_path, clock):
    held = lease(tmp_path, clock)
    held.acquire()
    winner = Lease(tmp_path, "f", holder=Holder("x", 9, "b"), clock=clock, locks=False)
    winner._write(LeaseSeen(2, Holder("x", 9, "b"), clock.at, clock.at + TTL_S))
    with pytest.raises(LeaseError, match="pid 9 on x"):
        held.renew()
    held.release()
    assert held.seen().holder == Holder("x", 9, "b"), "the loser must not free the winner's lease"


def test_o15_a_released_lease_names_no_holder_and_keeps_its_fence(tmp_path, clock):
    held = lease(tmp_path, clock)
    held.acquire()
    held.release()
    assert held.seen().holder is None
    assert held.seen().fence == 1
    assert not held.held


def test_a_lease_file_that_cannot_be_read_is_not_taken_for_free(tmp_path, clock):
    (tmp_path / "f.json").write_text("{")
    with pytest.raises(ValueError, match="Expecting"):
        lease(tmp_path, clock).acquire()


def test_a_lease_that_is_read_while_it_is_written_is_never_a_mixture_of_two(tmp_path, clock):
    held = lease(tmp_path, clock)
    held.acquire()
    path = tmp_path / "f.json"
    before = path.read_bytes()
    held._write(LeaseSeen(22, Holder("other", 12345, "c"), 7.0, 99_999.5))
    after = path.read_bytes()
    assert len(before) == len(after), "in place"
    for cut in range(len(after) + 1):
        path.write_bytes(after[:cut] + before[cut:])
        try:
            seen = held.seen()
        except ValueError:
            continue
        assert (seen.fence, seen.holder.pid) in {(1, 1), (22, 12345)}


def test_a_lease_whose_first_holder_died_before_the_first_word_is_free(tmp_path, clock):
    (tmp_path / "f.json").touch()
    assert lease(tmp_path, clock).acquire() == 1


def test_a_lease_of_an_older_version_is_read_as_it_is(tmp_path, clock):
    (tmp_path / "f.json").write_text('{"fence": 7, "holder": null, "since": 0.0, "expires_at": 0.0}')
    assert lease(tmp_path, clock).acquire() == 8


def test_a_forked_child_does_not_keep_the_lock_alive(tmp_path, clock):
    held = lease(tmp_path, clock)
    held.acquire()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        held.forget_in_child()
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    os.close(read)
    try:
        held.release()
        assert lease(tmp_path, clock, pid=2).acquire() == 2
    finally:
        os.close(write)
        os.waitpid(child, 0)


def test_what_is_written_by_hand_is_what_json_reads(tmp_path):
    held = lease(tmp_path, Clock(1_000.25), pid=7)
    held.acquire()
    found = json.loads((tmp_path / "f.json").read_text())
    assert found.pop("check") == zlib.crc32(json.dumps(found, sort_keys=True).encode())
    assert found == {
        "expires_at": 1_000.25 + TTL_S,
        "fence": 1,
        "holder": {"boot": "b", "host": "h", "pid": 7},
        "since": 1_000.25,
    }
    held.release()
    assert json.loads((tmp_path / "f.json").read_text())["holder"] is None
