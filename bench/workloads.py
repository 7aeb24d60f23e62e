"""What is measured: each function gives figures, every one against a floor of the same run."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from bench import payloads
from bench.auto import overhead_of_auto
from bench.calls import durable_calls
from bench.kernels import TimedKernel
from bench.modules import local_modules
from bench.report import Figure

LOAD = "%load_ext keel_notebook"
_START = """
import time, sys
from IPython.core.interactiveshell import InteractiveShell
import IPython, ipykernel.zmqshell
shell = InteractiveShell.instance()
began = time.perf_counter()
shell.run_line_magic("load_ext", "keel_notebook")
print(time.perf_counter() - began, sorted({"duckdb", "ipywidgets", "rich", "click", "numpy"} & set(sys.modules)))
"""


def load_ext(folder: Path) -> Iterator[Figure]:
    """`%load_ext` in a fresh IPython, warm disk."""
    took, loaded = [], ""
    for _ in range(7):
        done = subprocess.run([sys.executable, "-c", _START], capture_output=True, text=True, check=True, cwd=folder)
        seconds, loaded = done.stdout.split(" ", 1)
        took.append(float(seconds))
    yield Figure(
        "%load_ext", statistics.median(took) * 1000, "ms", "IPython already started", 60, f"imports {loaded.strip()}"
    )


def trivial_steps(folder: Path, count: int = 150) -> Iterator[Figure]:
    """The same cell plain, recorded and replayed, interleaved in one kernel."""
    kernel = TimedKernel(folder)
    kernel.run(LOAD)
    plain, recorded, replayed = [], [], []
    for at in range(count):
        plain.append(kernel.run(f"x{at} = {at}")[0])
        recorded.append(kernel.run(f"%%keel_step s{at}\nx{at} = {at}")[0])
    kernel.kill()
    kernel = TimedKernel(folder)
    kernel.run(LOAD)
    again = []
    for at in range(count):
        again.append(kernel.run(f"x{at} = {at}")[0])
        replayed.append(kernel.run(f"%%keel_step s{at}\nx{at} = {at}")[0])
    kernel.kill()
    floor, floor_again = statistics.median(plain), statistics.median(again)
    against = f"the same cell plain ({floor * 1000:.2f} ms)"
    yield Figure("a trivial step recorded", (statistics.median(recorded) - floor) * 1000, "ms more", against, 2)
    yield Figure("a trivial step replayed", (statistics.median(replayed) - floor_again) * 1000, "ms more", against, 2)


_ARRAYS = "import numpy as np\n{a} = np.random.default_rng(0).random((5, 25_000_000))"
_FRAME = """import numpy as np, pandas as pd
rng = np.random.default_rng(0)
columns = {{f"f{{i}}": rng.random(2_000_000) for i in range(6)}}
columns |= {{f"i{{i}}": rng.integers(0, 9, 2_000_000) for i in range(2)}}
columns |= {{f"s{{i}}": pd.Series(rng.integers(0, 10**6, 2_000_000)).astype(str).astype("str") for i in range(2)}}
{a} = pd.DataFrame(columns)
del columns"""


def large_values(folder: Path) -> Iterator[Figure]:
    """Record and restore of 1 GB of arrays and of a frame with arrow strings."""
    for label, body, gigabytes in (("1 GB array", _ARRAYS, 1.0), ("2M x 10 frame, arrow strings", _FRAME, 0.17)):
        name = "big"
        plain = TimedKernel(folder)
        plain.run("import numpy, pandas")
        base = plain.run(body.format(a=name))[0]
        floor_peak = plain.peak_kib()
        plain.kill()
        kernel = TimedKernel(folder)
        kernel.run(LOAD + "\nimport numpy, pandas")
        step = f"%%keel_step {label.split()[1]}\n" + body.format(a=name)
        recorded = kernel.run(step)[0]
        peak = kernel.peak_kib()
        kernel.run("import time\nget_ipython()._keel_session.attached().journal.flush()")
        kernel.kill()
        yield Figure(
            f"record, {label}",
            recorded / base,
            "x",
            f"the same cell plain ({base:.2f} s)",
            1.15 if gigabytes >= 1 else None,
        )
        yield Figure(f"memory beside it, {label}", (peak - floor_peak) / 1024, "MB", "the same cell plain", 64)
        kernel = TimedKernel(folder)
        kernel.run(LOAD + "\nimport numpy, pandas")
        whole = kernel.run(step)[0]
        row = next(iter(kernel.steps().values())) if len(kernel.steps()) == 1 else kernel.steps()[label.split()[1]]
        assert row["decision"] == "replayed", row
        kernel.run(f"assert {name} is not None" + (f"\n{name}[0, 0] += 1" if gigabytes >= 1 else f"\n{name}['n'] = 1"))
        kernel.kill()
        yield Figure(
            f"restore, {label}",
            row["replay_s"] * 1000,
            "ms",
            f"whole cell {whole * 1000:.0f} ms",
            5 if gigabytes >= 1 else 100,
        )


_ATTACH = """
import sys, time
from pathlib import Path
from bench.attach import {what}
print({what}(Path(sys.argv[1])))
"""


def attach(folder: Path) -> Iterator[Figure]:
    """A kernel attaches to a flow with 10,000 entries, ingested and not."""

    def child(what: str) -> float:
        done = subprocess.run(
            [sys.executable, "-c", _ATTACH.format(what=what), str(folder)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"`{what}` of a flow with 10,000 entries failed: {done.stderr.strip()[-2000:]}")
        return float(done.stdout)

    child("fill")
    took = [child("attach") for _ in range(5)]
    yield Figure("attach to 10,000 entries, in segments", statistics.median(took) * 1000, "ms", "a fresh process", 300)
    child("ingest")
    took = [child("attach") for _ in range(5)]
    yield Figure("attach to 10,000 entries, ingested", statistics.median(took) * 1000, "ms", "a fresh process", 300)


def run_all(folder: Path, count: int = 200) -> Iterator[Figure]:
    """Run All of a replayed notebook of 200 steps against nbclient's own time for 200 `pass` cells."""

    def run(sources: list[str]) -> float:
        book = nbformat.v4.new_notebook()
        book.cells = [nbformat.v4.new_code_cell(source) for source in sources]
        client = NotebookClient(book, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
        with client.setup_kernel():
            client.execute_cell(book.cells[0], 0)
            began = time.perf_counter()
            for at, cell in enumerate(book.cells[1:], 1):
                client.execute_cell(cell, at)
            return time.perf_counter() - began

    steps = [LOAD, *(f"%%keel_step r{at}\nv{at} = [{at}] * 10" for at in range(count))]
    run(steps)
    floors, replays = [], []
    for _ in range(3):
        floors.append(run(["pass"] * (count + 1)))
        replays.append(run(steps))
    floor, replay = statistics.median(floors), statistics.median(replays)
    more = (replay - floor) / count * 1000
    yield Figure("Run All of 200 replayed steps", more, "ms a cell more", f"200 `pass` cells ({floor:.2f} s)", 3)


WORKLOADS: dict[str, Callable[[Path], Iterator[Figure]]] = {
    "load": load_ext,
    "trivial": trivial_steps,
    "large": large_values,
    "digests": payloads.digests,
    "records": payloads.records,
    "inputs": payloads.inputs,
    "columns": payloads.columns,
    "attach": attach,
    "runall": run_all,
    "auto": overhead_of_auto,
    "calls": durable_calls,
    "modules": local_modules,
}
