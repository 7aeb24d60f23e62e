"""Speed that must not be lost: ratios to floors of the same run, with bounds that a figure of twice its size breaks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.alone

ROOT = Path(__file__).resolve().parents[2]
BOUNDS = {
    "a trivial step, recorded, to a plain cell": 5.5,  # 2.8 to 3.8
    "a trivial step, replayed, to a plain cell": 2.7,  # 1.4 to 1.6
    "a durable call, recorded, to a small JSON write": 12.0,  # 6.6 to 7.0
    "a durable call, replayed, to a small JSON write": 5.8,  # 3.0 to 3.4
    "60,000 objects, recorded, to making and pickling them": 3.4,  # 1.9 to 2.0
    "32 MB array, recorded, to making and saving it": 2.5,  # 1.4 to 1.7
}
"""Each with what it was on a loaded machine of two cores."""


@pytest.fixture(scope="module")
def ratios(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quick")
    dropped = ("KEEL_", "PYTHONDONTWRITEBYTECODE")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    environ |= {
        "PYTHONPATH": str(ROOT),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "IPYTHONDIR": str(folder / "ipython"),
    }
    command = [sys.executable, str(Path(__file__).with_name("quick.py")), str(folder)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("what", list(BOUNDS))
def test_no_figure_is_twice_what_it_was(ratios, what):
    assert ratios[what] <= BOUNDS[what], f"{ratios[what]:.2f}x, and {BOUNDS[what]}x is the most"


def test_every_figure_has_a_bound(ratios):
    assert ratios.keys() == BOUNDS.keys()
