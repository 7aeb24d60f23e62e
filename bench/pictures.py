"""The plots of the report: one bar for each tool, log scale, one picture for each question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

from bench.contest import Row
from bench.tools import Tool

matplotlib.use("agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import NullFormatter

_OURS = "#1f6f5c"
_THEIRS = "#b9bec7"


def draw(rows: Sequence[Row], titles: dict[str, str], folder: Path, *, prefix: str = "") -> list[Path]:
    """``record.png`` (against plain) and ``restore.png`` (seconds) in ``folder``; rows with a fault are hatched."""
    works = [work for work in titles if any(row.work == work and row.record_s for row in rows)]
    plain = {row.work: row.record_s for row in rows if row.tool == Tool.name}
    questions = {
        "record.png": ("recording run, times the plain run", lambda row: row.record_s / plain.get(row.work, 1.0)),
        "restore.png": ("new kernel to everything back, seconds", lambda row: row.restore_s),
    }
    made = []
    for name, (label, measure) in questions.items():
        figure, axes = plt.subplots(1, len(works), figsize=(3.1 * len(works), 2.8), squeeze=False)
        for axis, work in zip(axes[0], works, strict=True):
            shown = [
                row
                for row in rows
                if row.work == work and measure(row) and (row.tool != Tool.name or name == "restore.png")
            ]
            bars = axis.barh(
                [row.tool for row in shown],
                [measure(row) for row in shown],
                color=[_OURS if row.tool.startswith("keel") else _THEIRS for row in shown],
            )
            for bar, row in zip(bars, shown, strict=True):
                bar.set_hatch("///" if row.wrong else "")
                axis.text(
                    bar.get_width(), bar.get_y() + bar.get_height() / 2, f" {measure(row):.2g}", va="center", fontsize=7
                )
            axis.set_xscale("log")
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.margins(x=0.25)
            axis.invert_yaxis()
            axis.set_title(titles[work], fontsize=8)
            axis.tick_params(labelsize=7)
            for side in ("top", "right"):
                axis.spines[side].set_visible(False)
        figure.suptitle(f"{label} (log; hatched: something was lost or wrong)", fontsize=9)
        figure.tight_layout()
        made.append(folder / f"{prefix}{name}")
        figure.savefig(made[-1], dpi=110)
        plt.close(figure)
    return made
