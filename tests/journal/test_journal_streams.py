"""Much content is written by whichever way is faster, and always whole (DESIGN 10; traps of O_DIRECT)."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keel_notebook.journal import streams
from keel_notebook.journal.streams import Stream, Ways

CONTENT = os.urandom(11 << 20) + b"tail"


def written(folder: Path, views: list[memoryview], ways: Ways) -> bytes:
    path = folder / "object"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        os.posix_fallocate(fd, 0, sum(map(len, views)))
        Stream(fd, str(path), ways, lambda: 0.0).write(views)
    finally:
        os.close(fd)
    assert not [thread for thread in threading.enumerate() if thread.name == "keel-write"]
    return path.read_bytes()


@pytest.mark.parametrize("able", [True, False])
def test_what_is_written_is_what_was_given(tmp_path: Path, able: bool) -> None:
    ways = Ways()
    ways.able = able
    whole = memoryview(CONTENT)
    assert written(tmp_path, [whole], ways) == CONTENT
    assert written(tmp_path, [whole[:5], whole[5 : 3 << 20], whole[3 << 20 :]], ways) == CONTENT


def test_a_short_direct_write_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite

    def short(fd: int, piece: memoryview, offset: int) -> int:
        return real(fd, piece[: max(4096, len(piece) // 8192 * 4096)], offset)

    monkeypatch.setattr(os, "pwrite", short)
    assert written(tmp_path, [memoryview(CONTENT)], Ways()) == CONTENT


def test_a_disk_that_wants_another_alignment_is_written_through_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_open, real_write, straight = os.open, os.pwrite, set()

    def opened(path: str, flags: int, *rest: int) -> int:
        fd = real_open(path, flags & ~os.O_DIRECT, *rest)
        straight.discard(fd)
        if flags & os.O_DIRECT:
            straight.add(fd)
        return fd

    def write(fd: int, piece: memoryview, offset: int) -> int:
        if fd in straight:
            raise OSError(errno.EINVAL, "alignment")
        return real_write(fd, piece, offset)

    ways = Ways()
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", opened)
        patch.setattr(os, "pwrite", write)
        assert written(tmp_path, [memoryview(CONTENT)], ways) == CONTENT
    assert not ways.able


def test_a_file_system_without_direct_writing_is_written_through_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def opened(path: str, flags: int, *rest: int) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "no O_DIRECT")
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", opened)
    assert written(tmp_path, [memoryview(CONTENT)], Ways()) == CONTENT


@pytest.mark.parametrize("at", range(6))
def test_an_error_at_any_piece_is_raised_and_nobody_reads_the_memory_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    real, calls = os.pwrite, iter(range(10**6))

    def full(fd: int, piece: memoryview, offset: int) -> int:
        if next(calls) == at:
            raise OSError(errno.ENOSPC, "full")
        return real(fd, piece, offset)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="full"):
        written(tmp_path, [memoryview(CONTENT)], Ways())
    assert not [thread for thread in threading.enumerate() if thread.name == "keel-write"]


@given(st.floats(1e-9, 1e-6), st.floats(1e-9, 1e-6))
def test_the_faster_way_is_taken_and_the_slower_one_is_looked_at_ever_more_seldom(direct: float, paged: float) -> None:
    ways = Ways()
    taken = []
    for _ in range(2000):
        way = ways.straight()
        taken.append(way)
        ways.note(way, direct if way else paged, 1)
    assert set(taken[:2]) == {True, False}
    faster = direct <= paged
    assert taken.count(not faster) <= 10


def test_a_way_that_became_slow_is_left_at_once() -> None:
    ways = Ways()
    for _ in range(10):
        ways.note(True, 1.0, 1)
        ways.note(False, 2.0, 1)
    assert ways.straight()
    ways.note(True, 50.0, 1)
    assert not ways.straight()


def test_pieces_follow_one_another() -> None:
    views = [memoryview(bytes(size)) for size in (5, 0, 3 << 20, 4096)]
    found = list(streams._pieces(views))
    assert [offset for offset, _ in found] == [0, 5, 5 + (2 << 20), 5 + (3 << 20)]
    assert sum(len(piece) for _, piece in found) == sum(map(len, views))


def test_an_interrupt_waits_for_whoever_still_reads_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, main = os.pwrite, threading.main_thread()
    inside, interrupted = threading.Event(), threading.Event()

    def write(fd: int, piece: memoryview, offset: int) -> int:
        if threading.current_thread() is main:
            assert inside.wait(60)
            interrupted.set()
            raise KeyboardInterrupt
        inside.set()
        assert interrupted.wait(60)
        return real(fd, piece, offset)

    monkeypatch.setattr(os, "pwrite", write)
    with pytest.raises(KeyboardInterrupt):
        written(tmp_path, [memoryview(CONTENT)], Ways())
    assert not [thread for thread in threading.enumerate() if thread.name == "keel-write"]
