"""Kernels that are killed with SIGKILL: at every write they make, and at random moments.

The wrapper around the system's calls lives here, in the test; the product has no hook for it.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from keel_notebook.core.model import Entry, Status
from keel_notebook.core.ports import RunEnd
from keel_notebook.journal import ingest, record, troubles
from keel_notebook.journal.disk import DiskJournal
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.reader import read_journal
from tests.journal.journals import FLOW, OTHER, KeySeal, drained, drop, entry, forked, killed_child, opened, with_object

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800)]

CALLS = "write pwrite open link rename replace unlink mkdir fsync fdatasync ftruncate posix_fallocate"
BIG = bytes(range(256)) * 5000


class Reaper:
    """Kills this process before, or half-way through, the n-th write-like call: before the next is after this."""

    def __init__(self, number: int, how: str) -> None:
        self.number = number
        self.how = how
        self.calls = itertools.count(1)
        self.say = os.write

    def wrap(self, module: Any, name: str) -> None:
        real = getattr(module, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if name == "open" and not args[1] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
                return real(*args, **kwargs)
            mine = next(self.calls) == self.number
            if mine and self.how == "half" and name in {"write", "pwrite"}:
                real(args[0], bytes(args[1])[: len(args[1]) // 2], *args[2:])
            if mine:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        setattr(module, name, call)

    def everywhere(self) -> None:
        for name in CALLS.split():
            self.wrap(os, name)


def a_kernels_life(folder: Path, say: Callable[[str], object]) -> None:
    """Everything a kernel does to its journal, saying what was acknowledged."""
    journal = opened(folder)
    say(f"run {journal.run}")

    def append(one: Entry, **how: Any) -> None:
        say(f"try {one.entry}")
        journal.append(one, **how)
        say(f"ok {one.entry} {one.status}")

    running = with_object(journal, b"small", status=Status.RUNNING)
    append(running)
    append(with_object(journal, BIG, seq=running.seq))
    append(entry(journal, "guarded"), synced=True)
    append(entry(journal, "other", flow=OTHER))
    journal.request_shutdown()
    journal.flush()
    journal.close(clean=True)
    say("closed")


def believed(folder: Path, said: list[str]) -> None:
    """Nothing acknowledged is lost, nothing that was never tried is there, and a kill is no damage."""
    reader = read_journal(folder, seal=KeySeal())
    found = {one.entry: one for flow in (FLOW, OTHER) for one in reader.records(flow).entries}
    tried = {line.split()[1] for line in said if line.startswith("try")}
    acknowledged = {line.split()[1]: line.split()[2] for line in said if line.startswith("ok")}
    assert set(acknowledged) <= set(found) <= tried
    for ident, status in acknowledged.items():
        assert found[ident].status in {status, Status.OK}  # its successor may be there without an answer
    for one in found.values():
        if one.payload is not None:
            assert reader.read(one.payload.head) in {b"small", BIG}
    assert troubles(folder) == []
    ends = {run.end for flow in (FLOW, OTHER) for run in reader.records(flow).runs.values()}
    assert ends <= {RunEnd.DIED, RunEnd.ASKED, RunEnd.CLEAN}
    if "closed" in said:
        assert ends == {RunEnd.CLEAN}
    reader.close()


@pytest.mark.parametrize("how", ["before", "half"])
def test_k9_killed_at_every_write_nothing_acknowledged_is_lost_and_nothing_torn_believed(
    tmp_path: Path, how: str
) -> None:
    number = 0
    while True:
        number += 1
        folder = tmp_path / str(number) / ".keel"

        def life(fd: int, number: int = number, folder: Path = folder) -> None:
            reaper = Reaper(number, how)
            reaper.everywhere()
            a_kernels_life(folder, lambda line: bool(reaper.say(fd, line.encode() + b"\n")))  # noqa: B023 - it is the lambda's own

        with killed_child(life) as (_, reading):
            said = drained(reading).decode().split("\n")[:-1]
        believed(folder, said)
        again = opened(folder)
        assert not any(line == f"run {again.run}" for line in said)
        again.append(entry(again, "again"))
        drop(again)
        assert "again" in [one.step for one in read_journal(folder, seal=KeySeal()).records(FLOW).entries]
        if "closed" in said:
            break
        shutil.rmtree(folder.parent)
    assert number > 30


class DyingConnection:
    """A DuckDB connection whose process is killed around its n-th statement."""

    def __init__(self, real: Any, reaper: Reaper) -> None:
        self._real = real
        self._reaper = reaper
        reaper.wrap(self, "execute")
        reaper.wrap(self, "close")

    def execute(self, *args: Any) -> Any:
        return self._real.execute(*args)

    def close(self) -> None:
        self._real.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def recorded(folder: Path) -> dict[str, Entry]:
    reader = read_journal(folder, seal=KeySeal())
    found = {one.entry: one for flow in (FLOW, OTHER) for one in reader.history(flow)}
    reader.close()
    return found


def in_the_record_file(folder: Path) -> dict[str, str]:
    opened_file = record.RecordFile(str(folder / "journal.duckdb"), read_only=True)
    rows = dict(opened_file.select("SELECT entry, status FROM entries")[1])
    opened_file.close(fold=False)
    return rows


def test_an_ingest_killed_at_every_step_loses_nothing_and_the_next_one_finishes(tmp_path: Path) -> None:
    origin = tmp_path / "origin" / ".keel"
    first = opened(origin)
    for n in range(3):
        first.append(with_object(first, BIG, step=f"s{n}"))
    drop(first)
    assert forked(lambda: ingest.ingest(Folder(origin), wait_s=5)) == 0
    live = opened(origin)
    for n in range(3):
        live.append(entry(live, f"t{n}", status=Status.RUNNING))
    for one in live.records(FLOW).entries[3:]:
        live.append(entry(live, one.step, seq=one.seq))
    live.append(entry(live, "other", flow=OTHER))
    expected = recorded(origin)
    assert len(expected) == 7
    number = 0
    finished = False
    while not finished:
        number += 1
        folder = tmp_path / str(number) / ".keel"
        shutil.copytree(origin, folder)

        def life(number: int = number, folder: Path = folder) -> None:
            reaper = Reaper(number, "before")
            reaper.everywhere()
            connect = record.duckdb.connect
            record.duckdb.connect = lambda *a, **k: DyingConnection(connect(*a, **k), reaper)  # type: ignore[assignment]
            ingest.ingest(Folder(folder), wait_s=5)

        finished = forked(life) == 0
        assert recorded(folder) == expected
        assert forked(lambda folder=folder: ingest.ingest(Folder(folder), wait_s=5)) == 0  # type: ignore[misc]
        assert recorded(folder) == expected
        assert in_the_record_file(folder) == {ident: str(one.status) for ident, one in expected.items()}
        assert troubles(folder) == []
        assert not [name for name in os.listdir(folder / "heads") if name.endswith(".tmp")]
        shutil.rmtree(folder.parent)
    assert number > 30
    drop(live)


def test_a_kernel_killed_at_random_moments_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """200 kills; KEEL_SOAK=N makes it N."""
    folder = tmp_path / ".keel"
    kills = int(os.environ.get("KEEL_SOAK", "200"))
    chance = random.Random(7)
    acknowledged: dict[str, str] = {}
    runs: set[int] = set()

    def life(fd: int) -> None:
        journal = opened(folder)
        journal.records(FLOW)
        for n in range(10_000):
            one = with_object(journal, os.urandom(20_000), status=Status.RUNNING) if n % 5 == 0 else entry(journal)
            journal.append(one, synced=n % 7 == 0)
            os.write(fd, json.dumps([journal.run, one.entry, str(one.status)]).encode() + b"\n")

    for kill in range(kills):
        with killed_child(life) as (pid, reading):
            first = os.read(reading, 1 << 16) if kill % 4 else b""  # every fourth dies while it attaches
            time.sleep(chance.uniform(0, 0.02))
            os.kill(pid, signal.SIGKILL)
            said = [json.loads(line) for line in (first + drained(reading)).split(b"\n")[:-1]]
        acknowledged.update({ident: status for _, ident, status in said})
        fresh = {run for run, _, _ in said}
        assert not fresh & runs, "a run number was given out twice"
        runs |= fresh
        if kill % 25 == 24:
            assert forked(lambda: ingest.ingest(Folder(folder), wait_s=20)) == 0
    found = recorded(folder)
    assert {ident: str(found[ident].status) for ident in acknowledged} == acknowledged
    assert troubles(folder) == []
    assert len(runs) > kills // 2
    assert len(Folder(folder).runs()) <= 26, "segments of dead kernels are deleted once they are ingested"
    sizes = read_journal(folder, seal=None).sizes()
    assert sizes.objects < 2 * 20_000 * len(acknowledged)


@pytest.mark.parametrize("earlier", [0, 1], ids=["the first step", "a later step"])
def test_records_of_a_run_that_died_hold_the_memory_it_was_last_seen_with(tmp_path: Path, earlier: int) -> None:
    """From the begin on, also where the flush thread never came to look at it."""
    folder = tmp_path / ".keel"

    def life(fd: int) -> None:
        journal = opened(folder)
        journal._flusher._sample = lambda: None  # type: ignore[method-assign]
        for _ in range(earlier):
            begun = entry(journal, status=Status.RUNNING)
            journal.append(begun)
            journal.append(replace(begun, status=Status.OK))
        held = bytearray(b"x" * 50_000_000)
        journal.append(entry(journal, status=Status.RUNNING))
        os.write(fd, b"written\n")
        time.sleep(60)
        del held

    with killed_child(life) as (pid, reading):
        assert os.read(reading, 8) == b"written\n"
        os.kill(pid, signal.SIGKILL)
    (seen,) = read_journal(folder, seal=None).records(FLOW).runs.values()
    assert seen.end == RunEnd.DIED
    assert seen.rss_last > 60_000_000
    assert seen.start.started <= seen.seen_at <= time.time()
    assert forked(lambda: ingest.ingest(Folder(folder), wait_s=5)) == 0
    assert opened_again(folder).records(FLOW).runs[seen.start.run] == seen


def opened_again(folder: Path) -> DiskJournal:
    return opened(folder)
