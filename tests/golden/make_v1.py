"""Made ``v1/``, once. Not run by the tests: what is in ``v1/`` is frozen, this says how it came to be.

python -m tests.golden.make_v1 FOLDER
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
import zlib
from pathlib import Path

import duckdb
from msgspec.structs import replace

from keel_notebook.core.model import Blob, Digest, Entry, FlowId, Input, Kind, Payload, Problem, Status, Write, entry_id
from keel_notebook.journal import ingest, liveness
from keel_notebook.journal.disk import DiskJournal, open_journal
from keel_notebook.journal.flows import FlowSeen, find_flow, note_first_step
from keel_notebook.journal.folder import Folder
from tests.journal.journals import KeySeal, drop

KEY = b"golden"


class Ticking:
    """A clock that moves by a second whenever it is asked."""

    at = 1_800_000_000.0

    def now(self) -> float:
        self.at += 1.0
        return self.at

    def monotonic(self) -> float:
        return self.at


def kernel(folder: Path, clock: Ticking) -> DiskJournal:
    return open_journal(folder, clock=clock, seal=KeySeal(KEY), notebook="/n/a.ipynb", cwd="/n", rest_s=None)


def first_life(journal: DiskJournal, flow: FlowSeen) -> None:
    load = step(
        journal, flow.id, "load", source="df = load()", writes=(Write("df", Digest("d" * 32), "DataFrame", 80),)
    )
    journal.append(replace(load, status=Status.RUNNING, writes=()))
    content = b"golden payload " * 2000
    journal.append(
        replace(load, payload=Payload(journal.blob(content), bytes=len(content)), outputs=journal.blob(b"out"))
    )
    fit = step(journal, flow.id, "fit", inputs=(Input("df", Digest("d" * 32), preview="80 rows", producer="load"),))
    journal.append(replace(fit, status=Status.FAILED, error=Problem("ValueError"), took_s=0.5))
    journal.append(step(journal, flow.id, "fit", kind=Kind.CALL, call="ask", key="1"))
    journal.append(step(journal, flow.id, "fit", kind=Kind.RETIRE, key="rerun"))
    journal.append(step(journal, FlowId("default"), "elsewhere"))


def step(journal: DiskJournal, flow: FlowId, name: str, **fields: object) -> Entry:
    seq = journal.next_seq()
    fields = {"kind": Kind.STEP, "status": Status.OK, "code": Digest("c" * 32), "started_at": 1.8e9 + seq} | fields
    return Entry(entry=entry_id(journal.run, seq), flow=flow, run=journal.run, seq=seq, step=name, **fields)  # type: ignore[arg-type]


def main(target: Path) -> None:
    for known in ("host", "boot"):
        setattr(liveness, known, lambda known=known: f"golden-{known}")
    liveness.born = lambda pid: 12.5 if pid == os.getpid() else None  # type: ignore[assignment]
    liveness.pid_space = lambda: 1
    os.getpid = lambda: 4321  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / ".keel"
        clock = Ticking()
        first = kernel(folder, clock)
        flow = note_first_step(find_flow(folder, notebook=folder.parent / "a.ipynb"), Digest("c" * 32))
        first_life(first, flow)
        first.close(clean=True)
        ingest.ingest(Folder(folder), wait_s=5)
        second = kernel(folder, clock)
        second.append(step(second, flow.id, "fit", status=Status.RUNNING))
        second._flusher.stop(5)
        second.append(
            step(second, flow.id, "fit", kind=Kind.CALL, call="ask", key="2", payload=Payload(Blob(3, b"abc")))
        )
        listed = {str(flow.id): [one.to_map() for one in second.records(flow.id).entries] for flow in [flow]}
        drop(second)
        write(target, folder, {"flow": flow.id, "entries": listed[flow.id]})


def write(target: Path, folder: Path, expected: dict[str, object]) -> None:
    files = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = Path(where) / name
            if not name.startswith("journal."):
                packed = base64.b64encode(zlib.compress(path.read_bytes())).decode()
                files[str(path.relative_to(folder))] = packed
    (target / "files.json").write_text(json.dumps(files, indent=1, sort_keys=True) + "\n")
    (target / "expected.json").write_text(json.dumps(expected, indent=1, default=lambda raw: raw.hex()) + "\n")
    with duckdb.connect(str(folder / "journal.duckdb"), read_only=True) as con:
        lines = [sql for (sql,) in con.execute("SELECT sql FROM duckdb_tables() ORDER BY table_name").fetchall()]
        lines += [
            sql.rstrip() for (sql,) in con.execute("SELECT sql FROM duckdb_views() WHERE NOT internal").fetchall()
        ]
        for (table,) in con.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall():
            columns = [name for name, *_ in con.execute(f"DESCRIBE {table}").fetchall()]
            for row in con.execute(f"SELECT {', '.join(map(literal, columns))} FROM {table}").fetchall():
                lines.append(f"INSERT INTO {table} VALUES ({', '.join(row)});")
    text = "\n".join(line if line.endswith(";") else line + ";" for line in lines)
    (target / "journal.sql").write_text(text.replace(str(folder.parent), "/n") + "\n")


def literal(column: str) -> str:
    # Text of any value that DuckDB reads back into the column's type.
    quoted = f"""'''' || replace("{column}"::VARCHAR, '''', '''''') || ''''"""
    return f"""CASE WHEN "{column}" IS NULL THEN 'NULL' ELSE {quoted} END"""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
