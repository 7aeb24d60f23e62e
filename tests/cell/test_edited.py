"""A local module that was edited and not reloaded is said to be so, wherever a step meets it (traps 9)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.shells import Zygote

LOAD = "%load_ext keel_notebook\nimport sys; sys.path.insert(0, '')"
EDIT = """
import os, time
with open("m9.py", "w") as file: file.write("def f(): return 22\\n")
os.utime("m9.py", ns=(time.time_ns() + 2_000_000_000,) * 2)
"""
RELOAD = "import importlib, m9\nimportlib.reload(m9)\nfrom m9 import f"
STOP = """
get_ipython()._keel_session.stop()
from keel_notebook.capture.definitions import _SEEN
print(len(_SEEN))
"""


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


@pytest.mark.parametrize("step", ["y = m9.f()", "y = f()", "import m9 as q\ny = q.f()"])
def test_an_edited_module_is_named_until_it_is_reloaded(zygote: Zygote, tmp_path: Path, step: str) -> None:
    (tmp_path / "m9.py").write_text("def f(): return 1\n")
    step = f"%%keel_step s\n{step}"
    cells = [LOAD, "import m9\nfrom m9 import f", step, EDIT, step, step, RELOAD, step, "print(y)", STOP]
    run = zygote.run(tmp_path, cells)
    said = [cell["err"] for cell in run.acknowledged]
    assert said[2] == ""
    assert "edited but not reloaded" in said[4]
    assert said[5] == ""  # what it made is valid for the loaded source
    assert "executes" in said[7]
    assert run.printed[8:] == ["22\n", "0\n"]  # who stops keel is no longer watched
