"""A flow with 10,000 entries, and the time that attaching to it takes."""

from __future__ import annotations

import time
from pathlib import Path

from keel_notebook.core.model import Entry, FlowId, Input, Kind, Status, Write, entry_id
from keel_notebook.journal.disk import open_journal
from keel_notebook.journal.spawn import ingest_now
from keel_notebook.payload.seal import OwnerSeal
from keel_notebook.session import SystemClock

_FLOW = FlowId("bench")
_SEAL = OwnerSeal(b"k" * 32)


def _open(folder: Path):
    # It starts no ingest of its own (rest_s): one that ran beside the measurement would move the segments that are to
    # be read, and where it was quick enough an attach met nothing but files that had just gone.
    return open_journal(folder / "attach", clock=SystemClock(), seal=_SEAL, notebook="", cwd="", rest_s=None)


def fill(folder: Path, count: int = 10_000) -> int:
    """Write ``count`` finished entries of 200 steps."""
    journal = _open(folder)
    for at in range(count):
        seq = journal.next_seq()
        journal.append(
            Entry(
                entry=entry_id(journal.run, seq),
                flow=_FLOW,
                run=journal.run,
                seq=seq,
                step=f"s{at % 200}",
                kind=Kind.STEP,
                status=Status.OK,
                code="c0de" * 8,
                source="x = 1\n" * 10,
                inputs=(Input("a", "d" * 32, preview="7"),),
                writes=(Write("x", "d" * 32, "int", 28, "1"),),
                started_at=1.0,
                ended_at=2.0,
                took_s=1.0,
            )
        )
    journal.close(clean=True)
    return count


def attach(folder: Path) -> float:
    """Seconds until the records of the flow are known."""
    began = time.perf_counter()
    journal = _open(folder)
    journal.records(_FLOW)
    took = time.perf_counter() - began
    journal.close(clean=True)
    return took


def ingest(folder: Path) -> int:
    """Bring everything into the DuckDB file."""
    ingest_now(folder / "attach", timeout_s=120)
    return 0
