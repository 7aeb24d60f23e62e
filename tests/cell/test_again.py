"""Steps that run again: early cut-off, already applied, rewind, in one kernel and over several (DESIGN 5; C09, C31)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.crash.shells import Run, Zygote

LOAD = "%load_ext keel_notebook"
TABLE = """
import json as _json, keel_notebook as _keel
print(_json.dumps({step["name"]: step["decision"] for step in _keel.status().to_dict()["steps"]}))
"""
FRAME = "import pandas as pd; df = pd.DataFrame({'a': [1, 2]})"
VIEW = "import numpy as np; a = np.zeros(3); w = a[1:]"
E, R = "executed", "replayed"


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


def cell(text: str) -> str:
    """``d: x = 1`` is the step ``d``; any other text is a plain cell."""
    name, colon, body = text.partition(": ")
    return f"%%keel_step {name}\n{body}" if colon and name.isidentifier() else text


def run(zygote: Zygote, folder: Path, cells: Sequence[str]) -> Run:
    return zygote.run(folder, [LOAD, *map(cell, cells), TABLE])


@pytest.mark.parametrize(
    ("lives", "printed", "decided"),
    [
        # By provenance, not by equal value.
        ([["x = 10", "d: x = x * 2"], ["x = 20", "d: x = x * 2", "print(x)"]], "40", {"d": E}),
        ([["x = 10", "d: x = x * 2", "x = 20", "d: x = x * 2", "print(x)"]], "40", {"d": E}),
        # Back to what was: the older record.
        ([["x = 1", "d: y = x + 1"], ["x = 2", "d: y = x + 1"], ["x = 1", "d: y = x + 1", "print(y)"]], "2", {"d": R}),
        ([["x = 1", "d: y = x + 1"], ["x = 1", "d: y = x + 2"], ["x = 1", "d: y = x + 1", "print(y)"]], "2", {"d": R}),
        # Already applied: the same change is not made twice.
        ([["x = 10", "d: x = x * 2", "d: x = x * 2", "print(x)"]], "20", {"d": R}),
        ([[FRAME, "d: df['a'] += 1", "df.head()", "d: df['a'] += 1", "print(list(df.a))"]], "[2, 3]", {"d": R}),
        ([["class C: n = 0", "d: C.n += 1", "d: C.n += 1", "print(C.n)"]], "1", {"d": R}),
        ([[VIEW, "d: w += 7", "d: w += 7", "print(a, w)"]], "[0. 7. 7.] [7. 7.]", {"d": R}),
        ([["r = []; add = r.append", "d: add(1)", "d: add(1)", "print(r)"]], "[1]", {"d": R}),
        # Rewind: an edited step starts from what was before it.
        ([["m: d = {'a': 1}", "c: d['a'] *= 10", "c: d['a'] *= 2", "print(d)"]], "{'a': 2}", {"m": E, "c": E}),
        (
            [["m: d = [1]", "c: d.append(2)", "e: d.append(3)", "c: d.append(9)", "e: d.append(3)", "print(d)"]],
            *("[1, 9, 3]", {"m": E, "c": E, "e": E}),
        ),
        ([["class C: n = 0", "d: C.n = 1", "class C: n = 0", "d: C.n = 5", "print(C.n)"]], "5", {"d": E}),
        # Early cut-off: a producer that left equal values lets its followers replay.
        (
            [
                ["k = 1", "p: a = [k > 0]", "f: b = a + [1]", "g: c = b + [2]"],
                ["k = 2", "p: a = [k > 0]", "f: b = a + [1]", "g: c = b + [2]", "print(c)"],
            ],
            *("[True, 1, 2]", {"p": E, "f": R, "g": R}),
        ),
        # A change under a name that nobody mentions.
        ([["a = [1]; box = [a]", "s: n = len(a)", "box[0].append(2)", "s: n = len(a)", "print(n)"]], "2", {"s": E}),
    ],
)
def test_a_step_that_runs_again(
    zygote: Zygote, tmp_path: Path, lives: list[list[str]], printed: str, decided: dict[str, str]
) -> None:
    for cells in lives:
        last = run(zygote, tmp_path, cells)
    assert last.code == 0
    assert last.printed[-2].strip().splitlines()[-1] == printed
    assert json.loads(last.printed[-1]) == decided


@pytest.mark.parametrize(
    "cells",
    [
        [VIEW, "d: w += 7", "d: w += 5"],
        ["r = []; o = {'r': r}", "d: r.append(1)", "d: r.append(5)"],
        ["class M: pass\nm = M(); m.w = [1]; o = M(); o.p = [m.w]", "d: m.w[0] = 2", "d: m.w[0] += 3"],
    ],
)
def test_what_others_hold_as_well_is_not_taken_back_alone(zygote: Zygote, tmp_path: Path, cells: list[str]) -> None:
    last = run(zygote, tmp_path, cells)
    assert last.code == 3
    assert "KEEL-E031" in last.error
    assert "as well" in last.error
