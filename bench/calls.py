"""Durable calls and guarded work next to the disk's own speed (DESIGN 10)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.peers import against_peers
from bench.report import Figure

_START = r"""
import json, os, statistics, sys, time
os.environ["JPY_SESSION_NAME"] = os.path.join(os.getcwd(), "a.ipynb")
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.history_manager.enabled = False

def run(cell):
    shell.run_cell(cell).raise_error()

run('''%load_ext keel_notebook
import keel_notebook as keel, time
def f(i): return i * 2
def timed(count, **how):
    took = []
    for i in range(count):
        began = time.perf_counter(); keel.call(f, i, key=i, **how); took.append(time.perf_counter() - began)
    return took
''')
out = {}
"""
_MEASURE = (
    _START
    + r"""
def calls(name, cell):
    run(cell)
    took = shell.user_ns["took"]
    out[name], out[name + "_mean"] = statistics.median(took), statistics.fmean(took[1:])

calls("warm", "%%keel_step warm --ignore timed\ntook = timed(500)\n")
calls("recorded", "%%keel_step calls\ntook = timed(10_000)\n")
began = time.perf_counter()
calls("replayed", "%%keel_step calls\ntook = timed(10_000); again = 1\n")
out["resume"] = time.perf_counter() - began

fd = os.open("floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
floor = []
for _ in range(200):
    began = time.perf_counter(); os.write(fd, b"x" * 400); os.fdatasync(fd); floor.append(time.perf_counter() - began)
out["floor"] = statistics.median(floor)
calls("guarded", "%%keel_step paid\ntook = timed(200, effect='exactly_once')\n")
plain, guarded = [], []
for at in range(60):
    began = time.perf_counter(); run(f"%%keel_step p{at}\nx = 1\n"); plain.append(time.perf_counter() - began)
    began = time.perf_counter(); run(f"%%keel_step g{at} --effect exactly_once\nx = 1\n")
    guarded.append(time.perf_counter() - began)
out["plain_step"], out["guarded_step"] = statistics.median(plain), statistics.median(guarded)
print("FIGURES" + json.dumps(out))
"""
)

_RESUME = (
    _START
    + r"""
began = time.perf_counter()
import keel_notebook.leading
out["imports"] = time.perf_counter() - began
began = time.perf_counter()
run("%%keel_step calls\ntook = timed(10_000); again = 2\n")
out["fresh"] = time.perf_counter() - began
print("FIGURES" + json.dumps(out))
"""
)


def durable_calls(folder: Path) -> Iterator[Figure]:
    """Calls recorded, replayed and guarded, and a guarded step, in one process."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("KEEL_")}
    found: dict[str, float] = {}
    for script in (_MEASURE, _RESUME):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=folder, env=environ
        )
        found |= json.loads(done.stdout.split("FIGURES")[1])
    yield Figure("a durable call", found["recorded"] * 1e6, "µs p50", "the call that is not durable (< 1 µs)", 50)
    yield Figure("durable calls in a row", found["recorded_mean"] * 1e6, "µs each", "10,000 a second", 100)
    yield Figure("a durable call replayed", found["replayed"] * 1e6, "µs p50", "50,000 a second", 20)
    yield Figure("a step of 10,000 recorded calls, resumed", found["resume"], "s", "in the same kernel", None)
    start = f"and {found['imports']:.2f} s for the modules that the first step imports"
    yield Figure("the same in a new process", found["fresh"], "s", start, None)
    floor = found["floor"] * 1e6
    raw = f"write + fdatasync ({floor:.0f} µs)"
    yield Figure("a guarded call, two barriers", found["guarded"] * 1e6, "µs p50", raw, 2.5 * floor)
    more = (found["guarded_step"] - found["plain_step"]) * 1e3
    yield Figure("a guarded step", more, "ms more", f"the step that is not, and 2x {raw}", 2 * floor / 1e3 + 2)
    yield from against_peers(folder, found)
