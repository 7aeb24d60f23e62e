"""The same work in a plain kernel, in keel and in each peer: what recording costs, how soon everything is back.

Every figure is of this run; a tool that fails, takes longer than it may, or brings back something else is shown so.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.payloads import NODES
from bench.toolkernel import LIMIT_S
from bench.tools import Cell, Keel, Life, Tool


class KeelRestore(Keel):
    """Keel, everything at once with `%keel restore` instead of Run All."""

    name = "keel, %keel restore"
    runs_again = False

    def back(self, kernel: Any, cells: Sequence[Cell], life: Life) -> None:
        """`%keel restore`."""
        life.errors += filter(None, [kernel.run("%keel restore")[1]])


@dataclass(frozen=True)
class Work:
    """A small notebook. ``check`` says in one expression whether everything is there."""

    title: str
    imports: str
    cells: Sequence[Cell]
    check: str
    pictures: int = 0
    """Pictures that its cells show."""


@dataclass(frozen=True)
class Row:
    """What one tool did with one work."""

    work: str
    tool: str
    record_s: float = 0.0
    restore_s: float = 0.0
    disk_mb: float = 0.0
    peak_mb: float = 0.0
    wrong: str = ""
    """What was lost or wrong, or why there is no figure; empty if all is well."""


NUMPY = "import numpy as np, pandas as pd"


def works(scale: float) -> dict[str, Work]:
    """The works at a scale; 1 is that of the report."""

    def size(full: int) -> int:
        return max(10, int(full * scale))

    frame = f"""rng = np.random.default_rng(0)
