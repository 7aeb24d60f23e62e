"""Heads: what a kernel attaches from, rebuilt when lost, small for ever; and a viewer that holds the record file."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from keel_notebook.core.model import Blob, Digest, Effect, Entry, Kind, Payload, Status
from keel_notebook.core.ports import RunEnd
from keel_notebook.errors import JournalUnreachableError
from keel_notebook.journal import ingest, pruning, spawn, troubles
from keel_notebook.journal.flowlog import Written
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.reader import read_journal
from tests.journal.journals import FLOW, OTHER, KeySeal, drop, entry, opened, rows, with_object


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".keel"


@contextlib.contextmanager
def viewer_of(folder: Path, read_only: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another program that has the record file open."""
    text = (
        "import duckdb, sys; con = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == 'True'); print(1, flush=True)"
    )
    command = [sys.executable, "-c", text + "; input()", str(folder / "journal.duckdb"), read_only]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as viewer:
        assert viewer.stdout is not None
        assert viewer.stdout.readline()
        yield viewer
        viewer.kill()


def test_c81_while_a_viewer_holds_the_file_kernels_and_queries_work_and_it_is_caught_up_later(folder: Path) -> None:
    journal = opened(folder)
    journal.append(entry(journal, "before"))
    spawn.ingest_now(folder)
    for mode in ("True", "False"):
        with viewer_of(folder, mode) as viewer:
            journal.append(entry(journal, f"during {mode}"))
            with pytest.raises(JournalUnreachableError, match=f"pid {viewer.pid}"):
                spawn.ingest_now(folder)
            assert "nothing is lost" in troubles(folder)[0]
            steps = [one.step for one in read_journal(folder, seal=KeySeal()).records(FLOW).entries]
            assert steps[-1] == f"during {mode}"
            assert ("during " + mode,) in spawn.query(folder, "SELECT step FROM steps")[1]
    spawn.ingest_now(folder)
    assert troubles(folder) == []
    assert len(rows(folder, "SELECT * FROM entries")) == 3


def test_c81_heads_lost_while_a_viewer_holds_the_file_are_no_lock_error(folder: Path) -> None:
    journal = opened(folder)
    journal.append(entry(journal, "before"))
    drop(journal)
    spawn.ingest_now(folder)
    for name in os.listdir(folder / "heads"):
        os.unlink(folder / "heads" / name)
    with viewer_of(folder, "True"):
        found = opened(folder).records(FLOW).entries
        assert [one.step for one in found] == ["before"]
        again = opened(folder)
        again.append(entry(again, "during"))
        drop(again)
    spawn.ingest_now(folder)
    assert rows(folder, "SELECT step FROM entries ORDER BY stamp") == [("before",), ("during",)]
    assert [one.step for one in opened(folder).records(FLOW).entries] == ["before", "during"]


@pytest.mark.parametrize("loss", ["index", "head", "both", "index damaged", "head damaged"])
def test_heads_that_are_lost_or_damaged_are_rebuilt_when_somebody_attaches(folder: Path, loss: str) -> None:
    journal = opened(folder)
    for n in range(5):
        journal.append(with_object(journal, os.urandom(20_000), step=f"s{n}"))
    expected = list(journal.records(FLOW).entries)
    drop(journal)
    other = opened(folder)
    other.append(entry(other, flow=OTHER))
    drop(other)
    spawn.ingest_now(folder)
    index, head = folder / "heads" / ".index", folder / "heads" / FLOW
    for path in [index] * ("index" in loss or loss == "both") + [head] * ("head" in loss or loss == "both"):
        if "damaged" in loss:
            raw = bytearray(path.read_bytes())
            raw[len(raw) // 2] ^= 1
            path.write_bytes(bytes(raw))
        else:
            path.unlink()
    later = opened(folder)
    assert list(later.records(FLOW).entries) == expected
    assert later.records(FLOW).runs[1].end == RunEnd.DIED
    assert later.run == 3
    assert len(later.records(OTHER).entries) == 1


def written(one: Entry, stamp: int) -> Written:
    return Written(stamp, 0, (), b"", one)


def test_a_head_keeps_everything_until_there_is_too_much(folder: Path) -> None:
    journal = opened(folder)
    some = [written(entry(journal, f"s{n}"), n) for n in range(100)]
    assert pruning.pruned(some, many=100) == some


def test_a_head_never_drops_what_must_not_happen_twice_or_takes_something_back(folder: Path) -> None:
    journal = opened(folder)
    paid = [entry(journal, "pay", effect=Effect.EXACTLY_ONCE, status=Status.INTENT)]
    retired = [entry(journal, "fit", kind=Kind.RETIRE, key="forget")]
    old_ok = [entry(journal, "fit", code=Digest("0" * 32))]
    other_code = [entry(journal, "fit", code=Digest("1" * 32))]
    failures = [entry(journal, "fit", status=Status.FAILED) for _ in range(30)]
    newest = [entry(journal, "fit", payload=Payload(Blob(0, inline=b""), refs=(old_ok[0].entry,)))]
    dying = [entry(journal, "fit", status=Status.RUNNING) for _ in range(3)]
    calls = [entry(journal, "fit", kind=Kind.CALL, call="ask", key=str(n)) for n in range(20)]
    everything = paid + retired + old_ok + other_code + failures + newest + dying + calls
    kept = [item.entry for item in pruning.pruned([written(e, n) for n, e in enumerate(everything)], many=10)]
    assert kept == [e for e in everything if e in paid + retired + old_ok + newest + dying + calls]
    room = pruning.pruned([written(e, n) for n, e in enumerate(everything)], many=len(kept) + 3)
    assert other_code[0] in [item.entry for item in room], "an older version is kept before a failure is"


def test_what_a_head_leaves_out_is_in_the_history(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning.pruned, "__kwdefaults__", {"many": 10, "most": 200})
    journal = opened(folder)
    for n in range(40):
        journal.append(entry(journal, "a" if n % 2 else "b", status=Status.FAILED if n < 38 else Status.OK))
    everything = list(journal.records(FLOW).entries)
    journal.close(clean=True)
    ingest.ingest(Folder(folder), wait_s=5)
    reader = read_journal(folder, seal=KeySeal())
    assert len(reader.records(FLOW).entries) == 10
    assert list(reader.history(FLOW)) == everything
    assert list(reader.history(FLOW, "a")) == [one for one in everything if one.step == "a"]
