"""The Makefile: setup runs once for one state of pyproject.toml, and again when that changes."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path):
    """The real Makefile and pyproject.toml, with a setup that only counts how often it is asked."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    setup = tmp_path / "scripts" / "setup"
    setup.parent.mkdir()
    setup.write_text("#!/bin/sh\nmkdir -p .venv && echo asked >> asked.txt\n")
    setup.chmod(0o755)
    return tmp_path


def make(checkout, *words):
    return subprocess.run(["make", *words], cwd=checkout, capture_output=True, text=True, check=True).stdout


def asked(checkout):
    return (checkout / "asked.txt").read_text().count("asked")


def test_setup_runs_once_and_again_when_the_requirements_change(checkout):
    make(checkout, "setup")
    make(checkout, "setup")
    assert asked(checkout) == 1
    (checkout / "pyproject.toml").touch()
    make(checkout, "setup")
    assert asked(checkout) == 1, "a fresh time stamp is no change"
    with (checkout / "pyproject.toml").open("a") as file:
        file.write("\n# changed\n")
    make(checkout, "setup")
    assert asked(checkout) == 2


def test_a_setup_that_failed_is_tried_again(checkout):
    setup = checkout / "scripts" / "setup"
    works = setup.read_text()
    setup.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(subprocess.CalledProcessError):
        make(checkout, "setup")
    setup.write_text(works)
    make(checkout, "setup")
    assert asked(checkout) == 1


def test_make_alone_lists_the_commands(checkout):
    listed = make(checkout)
    for command in ("demo", "test", "lab"):
        assert f"make {command}" in listed
    assert not (checkout / "asked.txt").exists(), "listing the commands installs nothing"


def test_ci_runs_make_test():
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert script.rstrip().endswith(" make test")
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
