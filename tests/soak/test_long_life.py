"""A long life in short: thousands of edits, runs and restarts of one notebook. Nothing grows, nothing is ever wrong.

``KEEL_SOAK=N`` (``make soak``) makes the long form of some N / 100 restarts and writes its report to ``build/soak``.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keel_notebook.journal import spawn, troubles

pytestmark = [pytest.mark.crash, pytest.mark.timeout(7200)]

SOAK = int(os.environ.get("KEEL_SOAK", "0"))
LIVES = max(4, SOAK // 100)
ROUNDS = 100 if SOAK else 14
BUDGET_MB = 40
ROOT = Path(__file__).resolve().parents[2]


def live(folder, seed):
    environ = {name: value for name, value in os.environ.items() if not name.startswith("KEEL_")}
    environ |= {"PYTHONPATH": str(ROOT), "KEEL_BUDGET": f"{BUDGET_MB} MB", "IPYTHONDIR": str(folder / ".ipython")}
    environ |= {"XDG_CONFIG_HOME": str(folder / "config")}
    command = [sys.executable, str(Path(__file__).with_name("life.py")), str(folder), str(seed), str(ROUNDS)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def size_mb(folder):
    size = 0
    for file in (folder / "objects").rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # the process that holds the budget removes them meanwhile
            size += file.stat().st_size if file.is_file() else 0
    return size / 1e6


def settled_mb(folder):
    """What the objects take once the process that the last kernel left behind has held the budget."""
    deadline = time.monotonic() + 120
    while (size := size_mb(folder)) > BUDGET_MB and time.monotonic() < deadline:
        time.sleep(0.05)
    return size


def test_thousands_of_edits_runs_and_restarts_let_nothing_grow(tmp_path):
    began, lives, sizes = time.monotonic(), [], []
    for seed in range(LIVES):
        lives.append(live(tmp_path, seed))
        sizes.append(settled_mb(tmp_path / ".keel"))
    assert [life["wrong"] for life in lives] == [[]] * LIVES
    assert troubles(tmp_path / ".keel") == []
    grown = [statistics.median(life["rss"][-3:]) - life["rss"][len(life["rss"]) // 3] for life in lives]
    opened = [life["fds"][-1] - life["fds"][len(life["fds"]) // 3] for life in lives]
    attach = [life["attach_s"] for life in lives]
    if SOAK:
        report(lives, sizes, (grown, opened), time.monotonic() - began)
    assert max(opened) <= 2, opened
    assert statistics.median(grown) <= 16, grown
    assert max(sizes) <= BUDGET_MB, sizes
    # Of the same run; and a constant, because a loaded machine stretches a few milliseconds to anything.
    assert statistics.median(attach[-5:]) <= 3 * statistics.median(attach[:3]) + 0.25, attach
    spawn.ingest_now(tmp_path / ".keel")
    found = spawn.query(tmp_path / ".keel", "SELECT count(*), count(DISTINCT run) FROM entries")[1][0]
    assert found[1] == LIVES
    assert found[0] > LIVES * 10


def report(lives, sizes, more, took_s):
    """The long form as a page; ``more``: by how much memory (MB) and open files of each life grew."""
    grown, opened = more
    attach = [life["attach_s"] for life in lives]
    rows = {
        "restarts of the kernel": f"{len(lives)}",
        "runs of the whole notebook": f"{sum(len(life['round_s']) for life in lives):,}",
        "cells": f"{sum(life['cells'] for life in lives):,}",
        "wrong results": f"{sum(len(life['wrong']) for life in lives)}",
        "memory of the kernel, last against first third of a life": f"{statistics.median(grown):+.1f} MB"
        f" (median; most {max(grown):+.1f} MB)",
        "open files, the same": f"{max(opened):+d} at most",
        "objects in the journal, first 5 and last 5 restarts": f"{statistics.median(sizes[:5]):.0f} MB and"
        f" {statistics.median(sizes[-5:]):.0f} MB (most {max(sizes):.0f} MB; budget {BUDGET_MB} MB)",
        "attach, first 5 and last 5 restarts": f"{statistics.median(attach[:5]) * 1e3:.0f} ms and"
        f" {statistics.median(attach[-5:]) * 1e3:.0f} ms",
        "a run of the notebook, first and last life": f"{statistics.median(lives[0]['round_s']) * 1e3:.0f} ms and"
        f" {statistics.median(lives[-1]['round_s']) * 1e3:.0f} ms",
        "time": f"{took_s / 60:.0f} minutes",
    }
    out = ROOT / "build" / "soak"
    out.mkdir(parents=True, exist_ok=True)
    table = "".join(f"| {what} | {found} |\n" for what, found in rows.items())
    (out / "soak.md").write_text(f"| what | found |\n| --- | --- |\n{table}", "utf-8")
    (out / "soak.json").write_text(json.dumps({"lives": lives, "sizes_mb": sizes}), "utf-8")
