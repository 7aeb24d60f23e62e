"""Golden journals: rows written before payloads had a schema tag are taken in and replayed (K11, K22, K44)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgpack
import pytest

from keel_notebook.core import flowstate as f
from keel_notebook.core.decide import Response
from keel_notebook.core.model import Blob, Entry, Kind, Payload, Problem, Status, entry_id
from keel_notebook.engine import plain
from keel_notebook.engine.lease import Holder, Lease
from keel_notebook.engine.strict import Identity, Rules, enter
from keel_notebook.errors import DeadError, EnvelopeError
from keel_notebook.journal.memory import MemoryFolder, MemoryJournal
from tests.conformance.interpreter import SEAL
from tests.support.kernels import ManualClock

GOLDEN = Path(__file__).resolve().parents[2].parent / "shared" / "conformance" / "journals"
OWN = Path(__file__).parent / "golden"
KINDS = {"effect": Kind.CALL, "subprocess": Kind.CALL, "time": Kind.TIME, "random": Kind.RANDOM, "marker": Kind.MARKER}
STATUSES = {"ok": Status.OK, "error": Status.FAILED, "running": Status.RUNNING}


def rows_of(path: Path):
    """The flows and steps in a file of SQL."""
    base = sqlite3.connect(":memory:")
    base.row_factory = sqlite3.Row
    base.executescript((path.parent / "schema.sql").read_text("utf-8"))
    base.executescript(path.read_text("utf-8"))
    flows = base.execute("select * from flows").fetchall()
    found = [
        (flow, base.execute("select * from steps where flow_id = ? order by seq", (flow[0],)).fetchall())
        for flow in flows
    ]
    base.close()
    return found


def taken_in(flow, steps, folder, clock):
    """The rows as entries of a journal, under the identity that they name."""
    journal = MemoryJournal(folder, clock=clock, seal=SEAL)
    identity = Identity(flow["entrypoint"], flow["args_hash"], flow["flow_id"], flow["code_hash"])

    def write(kind, key, status=Status.OK, **more):
        seq = journal.next_seq()
        journal.append(
            Entry(entry_id(journal.run, seq), identity.flow, journal.run, seq, "", kind, status, key=key, **more)
        )

    write(Kind.MARKER, f.OPENED, ambient={"code_hash": flow["code_hash"]})
    write(Kind.MARKER, f.ATTEMPT, attempt=1)
    for row in steps:
        raw = row["payload"]
        payload = None if raw is None else Payload(Blob(len(raw), inline=raw), (), (), len(raw))
        error = Problem(row["error_class"]) if row["error_class"] else None
        write(
            KINDS[row["kind"]], row["step_key"], STATUSES[row["outcome"]], occurrence=row["seq"],
            attempt=row["attempt"], payload=payload, error=error,
        )  # fmt: skip
    if flow["status"] != "running":
        write(Kind.MARKER, f.STATUS, ambient={"status": flow["status"]})
    journal.close(clean=False)
    return identity


FILES = [
    path
    for folder in (OWN, GOLDEN)
    if folder.is_dir()
    for path in sorted(folder.glob("*.sql"))
    if path.name != "schema.sql"
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_k44_a_golden_journal_is_replayed_as_it_was_recorded(path, tmp_path):
    for flow, steps in rows_of(path):
        clock, folder = ManualClock(), MemoryFolder()
        identity = taken_in(flow, steps, folder, clock)
        journal = MemoryJournal(folder, clock=clock, seal=SEAL)
        lease = Lease(tmp_path, identity.flow, holder=Holder("new", 1, "b"), clock=clock, locks=False)
        if flow["status"] == "dead":
            with pytest.raises(DeadError):  # K22: never by itself
                enter(identity, journal=journal, clock=clock, lease=lease, rules=Rules())
            continue
        strict = enter(identity, journal=journal, clock=clock, lease=lease, rules=Rules(Response.FAIL))
        assert strict.pure == (flow["status"] == "completed")
        told(strict, steps)


def told(strict, steps):
    for row in steps:
        ran = []

        def effect(row=row, ran=ran):
            ran.append(row["seq"])
            return {"result": "ok", "payload": "live", "attempts": 1}

        if row["kind"] in {"time", "random"}:
            assert strict.value(KINDS[row["kind"]], row["step_key"], "live") == msgpack.unpackb(row["payload"])
            continue
        outcome = strict.call(row["step_key"], effect)
        if row["outcome"] == "running":
            assert ran == [row["seq"]], "K10: it began and did not end, so it runs again"
        elif row["outcome"] == "ok":
            assert (outcome["payload"], outcome["attempts"], ran) == (
                msgpack.unpackb(row["payload"]), row["attempt"], [],
            )  # fmt: skip
        else:
            assert (outcome["error"]["class"], ran) == (row["error_class"], [])


def test_k44_both_forms_of_a_payload_decode_and_no_other():
    assert plain.opened(bytes.fromhex("CE6A518600")) == 0x6A518600
    assert plain.opened(plain.envelope({"rows": 120})) == {"rows": 120}
    assert plain.opened(bytes.fromhex("81A4726F777378")) == {"rows": 120}
    other = msgpack.packb({"schema": "keel.step/v9", "payload": 1})
    with pytest.raises(EnvelopeError, match="another version"):
        plain.opened(other)


@pytest.mark.parametrize("at", range(6))
def test_z13_a_payload_with_a_missing_end_is_a_named_error_and_no_guess(at):
    raw = plain.envelope([1, "two", {"three": 3.5}])
    with pytest.raises(EnvelopeError, match="E004"):
        plain.opened(raw[: -1 - at])
