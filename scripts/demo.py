"""The main promise, shown: a notebook's kernel is killed in the middle of a step, and Run All brings everything back.

One of the examples runs in real kernels, as JupyterLab would run it: once with keel switched off, to know what is
right; once until SIGKILL strikes while ``evaluate`` is under way; and once more from the top. What the journal says
was replayed, what ran, and whether values and outputs are those of the undisturbed run is printed; anything that
differs makes the exit code 1.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from live import CellRun, LiveNotebook
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NOTEBOOK = "clean_and_model.ipynb"
KILLED = "evaluate"
KILL_AFTER = "repeat 2 of 5"


@dataclass
class Outcome:
    """The three runs, what the undisturbed and the last one left in memory, and the journal's own account."""

    plain: list[CellRun]
    killed: list[CellRun]
    again: list[CellRun]
    right_values: dict[str, str]
    values: dict[str, str]
    decisions: dict[str, str]
    why: dict[str, str]

    @property
    def wrong(self) -> list[str]:
        """All that is not as promised, in words; empty when the promise was kept."""
        before_kill = [run.step for run in self.killed if run.step and run.finished]
        return [
            *(f"{name}: another value" for name in self.other_values),
            *(f"{cell}: other outputs" for cell in self.other_outputs),
            *(self._not(step, "replayed") for step in before_kill if self.decisions.get(step) != "replayed"),
            *([] if self.decisions.get(KILLED) == "executed" else [self._not(KILLED, "executed")]),
        ]

    def _not(self, step: str, promised: str) -> str:
        return f"step {step} was not {promised}: {self.why.get(step, 'the journal does not know it')}"

    @property
    def other_values(self) -> list[str]:
        """Names whose value differs, or that only one of the two sessions has."""
        names = self.right_values.keys() | self.values.keys()
        return sorted(name for name in names if self.right_values.get(name) != self.values.get(name))

    @property
    def other_outputs(self) -> list[str]:
        """Cells whose outputs differ from those of the undisturbed run."""
        now = {run.cell: run.outputs for run in self.again}
        return [run.cell for run in self.plain if now.get(run.cell) != run.outputs]

    @property
    def saved_s(self) -> float:
        """Seconds that the replayed steps took the first time, less what putting them back took."""
        first = {run.step: run.seconds for run in self.killed}
        return sum(first[r.step] - r.seconds for r in self.again if self.decisions.get(r.step) == "replayed")


def play(console: Console) -> Outcome:
    """Run the three acts in a temporary copy of the examples and gather what they left."""
    with tempfile.TemporaryDirectory(prefix="keel-demo-") as folder:
        plain_copy, copy = (
            shutil.copytree(EXAMPLES, Path(folder, name), ignore=shutil.ignore_patterns(".keel", ".ipynb_checkpoints"))
            for name in ("plain", "durable")
        )
        log = Path(folder, "kernels.log")

        with LiveNotebook(plain_copy / NOTEBOOK, log=log, KEEL_MODE="off") as kernel:
            plain, right_values = kernel.run_all(), kernel.values()
        _say(console, "Run All with keel switched off", plain, "what is right")

        with LiveNotebook(copy / NOTEBOOK, log=log) as kernel:
            killed = kernel.run_all(on_text=lambda run, text: _kill_in_the_middle(kernel, run, text))
        _say(console, "Run All, and SIGKILL", killed, f"in `{killed[-1].step}`, after “{KILL_AFTER}”")

        with LiveNotebook(copy / NOTEBOOK, log=log) as kernel:
            again, values = kernel.run_all(), kernel.values()
        _say(console, "a new kernel, Run All", again, "everything is there")

        steps = _steps(copy / NOTEBOOK)
        decisions = {step["name"]: step["decision"] for step in steps}
        why = {step["name"]: step["why"] for step in steps}
        return Outcome(plain, killed, again, right_values, values, decisions, why)


def _kill_in_the_middle(kernel: LiveNotebook, run: CellRun, text: str) -> None:
    if run.step == KILLED and KILL_AFTER in text:
        kernel.kill()


def _steps(notebook: Path) -> list[dict[str, Any]]:
    keel = Path(sys.executable).with_name("keel")
    asked = subprocess.run([keel, "status", notebook, "--json"], capture_output=True, text=True, check=True)
    steps: list[dict[str, Any]] = json.loads(asked.stdout)["steps"]
    return steps


def _say(console: Console, act: str, runs: list[CellRun], note: str) -> None:
    console.print(f"  {act:<32}{sum(run.seconds for run in runs):6.1f} s   [dim]{note}[/]")


def show(console: Console, outcome: Outcome) -> None:
    """The table, cell by cell, and the verdict."""
    first = {run.cell: run for run in outcome.killed}
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("step")
    table.add_column("until the kill", justify="right")
    table.add_column("Run All after it")
    table.add_column("took now", justify="right")
    table.add_column("saved", justify="right")
    for run in outcome.again:
        if not run.step:
            continue
        then = first.get(run.cell)
        replayed = outcome.decisions.get(run.step) == "replayed"
        gained = then.seconds - run.seconds if replayed and then else 0
        table.add_row(
            run.step,
            _then(then),
            _decision(outcome.decisions.get(run.step)),
            _time(run.seconds),
            _time(gained) if gained > 0 else "",
        )
    console.print(Padding(table, (1, 0, 1, 2), expand=False))

    steps = [run.step for run in outcome.again if run.step]
    replayed_count = sum(outcome.decisions.get(step) == "replayed" for step in steps)
    console.print(f"  {replayed_count} of {len(steps)} steps replayed, [bold]{outcome.saved_s:.1f} s saved[/]")
    _verdict(console, "values", "names", len(outcome.right_values), outcome.other_values)
    _verdict(console, "outputs", "cells", len(outcome.plain), outcome.other_outputs)
    for line in outcome.wrong:
        console.print(f"  [red]✗ {line}[/]")


def _verdict(console: Console, what: str, unit: str, count: int, others: list[str]) -> None:
    verdict = (
        f"[red]✗ {len(others)} of {count} {unit} differ[/]" if others else f"[green]✓ equal[/]   [dim]{count} {unit}[/]"
    )
    console.print(f"  {what:<8} {verdict} [dim]against the undisturbed run[/]")


def _then(run: CellRun | None) -> Text | str:
    match run:
        case None:
            return Text("not reached", style="dim")
        case CellRun(finished=False):
            return Text("✗ killed", style="red")
        case _:
            return _time(run.seconds)


def _decision(decision: str | None) -> Text:
    return {
        "replayed": Text("↺ replayed", style="green"),
        "executed": Text("▸ executed", style="yellow"),
    }.get(decision or "", Text(decision or "unknown", style="red"))


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def main(console: Console | None = None) -> int:
    """Play and show; 0 if the promise was kept."""
    console = console or Console(highlight=False, width=100)
    console.print(f"\n[bold]keel-notebook[/]: examples/{NOTEBOOK} in real kernels\n")
    outcome = play(console)
    show(console, outcome)
    console.print("\n  See it in JupyterLab: [bold]make lab[/], open clean_and_model.ipynb, Run All.")
    console.print("  While `evaluate` runs, restart the kernel (or `kill -9` it); Run All again.\n")
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
