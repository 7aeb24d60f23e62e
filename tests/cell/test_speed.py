"""What the analysis and the watch do around a cell, counted (DESIGN 10; the times are in `make bench`)."""

from __future__ import annotations

import pytest

from keel_notebook.capture.definitions import NotebookDefinitions
from keel_notebook.capture.names import NameWatch
from keel_notebook.core.cellcode import parse_cell
from keel_notebook.core.reads import analyse
from tests.cell.shells import Digests, run, shell
from tests.counted import calls

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


def watching(names: int) -> int:
    """The calls of the watch around a trivial cell, with so many names of the notebook beside it."""
    with shell() as made:
        definitions = NotebookDefinitions(made)
        watch = NameWatch(made, Digests(definitions), definitions)
        run(made, f"for i in range({names}): globals()[f'v{{i}}'] = [i] if i % 2 else i\na = 1")
        found = analyse(parse_cell("x = a + 1", transform=made.transform_cell))

        def watched() -> None:
            watch.reached(found.reads, found)
            watch.after(watch.before(found))

        watched()
        return calls(watched)


def test_watching_a_trivial_cell_does_the_same_among_20_names_and_among_2000() -> None:
    assert watching(2_000) <= watching(20) + 20


@pytest.mark.parametrize("lines", [1, 8])
def test_the_analysis_grows_with_the_cell_and_not_faster(lines: int) -> None:
    with shell() as made:
        body = "\n".join(CELL.replace("helper", f"helper{n}").replace("total", f"total{n}") for n in range(lines))
        parsed = parse_cell(body, transform=made.transform_cell)
        assert calls(lambda: analyse.__wrapped__(parsed)) < 4_000 * lines


def test_a_cell_is_analysed_once_and_remembered() -> None:
    with shell() as made:
        transform = made.transform_cell
        first = calls(lambda: analyse(parse_cell(CELL + "# once", transform=transform)))
        again = calls(lambda: analyse(parse_cell(CELL + "# once", transform=transform)))
        assert again < first / 20
