"""Cells that put other built-ins in the place of Python's own run as they would without keel, and are not recorded."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from pathlib import Path

import pytest

from keel_notebook.capture.truebuiltins import TrueBuiltins
from tests.crash.shells import Zygote

TABLE = "print({s['name']: s['decision'] for s in __import__('keel_notebook').status().to_dict()['steps']})"


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


@pytest.mark.parametrize("replacing", ["builtins.sorted = lambda x: 5", "builtins.max = lambda *_: 7"])
def test_the_cell_runs_every_time_and_later_steps_replay(zygote: Zygote, tmp_path: Path, replacing: str) -> None:
    cells = [
        "%load_ext keel_notebook",
        "import builtins; own = dict(vars(builtins))",
        f"%%keel_step other\n{replacing}\nq = 1",
        "%%keel_step under_it\nr = 2",
        "vars(builtins).update(own)",
        "%%keel_step later\nw = q + r",
        "print(w)",
        TABLE,
    ]
    for later in ("executed", "replayed"):
        run = zygote.run(tmp_path, cells)
        assert run.printed[-2] == "3\n"
        assert "Traceback" not in "".join(cell["err"] + cell["out"] for cell in run.acknowledged)
        assert f"'other': 'executed', 'later': '{later}'" in run.printed[-1]


def test_what_stands_in_their_place_is_there_again_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    true = builtins.sorted
    monkeypatch.setattr(builtins, "sorted", print)
    with TrueBuiltins() as replaced:
        assert builtins.sorted is true
        assert replaced == {"sorted": print}
    assert builtins.sorted is print
    monkeypatch.undo()
    with TrueBuiltins() as replaced:
        assert replaced == {}
