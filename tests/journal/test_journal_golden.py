"""Journals that earlier versions wrote open in this one. They are kept as text in ``tests/golden``."""

from __future__ import annotations

import base64
import json
import shutil
import zlib
from pathlib import Path

import duckdb
import pytest

from keel_notebook.core.model import Kind, Status
from keel_notebook.core.ports import RunEnd
from keel_notebook.journal import spawn, troubles
from keel_notebook.journal.flows import find_flow
from keel_notebook.journal.reader import read_journal
from tests.journal.journals import KeySeal, entry, opened

GOLDEN = Path(__file__).parents[1] / "golden"
KEY = KeySeal(b"golden")


@pytest.fixture(params=sorted(path.name for path in GOLDEN.iterdir() if path.is_dir() and path.name.startswith("v")))
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict]:
    """The journal's folder made from its texts, and what has to be found in it."""
    source = GOLDEN / request.param
    folder = tmp_path / ".keel"
    for name, packed in json.loads((source / "files.json").read_text()).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zlib.decompress(base64.b64decode(packed)))
    with duckdb.connect(str(folder / "journal.duckdb")) as con:
        con.execute((source / "journal.sql").read_text())
    return folder, json.loads((source / "expected.json").read_text())


def as_json(entries: list) -> list:
    return json.loads(json.dumps([one.to_map() for one in entries], default=lambda raw: raw.hex()))


def test_a_golden_journal_lists_everything_and_its_seals_hold(golden: tuple[Path, dict]) -> None:
    folder, expected = golden
    reader = read_journal(folder, seal=KEY)
    records = reader.records(expected["flow"])
    assert as_json(records.entries) == expected["entries"]
    assert records.untrusted == frozenset()
    assert {run: seen.end for run, seen in records.runs.items()} == {1: RunEnd.CLEAN, 2: RunEnd.VANISHED}
    assert records.runs[1].start.notebook == "/n/a.ipynb"
    assert {flow.id for flow in reader.flows()} == {expected["flow"], "default"}
    assert len(reader.history(expected["flow"], "fit")) == 5
    payload = next(one.payload for one in records.entries if one.step == "load")
    assert payload is not None
    assert reader.read(payload.head) == b"golden payload " * 2000
    assert troubles(folder) == []


def test_a_golden_journal_is_gone_on_with(golden: tuple[Path, dict]) -> None:
    folder, expected = golden
    (folder.parent / "a.ipynb").write_text("{}")
    flow = find_flow(folder, notebook=folder.parent / "a.ipynb")
    assert flow.id == expected["flow"]
    journal = opened(folder, seal=KEY)
    assert journal.run == 3
    last = journal.records(flow.id).entries[-2]
    assert (last.step, last.status) == ("fit", Status.RUNNING)
    journal.append(entry(journal, "fit", flow=flow.id, started_at=1.9e9))
    spawn.ingest_now(folder)
    assert as_json(journal.records(flow.id).entries)[:-1] == expected["entries"]
    _, rows = spawn.query(folder, f"SELECT step, kind FROM entries WHERE flow = '{flow.id}' ORDER BY stamp")
    assert rows == [(one["step"], one["kind"]) for one in expected["entries"]] + [("fit", Kind.STEP)]


@pytest.mark.parametrize("loss", ["heads", "journal.duckdb", "inbox"])
def test_a_golden_journal_that_lost_a_part_is_rebuilt_from_the_others(golden: tuple[Path, dict], loss: str) -> None:
    folder, expected = golden
    if (folder / loss).is_dir():
        shutil.rmtree(folder / loss)
    else:
        (folder / loss).unlink()
    spawn.ingest_now(folder)
    found = as_json(read_journal(folder, seal=KEY).records(expected["flow"]).entries)
    assert found == [one for one in expected["entries"] if loss != "inbox" or one["run"] == 1]
    rows = spawn.query(folder, "SELECT count(*) FROM entries")[1]
    assert rows == [(len(found) + 1,)]