n = {size(2_000_000)}
texts = pd.array([f"user {{i:06d}}" for i in range(200_000)], dtype="str")
df = pd.DataFrame({{f"x{{i}}": rng.random(n) for i in range(6)}})
df["k"] = rng.integers(0, 1000, n)
df["q"] = rng.integers(0, 50, n)
df["s1"] = texts.take(rng.integers(0, 1000, n))
df["s2"] = texts.take(rng.integers(0, 200_000, n))"""
    group = 'agg = df.groupby(["s1", "q"]).agg(m=("x0", "mean"), t=("x1", "sum")).reset_index()'
    names = ("np", "pd")
    fit = f"model = RandomForestClassifier(n_estimators={size(60)}, random_state=0, n_jobs=1).fit(X, y)"
    return {
        "frame": Work(
            "2M x 10 frame with strings, group and merge",
            NUMPY,
            [
                Cell(frame, (), ("df",), uses=names),
                Cell(group, ("df",), ("agg",)),
                Cell('merged = df.merge(agg, on=["s1", "q"], how="left")', ("df", "agg"), ("merged",)),
            ],
            "(len(df), len(agg), round(float(merged['t'].sum()), 3), str(merged['s2'].iloc[-1]))",
        ),
        "array": Work(
            "1 GB array",
            NUMPY,
            [
                Cell(f"arr = np.random.default_rng(0).random({size(125_000_000)})", (), ("arr",), uses=names),
                Cell("total = float(arr.sum())", ("arr",), ("total",)),
            ],
            "(arr.shape, round(float(arr[::1000].sum()), 3), round(total, 3))",
        ),
        "small": Work(
            "200 small steps",
            NUMPY,
            [
                Cell("v0 = 0", (), ("v0",)),
                *(Cell(f"v{i} = v{i - 1} + 1", (f"v{i - 1}",), (f"v{i}",)) for i in range(1, size(200))),
            ],
            f"(v0, v{size(200) - 1})",
        ),
        "model": Work(
            "a model fit",
            f"{NUMPY}\nfrom sklearn.ensemble import RandomForestClassifier\n"
            "from sklearn.datasets import make_classification",
            [
                Cell(
                    "X, y = make_classification(n_samples=20_000, n_features=20, n_informative=10, random_state=0)",
                    (),
                    ("X", "y"),
                    uses=("make_classification",),
                ),
                Cell(fit, ("X", "y"), ("model",), uses=("RandomForestClassifier",)),
                Cell("score = float(model.score(X, y))", ("model", "X", "y"), ("score",)),
            ],
            "(round(score, 4), int(model.predict(X[:100]).sum()))",
        ),
        "plots": Work(
            "12 plots",
            f"{NUMPY}\nimport matplotlib.pyplot as plt",
            [
                Cell(
                    f"walk{at} = np.random.default_rng({at}).normal(size={size(50_000)}).cumsum()\n"
                    f"fig{at}, ax{at} = plt.subplots()\nax{at}.plot(walk{at})\nplt.show()",
                    (),
                    (f"walk{at}",),
                    uses=("np", "plt"),
                )
                for at in range(12)
            ],
            "(len(walk0), round(float(walk11[-1]), 6))",
            pictures=12,
        ),
        "graph": Work(
            "1M Python objects that share each other",
            NUMPY,
            [
                Cell(NODES.replace("200_000", str(size(200_000))), (), ("nodes", "index")),
                Cell("total = sum(len(d['nbr']) for d in nodes)", ("nodes",), ("total",)),
            ],
            "(len(nodes), len(index), total, index['n7'] is nodes[7])",
        ),
        "notebook": Work(
            "an analysis of 40 cells", NUMPY, _analysis(size(50_000)), "(len(table), round(float(last), 6))"
        ),
    }


def _analysis(rows: int) -> list[Cell]:
    made = f"rng = np.random.default_rng(1)\ntable = pd.DataFrame({{f'c{{i}}': rng.random({rows}) for i in range(5)}})"
    cells = [Cell(made, (), ("table",), uses=("np", "pd")), Cell("begun = 0.0", (), ("begun",))]
    for at in range(19):
        cells.append(Cell(f"part{at} = table[table.c{at % 5} > {at / 40}].describe()", ("table",), (f"part{at}",)))
        before = "begun" if at == 0 else f"last{at - 1}"
        cells.append(
            Cell(f"last{at} = {before} + float(part{at}.loc['mean'].sum())", (before, f"part{at}"), (f"last{at}",))
        )
    return [*cells[:-1], Cell(cells[-1].source.replace("last18 =", "last ="), cells[-1].reads, ("last",))]


def one(kind: type[Tool], name: str, work: Work) -> Row:
    """One tool, one work, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="keel-contest-", ignore_cleanup_errors=True) as folder:
        tool = kind(Path(folder))
        tool.imports = work.imports
        try:
            first = tool.first(work.cells, [work.check])
            right = first[0]
            if first.errors:
                return Row(name, kind.name, first.seconds, wrong=f"recording: {first.errors[0]:.80}")
            disk = tool.bytes() / 1e6
            again = tool.again(work.cells, [work.check])
        except (TimeoutError, subprocess.TimeoutExpired):
            return Row(name, kind.name, wrong=f"a cell took longer than {LIMIT_S:.0f} s")
        except Exception as error:  # noqa: BLE001 - a peer may break in any way: that is what is shown
            return Row(name, kind.name, wrong=f"{type(error).__name__}: {error!s:.60}")
        wrong = again.errors[0][:80] if again.errors else ""
        if not wrong and again[0] != right:
            wrong = f"{again[0]:.60} instead of {right}"
        if not wrong and work.pictures:
            seen = [shown for shown, _ in again.shown].count("image")
            lost = f"{seen} of {work.pictures} pictures shown again" if seen != work.pictures else ""
            wrong = lost if tool.draws else "pictures not compared: it runs as a script"
        return Row(name, kind.name, first.seconds, again.seconds, disk, first.peak_mb, wrong)


def contest(tools: Sequence[type[Tool]], *, scale: float, only: Sequence[str] = ()) -> list[Row]:
    """Every tool that is installed with every work; the plain kernel first."""
    rows = []
    for name, work in works(scale).items():
        if only and name not in only:
            continue
        for kind in (Tool, Keel, KeelRestore, *tools):
            if kind.there():
                rows.append(one(kind, name, work))
                print(f"{name}: {asdict(rows[-1])}", flush=True)
    return rows


def table(rows: Sequence[Row], title: str) -> str:
    """One work as Markdown."""
    plain = next((row.record_s for row in rows if row.tool == Tool.name), 0.0)
    lines = [
        f"### {title}",
        "",
        "| tool | record | against plain | all back after | on disk | peak memory | lost or wrong |",
    ]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        ratio = f"{row.record_s / plain:.2f}x" if plain and row.record_s else ""
        back = f"{row.restore_s:.3g} s" + (" (all cells again)" if row.tool == Tool.name else "")
        figures = (
            f"{row.record_s:.3g} s",
            ratio,
            back,
            f"{row.disk_mb:.3g} MB",
            f"{row.peak_mb:.0f} MB" if row.peak_mb else "",
        )
        cells = figures if row.restore_s else (figures[0] if row.record_s else "", ratio, "", "", "")
        lines.append(f"| {row.tool} | " + " | ".join(cells) + f" | {row.wrong.replace('|', '/')} |")
    return "\n".join(lines) + "\n"
