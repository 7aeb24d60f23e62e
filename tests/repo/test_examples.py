"""C100: nbval passes on every example with an empty journal and after a replay, and the replay executes nothing."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))
KEEL = Path(sys.executable).with_name("keel")

pytestmark = pytest.mark.kernel


@pytest.fixture
def examples(tmp_path):
    """The examples without anything that a run left there."""
    left = shutil.ignore_patterns(".keel", ".ipynb_checkpoints", "bill.csv")
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=left))


def nbval(notebook, **env):
    """Run nbval strictly, as a user does who knows nothing of this repository's settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("KEEL_", "PYTEST_"))}
    clean |= {"JPY_SESSION_NAME": str(notebook), "IPYTHONDIR": str(notebook.parent.parent / "ipython")} | env
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--nbval",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        notebook.name,
    ]
    done = subprocess.run(command, cwd=notebook.parent, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def steps(notebook):
    asked = subprocess.run([KEEL, "status", notebook, "--json"], capture_output=True, text=True, check=True)
    return {step["name"]: step for step in json.loads(asked.stdout)["steps"]}


def marked(notebook):
    """The steps that the file itself names."""
    cells = nbformat.read(notebook, as_version=4).cells
    first = [cell.source.split("\n", 1)[0].split() for cell in cells if cell.cell_type == "code"]
    return {line[-1] for line in first if line[0] == "%%keel_step" or line[:3] == ["#", "keel:", "step"]}


def test_there_are_at_least_three_examples():
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_c100_nbval_passes_empty_and_replayed_and_the_replay_executes_no_step(examples, name):
    notebook = examples / name
    before = notebook.read_bytes()

    nbval(notebook)
    first = steps(notebook)
    assert set(first) == marked(notebook)
    assert {step["decision"] for step in first.values()} == {"executed"}

    nbval(notebook)
    assert {name: step["decision"] for name, step in steps(notebook).items()} == dict.fromkeys(first, "replayed")

    nbval(notebook, KEEL_MODE="replay")
    assert notebook.read_bytes() == before, "keel wrote into the notebook"


def test_the_examples_ship_with_outputs_that_show_no_machine(examples):
    for name in NOTEBOOKS:
        text = (examples / name).read_text("utf-8")
        cells = nbformat.reads(text, as_version=4).cells
        assert all(cell.execution_count for cell in cells if cell.cell_type == "code"), f"{name}: run `make examples`"
        shown = re.search(r"/(?:tmp|home|root|work)/|Warning|Traceback|0x[0-9a-f]{6}", text)
        assert shown is None, f"{name} shows {shown[0]}"


def test_the_examples_are_small_enough_to_ship_and_say_whose_data_they_use():
    told = (EXAMPLES / "README.md").read_text("utf-8")
    for path in (EXAMPLES / "data").iterdir():
        assert path.stat().st_size < 500_000, path.name
        assert f"`data/{path.name}`" in told, f"examples/README.md does not say where {path.name} comes from"
    for name in NOTEBOOKS:
        assert f"({name})" in told
