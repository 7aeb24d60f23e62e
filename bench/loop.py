"""A loop of 2,000 calls that cost money, killed at 1,500: what is paid again, what a call costs, what an edit costs."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from bench.toolkernel import LIMIT_S, Kernel
from bench.tools import PEERS, Cell, Dill, Elastic, Joblib, Keel, Kishu, Life, Store, Tool

CALLS = 2_000
KILLED_AT = 1_500
TITLE = f"a loop of {CALLS:,} calls, killed at {KILLED_AT:,}"
_ASK = """import time
def ask(i):
    with open('paid.txt', 'a') as bill: bill.write('x')
    time.sleep({pause})
    return i * 2"""


@dataclass(frozen=True)
class LoopRow:
    """What one tool did with the loop."""

    tool: str
    call_us: float = 0.0
    """What a call takes beyond the plain one, in microseconds; the file that counts calls is in both."""
    resumed_s: float = 0.0
    paid_again: int = -1
    """Calls that were made twice because the kernel died."""
    paid_for_edit: int = -1
    """Calls that were made again because of a new line elsewhere in the cell."""
    wrong: str = ""


class Diskcache(Tool):
    """diskcache's memoize on the function."""

    name = "diskcache"
    python = PEERS / "bin" / "python"
    load = "import diskcache; cache = diskcache.Cache('cache')"


class _Way:
    """How a person writes the loop with a tool: by default as it is, in one cell."""

    define: ClassVar[str] = ""
    loop: ClassVar[str] = f"answers = [ask(i) for i in range({CALLS})]"
    as_is: ClassVar[bool] = False


class _Keel(_Way):
    define = "import keel_notebook as keel"
    loop = f"answers = [keel.call(ask, i) for i in range({CALLS})]"


class _Joblib(_Way):
    define = "ask = mem.cache(ask)"
    as_is = True


class _Diskcache(_Way):
    define = "ask = cache.memoize(name='ask')(ask)"


WAYS: dict[type[Tool], type[_Way]] = {
    Tool: _Way,
    Keel: _Keel,
    Joblib: _Joblib,
    Diskcache: _Diskcache,
    Dill: _Way,
    Store: _Way,
    Kishu: _Way,
    Elastic: _Way,
}


class _Run:
    """One tool in one folder."""

    def __init__(self, kind: type[Tool], folder: Path, pause_s: float) -> None:
        self.tool = kind(folder)
        self.way = WAYS[kind]
        self.bill = folder / "paid.txt"
        self.bill.touch()
        self.setup = f"{_ASK.format(pause=pause_s)}\n{self.way.define}"

    def cell(self, *, edited: bool = False) -> Cell:
        """The cell with the loop; ``edited``: with a line that has nothing to do with the calls."""
        source = self.way.loop + ("\nnote = 'edited'" if edited else "")
        return Cell(source, ("ask",), ("answers",), plain=self.way.as_is)

    def paid(self) -> int:
        """Calls made so far."""
        return self.bill.stat().st_size

    def started(self, *, again: bool = False) -> Kernel:
        """A kernel in which the function is defined."""
        kernel = self.tool.start(again=again)
        _, error = kernel.run(self.setup)
        if error:
            raise RuntimeError(error)
        return kernel

    def whole(self) -> float:
        """Seconds of the loop, never interrupted."""
        kernel = self.started()
        try:
            return self._loop(kernel, self.cell())
        finally:
            kernel.kill()

    def killed(self) -> None:
        """Killed when so many calls were paid."""
        kernel = self.started()
        cell = self.cell()
        kernel.client.execute(cell.source if cell.plain else self.tool.cell(0, cell), allow_stdin=False)
        until = time.perf_counter() + LIMIT_S
        while self.paid() < KILLED_AT:
            if time.perf_counter() > until:
                raise TimeoutError
            time.sleep(0.001)
        kernel.kill()

    def resumed(self) -> tuple[float, int]:
        """Seconds until the answers are there, and calls that were paid twice."""
        return self._again(self.cell(), CALLS)

    def edited(self) -> int:
        """Calls that are paid again where the cell has another line."""
        before = self.paid()
        return self._again(self.cell(edited=True), before)[1]

    def _again(self, cell: Cell, owed: int) -> tuple[float, int]:
        kernel = self.started(again=True)
        try:
            took = self._loop(kernel, cell)
            if (sum_ := kernel.ask("sum(answers)")) != str(CALLS * (CALLS - 1)):
                raise RuntimeError(f"the answers add up to {sum_}")
            self.tool.save(kernel)
            return took, self.paid() - owed
        finally:
            kernel.kill()

    def _loop(self, kernel: Kernel, cell: Cell) -> float:
        life = Life()
        began = time.perf_counter()
        self.tool.run(kernel, [cell], life)
        took = time.perf_counter() - began
        if life.errors:
            raise RuntimeError(life.errors[0])
        return took


def loop_row(kind: type[Tool], plain_s: float) -> tuple[LoopRow, float]:
    """The row of one tool, and seconds of its uninterrupted loop without pauses."""
    try:
        with tempfile.TemporaryDirectory(prefix="keel-loop-", ignore_cleanup_errors=True) as folder:
            whole = _Run(kind, Path(folder), 0).whole()
        with tempfile.TemporaryDirectory(prefix="keel-loop-", ignore_cleanup_errors=True) as folder:
            run = _Run(kind, Path(folder), 0.001)
            run.killed()
            took, again = run.resumed()
            edited = run.edited()
    except (TimeoutError, subprocess.TimeoutExpired):
        return LoopRow(kind.name, wrong=f"it took longer than {LIMIT_S:.0f} s"), 0.0
    except Exception as error:  # noqa: BLE001 - a peer may break in any way: that is what is shown
        return LoopRow(kind.name, wrong=f"{type(error).__name__}: {error!s:.60}"), 0.0
    more = (whole - (plain_s or whole)) / CALLS * 1e6
    return LoopRow(kind.name, more, took, again, edited), whole


def loops(*, peers: bool) -> list[LoopRow]:
    """Every tool that is installed; the plain kernel first."""
    rows: list[LoopRow] = []
    plain_s = 0.0
    for kind in WAYS:
        if not kind.there() or not (peers or kind in {Tool, Keel}):
            continue
        row, whole = loop_row(kind, plain_s)
        plain_s = plain_s or whole
        rows.append(row)
        print(f"loop: {asdict(row)}", flush=True)
    return rows


def loop_table(rows: Sequence[LoopRow]) -> str:
    """The rows as Markdown."""
    lines = [
        f"### {TITLE}",
        "",
        "| tool | a call takes more | resumed in | paid twice after the kill | paid again after an edit elsewhere | |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        known = row.paid_again >= 0
        figures = (
            f"{row.call_us:.0f} µs" if known and row.tool != Tool.name else "",
            f"{row.resumed_s:.2f} s" if known else "",
            f"{row.paid_again:,}" if known else "",
            f"{row.paid_for_edit:,}" if known else "",
        )
        lines.append(f"| {row.tool} | " + " | ".join(figures) + f" | {row.wrong} |")
    return "\n".join(lines) + "\n"
