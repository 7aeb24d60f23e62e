"""The same calls in keelrun, DBOS on SQLite and joblib.Memory, where `make bench-peers` installed them.

They live in a virtual environment of their own, ``.venv-peers``: they are measured against, never depended upon.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.report import Figure

PYTHON = Path(__file__).resolve().parents[1] / ".venv-peers" / "bin" / "python"

_TIMED = """
import json, statistics, sys, time
def timed(call, count):
    took = []
    for i in range(count):
        began = time.perf_counter(); call(i); took.append(time.perf_counter() - began)
    return statistics.median(took)
def f(i): return i * 2
"""
_KEELRUN = (
    _TIMED
    + """
from keel_core import KeelCore
began = time.perf_counter()
core = KeelCore(journal_path="keelrun.db")
core.enter_flow("py:bench:main", "0", code_hash="x")
def call(i):
    asked = {"v": 1, "target": "py:f", "op": "f", "idempotent": True, "args_hash": str(i)}
    return core.execute(asked, lambda attempt: {"status": "ok", "payload": f(i)})
call_s = timed(call, 10_000)
out = {"call": call_s, "whole": time.perf_counter() - began}
core.exit_flow("completed")
print("FIGURES" + json.dumps(out))
"""
)
_DBOS = (
    _TIMED
    + """
from dbos import DBOS
DBOS(config={"name": "bench", "system_database_url": "sqlite:///dbos.sqlite", "log_level": "ERROR"})
step = DBOS.step()(f)
@DBOS.workflow()
def flow(count): return timed(step, count)
DBOS.launch()
print("FIGURES" + json.dumps({"call": flow(100)}))
DBOS.destroy()
"""
)
_JOBLIB = (
    _TIMED
    + """
import joblib
kept = joblib.Memory("joblib", verbose=0).cache(f)
print("FIGURES" + json.dumps({"call": timed(kept, 1000), "again": timed(kept, 1000)}))
"""
)


def against_peers(folder: Path, found: Mapping[str, float]) -> Iterator[Figure]:
    """Keel's figures against those of the peers. Nothing where they are not installed."""
    if not PYTHON.exists():
        return

    def peer(script: str) -> dict[str, float]:
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("KEEL_", "PYTHON"))}
        done = subprocess.run(
            [PYTHON, "-c", script], capture_output=True, text=True, check=True, cwd=folder, env=environ
        )
        figures: dict[str, float] = json.loads(done.stdout.split("FIGURES")[1])
        return figures

    def row(what: str, ours: float, whose: str, theirs: float, bound: float | None) -> Figure:
        return Figure(what, ours / theirs, "x", f"{whose} ({theirs * 1e6:.0f} µs)", bound)

    first, again = peer(_KEELRUN), peer(_KEELRUN)
    yield row("a durable call", found["recorded"], "keelrun's", first["call"], 0.5)
    yield row("10,000 recorded calls resumed, in a new process", found["fresh"], "keelrun's", again["whole"], 0.25)
    yield row("a durable call", found["recorded"], "a step of DBOS on SQLite", peer(_DBOS)["call"], None)
    joblib = peer(_JOBLIB)
    yield row("a durable call", found["recorded"], "a miss of joblib.Memory", joblib["call"], None)
    yield row("a durable call replayed", found["replayed"], "a hit of joblib.Memory", joblib["again"], None)
