"""From what a run measured (``contest.json``, ``matrix.json``, ``bench.md``) to the report and docs/comparison.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.contest import Row, table
from bench.loop import LoopRow, loop_table
from bench.matrix import Found
from bench.matrix import table as matrix_table
from bench.pictures import draw

_HOW = """
Every figure is one run on one machine: read differences of 2x as real, smaller ones as noise. *Record* is the run of
all cells with all saving; *all back after* is the time from a new kernel with its imports done until everything is
there again (elastic-kernel brings back while it starts: from start to ready; marimo runs as a script: its start is in
it). A tool that is not installed is not shown; one that cannot do a thing is shown so.
"""


_PROBES = """
Each is run in real kernels that are killed (marimo: as a script that ends). `-`: the tool claims nothing of the kind,
or cannot be asked. Tools that keep a session (dill, %store, Kishu, elastic-kernel) bring it back as a whole; the
others, and keel, run all cells again. Row o asks keel in auto mode with `%keel restore`: a marked step that is run a
second time is the same step, and replays. In row m the function of the loop stands in a cell of its own.
"""


def write_report(folder: Path) -> None:
    """``report.md`` and its plots beside the JSON files in ``folder``."""
    parts = ["# Benchmark report\n", _HOW]
    parts += _contest(folder, folder, command=True)
    parts += _loop(folder, command=True)
    parts += _matrix(folder, command=True)
    figures = folder / "bench.md"
    if figures.exists():
        parts += ["## Figures of keel\n\n`python -m bench WORKLOAD`\n\n", figures.read_text("utf-8")]
    (folder / "report.md").write_text("\n".join(parts), "utf-8")


def write_page(folder: Path, page: Path) -> None:
    """The comparison page of the docs, with its pictures in ``img`` beside it."""
    parts = [
        "# Compared with others\n",
        "Tools that keep the work of a notebook over the death of its kernel, or spare running it again, measured with",
        "the same work and the same probes. `make bench-peers` installs them beside this repository, `make bench`",
        "measures, `make comparison` writes this page from the last report.\n",
    ]
    parts += _matrix(folder, command=False)
    parts += [_HOW, *shown] if (shown := _contest(folder, page.parent / "img", command=False)) else []
    parts += _loop(folder, command=False)
    page.write_text("\n".join(parts).rstrip("\n") + "\n", "utf-8")


def _read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def _contest(folder: Path, pictures: Path, *, command: bool) -> list[str]:
    found = _read(folder / "contest.json")
    if not found:
        return []
    rows = [Row(**row) for row in found["rows"]]
    made = draw(rows, found["titles"], pictures, prefix="" if command else "bench-")
    parts = ["## The same work\n"]
    if found["scale"] != 1:
        parts.append(f"The works had {found['scale']:g} of their size.\n")
    if command:
        parts.append(f"`python -m bench contest --scale {found['scale']:g}`\n")
    beside = "" if command else "img/"
    parts += [f"![{one.stem}]({beside}{one.name})\n" for one in made]
    for name, title in found["titles"].items():
        if mine := [row for row in rows if row.work == name]:
            parts.append(table(mine, title))
    return parts


def _loop(folder: Path, *, command: bool) -> list[str]:
    found = _read(folder / "loop.json")
    if not found:
        return []
    how = "`python -m bench loop`\n\n" if command else ""
    return [f"{how}{loop_table([LoopRow(**row) for row in found])}"]


def _matrix(folder: Path, *, command: bool) -> list[str]:
    found = _read(folder / "matrix.json")
    if not found:
        return []
    parts = ["## Sixteen probes\n", _PROBES]
    if command:
        parts.append("`python -m bench matrix`\n")
    return [*parts, matrix_table([Found(**one) for one in found])]
