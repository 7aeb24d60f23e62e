"""The report: one row a figure, with its bound and whether it holds."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure next to what it is compared with in the same run."""

    what: str
    measured: float
    unit: str
    against: str
    bound: float | None
    detail: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the bound holds; None where there is none."""
        return None if self.bound is None else self.measured <= self.bound


def markdown(figures: list[Figure]) -> str:
    """The figures as a table."""
    head = "| what | measured | bound | against, in the same run | |\n| --- | --- | --- | --- | --- |\n"
    verdict = {True: "holds", False: "**missed**", None: ""}
    rows = (
        f"| {f.what} | {f.measured:.3g} {f.unit} | {'' if f.bound is None else f'{f.bound:.3g} {f.unit}'} "
        f"| {f.against} | {verdict[f.holds]}{'; ' + f.detail if f.detail else ''} |\n"
        for f in figures
    )
    return head + "".join(rows)


def write(figures: list[Figure], folder: Path) -> None:
    """Write ``bench.md`` and ``bench.json`` into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.md").write_text(markdown(figures), "utf-8")
    (folder / "bench.json").write_text(json.dumps([asdict(f) | {"holds": f.holds} for f in figures], indent=1), "utf-8")
