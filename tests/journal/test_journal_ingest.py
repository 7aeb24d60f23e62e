"""The record file: complete at rest, equal to what was written, readable by anybody, and never in a kernel."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest
from msgspec.structs import replace

from keel_notebook.core.model import (
    Digest,
    Effect,
    Entry,
    EntryId,
    FileSeen,
    Input,
    Kind,
    NotStored,
    Payload,
    Problem,
    Status,
    Write,
)
from keel_notebook.core.ports import RunEnd
from keel_notebook.errors import JournalUnreachableError, QueryError
from keel_notebook.journal import columns, spawn
from keel_notebook.journal.flows import find_flow
from keel_notebook.journal.reader import read_journal
from tests.journal.journals import FLOW, OTHER, KeySeal, drop, entry, opened, rows, script, wait_for, with_object

TABLE_OF_ENTRIES = "SELECT entry, step, status, run, seq FROM entries ORDER BY stamp"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".keel"


def full(journal: Any) -> Entry:
    """An entry in which every field has something in it."""
    blob = journal.blob(b"outputs" * 5000)
    return entry(
        journal,
        "full",
        lane="l2",
        occurrence=3,
        call="ask",
        key="k",
        attempt=2,
        effect=Effect.EXACTLY_ONCE,
        idempotency_key="i" * 8,
        source="x = 'é\ud800\x00'\n",
        inputs=(Input("a", None, weak=True, preview="7", producer="cell 1", type="int"), Input("b", Digest("b" * 32))),
        files=(FileSeen("in.csv", "read", Digest("f" * 32), (1, 2**64 - 1, 3, 4), weak=True),),
        ambient={"state": b"\x00\x01", "nan": float("nan"), "list": [1, None]},
        writes=(Write("df", Digest("e" * 32), "DataFrame", 2**40, "500 rows"),),
        deleted=("tmp", "x\ud800"),
        outputs=blob,
        not_stored=(NotStored("con", "Connection", "lives in one kernel"),),
        payload=Payload(blob, (Digest("1" * 64),), (EntryId("1.1"),), 35_000),
        started_at=1_700_000_000.25,
        ended_at=1_700_000_001.5,
        took_s=1.25,
        rss_peak=2**33,
        fence=4,
        error=Problem("ValueError", "E011"),
        why="because",
    )


def test_every_field_of_an_entry_is_a_column_of_the_same_name(folder: Path) -> None:
    journal = opened(folder)
    one = full(journal)
    journal.append(one)
    journal.append(entry(journal, "bare", started_at=float("inf")))
    spawn.ingest_now(folder)
    assert set(Entry.__struct_fields__) <= set(columns.COLUMNS)
    with duckdb.connect(str(folder / "journal.duckdb"), read_only=True) as con:
        cursor = con.execute("SELECT * FROM entries WHERE step = 'full'")
        named = dict(zip([column[0] for column in cursor.description], cursor.fetchall()[0], strict=True))
    for name in ("entry", "flow", "run", "seq", "step", "lane", "occurrence", "call", "key", "attempt", "took_s"):
        assert named[name] == getattr(one, name)
    assert named["effect"] == "exactly_once"
    assert named["source"] == "x = 'é?\x00'\n"
    assert named["inputs"][0] == {
        "name": "a",
        "digest": None,
        "weak": True,
        "preview": "7",
        "producer": "cell 1",
        "type": "int",
    }
    assert named["files"][0]["path"] == "in.csv"
    assert named["writes"][0]["bytes"] == 2**40
    assert named["deleted"] == ["tmp", "x?"]
    assert named["not_stored"] == [{"name": "con", "type": "Connection", "reason": "lives in one kernel"}]
    assert named["payload"]["refs"] == ["1.1"]
    assert named["outputs"]["size"] == 35_000
    assert named["error"] == {"type": "ValueError", "code": "E011"}
    assert named["started_at"].isoformat() == "2023-11-14T22:13:20.250000"
    assert "(2 bytes)" in named["ambient"]
    assert (
        rows(folder, "SELECT inputs, error, ended_at, payload FROM entries WHERE step = 'bare'")[0][1:] == (None,) * 3
    )
    # And the entry itself is kept as it was written and sealed.
    body, macs = named["body"], named["macs"]
    assert KeySeal().verify(body, macs[0])
    assert repr(opened(folder).records(FLOW).entries[0]) == repr(one)  # NaN is not equal to itself


def test_the_record_file_equals_the_segments(folder: Path) -> None:
    journal = opened(folder)
    for n in range(50):
        running = entry(journal, f"s{n}", status=Status.RUNNING)
        journal.append(running)
        if n % 3:
            journal.append(replace(running, status=Status.OK))
    for take in range(2):
        spawn.ingest_now(folder)
        expected = [(e.entry, e.step, str(e.status), e.run, e.seq) for e in journal.records(FLOW).entries]
        assert rows(folder, TABLE_OF_ENTRIES) == expected
        journal.append(entry(journal, f"later {take}"))
        journal.append(replace(journal.records(FLOW).entries[0], status=Status.FAILED))


def test_an_ingest_with_nothing_new_changes_nothing(folder: Path) -> None:
    journal = opened(folder)
    journal.append(with_object(journal, b"x" * 50_000))
    journal.close(clean=True)
    spawn.ingest_now(folder)
    before = {name: (folder / name).stat().st_mtime_ns for name in ("heads/.index", f"heads/{FLOW}")}
    content = (folder / "journal.duckdb").read_bytes()
    spawn.ingest_now(folder)
    assert before == {name: (folder / name).stat().st_mtime_ns for name in before}
    assert (folder / "journal.duckdb").read_bytes() == content


def test_views_answer_the_questions_that_they_are_for(folder: Path) -> None:
    flow = find_flow(folder, notebook=folder.parent / "my.ipynb")
    journal = opened(folder)
    load = entry(
        journal,
        "load",
        flow=flow.id,
        writes=(Write("df", Digest("d" * 32), "DataFrame", 80),),
        inputs=(),
        started_at=100.0,
    )
    journal.append(load)
    journal.append(with_object(journal, b"p" * 20_000, step="fit", flow=flow.id, started_at=200.0))
    journal.append(entry(journal, "fit", flow=flow.id, kind=Kind.CALL, call="ask", key="1", started_at=201.0))
    journal.append(entry(journal, "elsewhere", flow=OTHER, started_at=1.0))
    journal.close(clean=True)
    ask = lambda sql: spawn.query(folder, sql)[1]  # noqa: E731
    assert ask("SELECT flow, notebook, runs, steps, entries FROM flows ORDER BY entries DESC") == [
        (flow.id, str(folder.parent / "my.ipynb"), 1, 2, 3),
        (OTHER, None, 1, 1, 1),
    ]
    assert ask(f"SELECT step FROM steps WHERE flow = '{flow.id}' ORDER BY stamp") == [("load",), ("fit",)]
    assert ask("SELECT step, call, key FROM calls") == [("fit", "ask", "1")]
    assert ask(f"SELECT run, ended, steps, entries FROM runs WHERE flow = '{flow.id}'") == [(1, RunEnd.CLEAN, 2, 3)]
    assert ask("SELECT edge, step, name, digest FROM lineage WHERE step IN ('load', 'fit') AND kind = 'step'") == [
        ("read", "fit", "a", "d" * 32),
        ("write", "load", "df", "d" * 32),
    ]
    assert ask("SELECT step, part, bytes, sharers FROM storage") == [("fit", "payload", 20_000, 1)]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM entries",
        "CREATE TABLE x (a INTEGER)",
        "COPY entries TO '{folder}/out.csv'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "ATTACH '{folder}/other.duckdb'",
        "SELECT nonsense FROM steps",
        "SELEC 1",
        "SET enable_external_access = true",
        "SELECT step::INTEGER FROM steps",
        "",
    ],
)
def test_a_query_that_is_more_than_a_look_is_refused_without_a_value_in_its_words(folder: Path, sql: str) -> None:
    journal = opened(folder)
    journal.append(entry(journal, "s3cret-value"))
    with pytest.raises(QueryError) as raised:
        spawn.query(folder, sql.format(folder=folder))
    assert raised.value.code == "E007"
    assert "s3cret" not in str(raised.value)
    assert not (folder / "out.csv").exists()
    assert rows(folder, "SELECT count(*) FROM entries") == [(1,)]


def test_values_of_all_kinds_come_back_from_a_query(folder: Path) -> None:
    opened(folder)
    names, found = spawn.query(
        folder,
        "SELECT 1 AS i, 1.5::DOUBLE AS d, 'é' AS t, NULL AS n, true AS b, [1, 2] AS l, {'a': 1} AS s, 'x'::BLOB AS r,"
        " TIMESTAMP '2024-01-02 03:04:05' AS ts, 170141183460469231731687303715884105727::HUGEINT AS h,"
        " 1.10::DECIMAL(4,2)",
    )
    assert names[:4] == ["i", "d", "t", "n"]
    assert found == [
        (1, 1.5, "é", None, True, [1, 2], {"a": 1}, b"x", "2024-01-02 03:04:05", str(2**127 - 1), "1.10"),
    ]


def test_a_journal_that_is_not_there_has_empty_views(folder: Path) -> None:
    assert spawn.query(folder, "SELECT count(*) FROM steps")[1] == [(0,)]
    assert not folder.exists()


def test_dead_segments_are_deleted_and_live_and_highest_ones_stay(folder: Path) -> None:
    journals = [opened(folder) for _ in range(4)]
    for journal in journals:
        journal.append(entry(journal))
        assert journal.flush()
    drop(journals[0])
    journals[1].close(clean=True)
    spawn.ingest_now(folder)
    assert sorted(os.listdir(folder / "inbox")) == ["3.rss", "3.seg", "4.rss", "4.seg"]
    drop(journals[2])
    drop(journals[3])
    spawn.ingest_now(folder)
    assert sorted(os.listdir(folder / "inbox")) == ["4.rss", "4.seg"]
    assert rows(folder, "SELECT run, ended FROM kernels ORDER BY run") == [
        (1, "died"),
        (2, "clean"),
        (3, "died"),
        (4, "died"),
    ]


def test_at_rest_the_record_file_is_complete_within_two_seconds_and_open_to_readers(folder: Path) -> None:
    script(
        """
        import duckdb
        journal = opened(folder, rest_s=0.7)
        path = str(folder / 'journal.duckdb')
        def count():
            if not os.path.exists(path) or os.path.exists(path + '.wal'):
                return -1
            try:
                with duckdb.connect(path, read_only=True) as con:
                    return con.execute('SELECT count(*) FROM entries').fetchone()[0]
            except duckdb.Error:
                return -1
        for total in (30, 60):
            while len(journal.records('flow-a').entries) < total:
                journal.append(entry(journal))
            began = time.monotonic()
            while count() != total:
                assert time.monotonic() - began < 20
                time.sleep(0.05)
            print(time.monotonic() - began)
        """,
        folder,
    )
    assert read_journal(folder, seal=KeySeal()).flows()[0].id == FLOW


def test_a_busy_kernel_starts_no_ingest_between_its_entries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[float] = []

    def start(where: str) -> subprocess.Popen[bytes]:
        started.append(time.monotonic())
        return subprocess.Popen([sys.executable, "-c", ""])

    monkeypatch.setattr(spawn, "start_ingest", start)
    journal = opened(folder, rest_s=0.3)
    ends = time.monotonic() + 1.0
    while time.monotonic() < ends:
        journal.append(entry(journal))
        time.sleep(0.01)
    assert started == []
    wait_for(lambda: started)
    journal.append(entry(journal, status=Status.RUNNING))
    time.sleep(0.8)
    assert len(started) == 1, "while something runs the processor is the notebook's"
    journal.close(clean=True)
    assert len(started) == 2


def test_a_notebooks_own_duckdb_py_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "duckdb.py").write_text("raise SystemExit('the wrong one')")
    script(
        """
        from keel_notebook.journal import spawn
        journal = opened(folder)
        journal.append(entry(journal))
        spawn.ingest_now(folder)
        """,
        tmp_path / ".keel",
        cwd=tmp_path,
    )
    assert rows(tmp_path / ".keel", "SELECT count(*) FROM entries") == [(1,)]


def test_c87_the_ingest_is_limited_and_the_users_duckdb_is_not(folder: Path) -> None:
    journal = opened(folder)
    journal.append(entry(journal))
    found = spawn.query(folder, "SELECT current_setting('threads'), current_setting('memory_limit')")[1]
    assert found == [(1, "244.1 MiB")]
    assert "duckdb" not in {name for name in sys.modules if name == "keel_notebook.journal.duckdb"}
    assert duckdb.execute("SELECT current_setting('memory_limit')").fetchall() != [("244.1 MiB",)]


def test_a_newer_record_file_is_left_alone_and_named(folder: Path) -> None:
    journal = opened(folder)
    journal.append(entry(journal))
    spawn.ingest_now(folder)
    with duckdb.connect(str(folder / "journal.duckdb")) as con:
        con.execute("INSERT INTO keel_schema VALUES (2)")
    content = (folder / "journal.duckdb").read_bytes()
    journal.append(entry(journal))
    with pytest.raises(JournalUnreachableError, match="newer version"):
        spawn.ingest_now(folder)
    assert (folder / "journal.duckdb").read_bytes() == content
    assert len(opened(folder).records(FLOW).entries) == 2
