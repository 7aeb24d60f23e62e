"""A damaged record file (C82): set aside under a new name, rebuilt as far as the rest reaches, the loss named."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

from keel_notebook.core.model import Entry
from keel_notebook.journal import ingest, spawn, troubles
from keel_notebook.journal.folder import Folder
from tests.journal.journals import FLOW, drop, entry, forked, in_the_record_file, ingested, opened


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Entry]]:
    """A journal whose record file holds several blocks, with one more entry in the inbox."""
    folder = tmp_path_factory.mktemp("recorded") / ".keel"
    journal = opened(folder)
    for n in range(300):
        journal.append(entry(journal, f"s{n}", source=os.urandom(1500).hex()))
    ingested(folder)
    journal.append(entry(journal, "waiting"))
    expected = list(journal.records(FLOW).entries)
    drop(journal)
    return folder, expected


def flipped(path: Path, at: float) -> None:
    raw = bytearray(path.read_bytes())
    raw[int(len(raw) * at)] ^= 0x10
    path.write_bytes(bytes(raw))


def another_database(path: Path) -> None:
    path.unlink()
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE t (a INTEGER)")


DAMAGES = {
    "cut in half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "cut to nothing": lambda path: os.truncate(path, 0),
    "garbage": lambda path: path.write_bytes(os.urandom(path.stat().st_size)),
    "another database": lambda path: (
        path.unlink(),
        duckdb.connect(str(path)).execute("CREATE TABLE t (a INT)").close(),
    ),
    "gone": lambda path: path.unlink(),
    "head flipped": lambda path: flipped(path, 0.0001),
    "block flipped": lambda path: flipped(path, 0.4),
    "tail flipped": lambda path: flipped(path, 0.9),
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_c82_a_damaged_record_file_is_set_aside_and_rebuilt(
    recorded: tuple[Path, list[Entry]], tmp_path: Path, damage: str
) -> None:
    origin, expected = recorded
    folder = tmp_path / ".keel"
    shutil.copytree(origin, folder)
    DAMAGES[damage](folder / "journal.duckdb")
    spawn.ingest_now(folder)
    later = opened(folder)
    assert list(later.records(FLOW).entries) == expected
    found = spawn.query(folder, "SELECT entry, step, source FROM entries ORDER BY stamp")[1]
    assert found == [(one.entry, one.step, one.source) for one in expected]
    drop(later)


def test_c82_a_damaged_block_is_found_when_a_query_reads_it_and_everything_is_there_again(
    recorded: tuple[Path, list[Entry]], tmp_path: Path
) -> None:
    origin, expected = recorded
    rest = tmp_path / "rest" / ".keel"
    shutil.copytree(origin, rest)
    spawn.ingest_now(rest)
    found_damage = 0
    for number in range(4):
        folder = tmp_path / str(number) / ".keel"
        shutil.copytree(rest, folder)
        flipped(folder / "journal.duckdb", 0.2 + number * 0.2)
        _, found = spawn.query(folder, "SELECT count(*), max(source), max(body) FROM entries")
        assert found[0][:2] == (len(expected), max(one.source for one in expected))
        found_damage += bool(troubles(folder))
    assert found_damage


def test_c82_without_heads_a_damaged_record_file_gives_what_can_be_read_and_names_the_loss(
    recorded: tuple[Path, list[Entry]], tmp_path: Path
) -> None:
    origin, expected = recorded
    folder = tmp_path / ".keel"
    shutil.copytree(origin, folder)
    (folder / "heads" / FLOW).unlink()
    os.truncate(folder / "journal.duckdb", 5000)
    spawn.ingest_now(folder)
    later = opened(folder)
    found = list(later.records(FLOW).entries)
    assert found == [one for one in expected if one in found]
    assert found[-1].step == "waiting"
    told = "\n".join(troubles(folder))
    assert f"{len(expected) - len(found)} old entries are lost" in told
    assert (folder / "damaged" / "journal-1.duckdb").exists()
    drop(later)


def test_c82_a_kill_with_a_damaged_log_beside_the_record_file_is_no_crash_loop(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    journal = opened(folder)
    for n in range(20):
        journal.append(entry(journal, f"s{n}"))
    drop(journal)

    def dies_with_a_log() -> None:
        real = duckdb.connect

        class Dying:
            def __init__(self, con: Any) -> None:
                self.con = con

            def execute(self, sql: str, *rest: Any) -> Any:
                if sql == "CHECKPOINT" and os.path.getsize(folder / "journal.duckdb.wal") > 5000:
                    os.kill(os.getpid(), 9)
                return self.con.execute(sql, *rest)

            def __getattr__(self, name: str) -> Any:
                return getattr(self.con, name)

        duckdb.connect = lambda *a, **k: Dying(real(*a, **k))  # type: ignore[assignment]
        ingest.ingest(Folder(folder), wait_s=5)

    assert forked(dies_with_a_log) == 9
    log = folder / "journal.duckdb.wal"
    whole = log.read_bytes()
    for number, at in enumerate((0.05, 0.3, 0.5, 0.7, 0.95)):
        for change in ("flip", "cut"):
            copy = tmp_path / f"{number}{change}" / ".keel"
            shutil.copytree(folder, copy)
            raw = bytearray(whole)
            raw[int(len(raw) * at)] ^= 0x20
            (copy / "journal.duckdb.wal").write_bytes(raw if change == "flip" else whole[: int(len(whole) * at)])
            ingested(copy)
            assert len(in_the_record_file(copy)) == 20
            assert len(opened(copy).records(FLOW).entries) == 20
