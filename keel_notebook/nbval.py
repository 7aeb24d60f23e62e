"""For nbval: the lines that keel itself says in a cell are about one run, and no output to compare.

``pytest -p keel_notebook.nbval --nbval report.ipynb``. Without it nbval takes ``keel: fit executes: code changed`` in a
saved notebook for an output of the cell, which the next run, a replay, does not give. Asked for by name, so that no
other pytest of the environment loads it; imports nothing of keel but a constant.
"""

from __future__ import annotations

import functools
from typing import Any

from keel_notebook.aside import own_line


def pytest_itemcollected(item: Any) -> None:
    """Make a cell that nbval collected compare its outputs without keel's own lines, on both sides."""
    if type(item).__module__ == "nbval.plugin":
        item.compare_outputs = functools.partial(_compared, item.compare_outputs)


def _compared(compare: Any, test: list[Any], ref: list[Any], *rest: Any, **more: Any) -> Any:
    return compare(without_own_lines(test), without_own_lines(ref), *rest, **more)


def without_own_lines(outputs: list[Any]) -> list[Any]:
    """The outputs of a cell, those of the notebook format, without the lines that keel wrote on stderr."""
    return [kept for out in outputs if (kept := _without(out)) is not None]


def _without(out: Any) -> Any:
    if out.get("output_type") != "stream" or out.get("name") != "stderr":
        return out
    lines = out["text"].splitlines(keepends=True)
    kept = [line for line in lines if not own_line(line)]
    if len(kept) == len(lines):
        return out
    return type(out)({**out, "text": "".join(kept)}) if kept else None
