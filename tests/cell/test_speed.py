"""What the analysis and the watch cost, as ratios to the cell that they stand around (DESIGN 10)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from keel_notebook.capture.definitions import NotebookDefinitions
from keel_notebook.capture.names import NameWatch
from keel_notebook.core.cellcode import parse_cell
from keel_notebook.core.fingerprint import code_digest
from keel_notebook.core.reads import analyse
from tests.cell.shells import Digests, run, shell

pytestmark = pytest.mark.alone

CELL = """
import numpy as np
df = load(path)
df["a"] = df["b"] * 2
for i in range(10):
    total = df.a.sum() + i
def helper(x, k=3):
    return [v * scale for v in x if v > k]
result = helper(df.a)
print(f"{total:.2f} {result}")
"""


def ratio(one: Callable[[], object], other: Callable[[], object], *, times: int = 20, rounds: int = 15) -> float:
    """How much longer ``one`` takes than ``other``: the best of interleaved rounds, since others only ever add time."""
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for at, action in enumerate((one, other)):
            began = time.perf_counter()
            for _ in range(times):
                action()
            best[at] = min(best[at], time.perf_counter() - began)
    return best[0] / best[1]


def test_watching_a_trivial_cell_among_2000_names_costs_no_more_than_running_it() -> None:
    with shell() as made:
        definitions = NotebookDefinitions(made)
        watch = NameWatch(made, Digests(definitions), definitions)
        run(made, "for i in range(2000): globals()[f'v{i}'] = [i] if i % 2 else i\na = 1")
        names = analyse(parse_cell("x = a + 1", transform=made.transform_cell))

        def watched() -> None:
            watch.reached(names.reads, names)
            watch.after(watch.before(names))

        assert ratio(watched, lambda: made.run_cell("x = a + 1")) < 1.2


def test_a_cell_is_analysed_once_and_remembered() -> None:
    with shell() as made:
        transform = made.transform_cell

        def read() -> None:
            parsed = parse_cell.__wrapped__(CELL, transform=transform)
            code_digest(parsed)
            analyse.__wrapped__(parsed)

        def compiled() -> None:
            compile(CELL, "<cell>", "exec")

        assert ratio(read, compiled) < 30
        assert ratio(lambda: analyse(parse_cell(CELL, transform=transform)), compiled) < 0.2
