"""What the command line says about real kernels, and that a kernel and the command line agree."""

import json
import re

import pytest
from click.testing import CliRunner

from keel_notebook.front.cli import keel
from tests.support.notebook import KernelDied

pytestmark = pytest.mark.kernel

CELLS = """
%%keel_step load
hit("load"); df = list(range(3)); print("loaded")
# ---
n = 3
# ---
%%keel_step fit
hit("fit"); total = sum(df) + n
# ---
%%keel_step plot
import os
hit("plot")
if not os.path.exists("go"): os.kill(os.getpid(), 9)
print(total)
"""


@pytest.fixture(autouse=True)
def own_settings(monkeypatch, tmp_path):
    """A key of the test's own, for its kernels and for its command lines."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("KEEL_JOURNAL", raising=False)


def ask(*words, code=0):
    result = CliRunner().invoke(keel, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.output


def steps(book):
    found = json.loads(ask("status", book.path, "--json"))
    return {step["name"]: step for step in found["steps"]} | {"": found}


def test_c01_a_kill_and_a_run_all_as_the_command_line_tells_them(notebook):
    book = notebook(CELLS)
    with pytest.raises(KernelDied):
        book.run_all()
    book.kill()
    found = steps(book)
    assert (found[""]["status"], found[""]["holder"]) == ("died", None)
    assert {name: step["state"] for name, step in found.items() if name} == {
        "load": "saved",
        "fit": "saved",
        "plot": "interrupted",
    }
    assert found["plot"]["why"] == "its kernel went away while it ran"
    assert ask("why", "plot", "--in", book.path).startswith("plot executes: ")

    (book.folder / "go").touch()
    book.edit(1, "n = 3", "n = 4")
    book.run_all()
    found = steps(book)
    assert found[""]["status"] == "running"
    assert re.fullmatch(rf"pid {book.pid} on .+", found[""]["holder"])
    assert (found["load"]["state"], found["load"]["decision"]) == ("replayed", "replayed")
    assert (found["fit"]["state"], found["fit"]["decision"], found["fit"]["differs"]) == (
        "recorded",
        "executed",
        ["input"],
    )
    assert (found["plot"]["state"], found["plot"]["decision"]) == ("recorded", "executed")
    assert ask("why", "fit", "--in", book.path).startswith("fit executed: input n 3 -> 4")
    assert ask("why", "load", "--in", book.path).startswith("load replayed: code and inputs are those of run 1, ")
    assert book.hits == "load fit plot fit plot"

    table = book.table()
    for name in ("load", "fit", "plot"):
        seen, told = dict(table[name]), dict(found[name])
        for only in (seen, told):
            only.pop("replay_s")
        assert seen == told, "the kernel and the command line tell the same"

    book.shutdown()
    found = steps(book)
    assert found[""]["status"] == "finished"
    assert {found[name]["state"] for name in ("load", "fit", "plot")} == {"saved"}
    shown = json.loads(ask("show", "load", "--in", book.path, "--json"))
    assert [write["name"] for write in shown["writes"]] == ["df"]
    assert shown["outputs"] == [{"kind": "stdout", "text": "loaded\n", "also": []}]
    assert ask("doctor", book.path).startswith("all is well")


def test_plan_and_run_all_agree(notebook):
    book = notebook(CELLS)
    (book.folder / "go").touch()
    book.run_all()
    book.edit(2, "+ n", "+ n + 1")
    planned = json.loads(ask("plan", book.path, "--json"))["cells"]
    assert {cell["step"]: cell["action"] for cell in planned if cell["step"]} == {
        "load": "replays",
        "fit": "executes",
        "plot": "may execute",
    }
    in_kernel = book.execute("%keel plan")
    assert "may execute" in in_kernel.text
    book.rerun()
    assert book.hits == "load fit plot fit plot"
    assert json.loads(ask("plan", book.path, "--json"))["execute_s"] == 0.0


def test_two_kernels_on_one_notebook_each_tell_their_own_story(notebook):
    first, second = notebook(CELLS), notebook(CELLS)
    (first.folder / "go").touch()
    first.run_all()
    second.run_all()
    assert first.hits == "load fit plot"
    assert {name: step["state"] for name, step in first.table().items()} == dict.fromkeys(
        ("load", "fit", "plot"), "recorded"
    )
    assert {name: step["state"] for name, step in second.table().items()} == dict.fromkeys(
        ("load", "fit", "plot"), "replayed"
    )
    assert first.execute("%keel why load").text.startswith("load executed: ")
    assert steps(second)[""]["run"] == 2
    assert ask("doctor", first.path, "--json").count('"topic": "kernel"') == 2
