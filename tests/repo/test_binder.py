"""binder/: repo2docker finds there a Python, the package, and the notebooks to open."""

import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINDER = ROOT / "binder"


def _requirements():
    lines = (BINDER / "requirements.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_the_package_itself_is_installed_from_the_checkout():
    # A line that starts with "." also tells repo2docker to copy the repository before it installs.
    assert _requirements()[0] == "."


def test_everything_the_examples_import_is_installed():
    imported = set()
    for path in (ROOT / "examples").glob("*.ipynb"):
        imported |= set(re.findall(r'"(?:import|from) (\w+)', path.read_text("utf-8")))
    names = {"sklearn": "scikit-learn"}
    wanted = {names.get(name, name) for name in imported} & {"matplotlib", "numpy", "pandas", "scikit-learn", "scipy"}
    listed = {re.split(r"[><=~]", line)[0] for line in _requirements()}
    brought_by_pandas = {"numpy"}
    assert wanted - brought_by_pandas <= listed


def test_the_python_is_one_that_the_package_supports():
    named = re.fullmatch(r"python-(\d+)\.(\d+)", (BINDER / "runtime.txt").read_text("utf-8").strip())
    least = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"]
    assert tuple(map(int, named.groups())) >= tuple(map(int, least.removeprefix(">=").split(".")))


def test_post_build_is_a_shell_script_that_names_every_example(tmp_path):
    script = BINDER / "postBuild"
    assert script.stat().st_mode & 0o111
    called = tmp_path / "jupyter"
    called.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    called.chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run([script], cwd=ROOT, env={"PATH": path}, capture_output=True, text=True, check=True)
    action, *notebooks = done.stdout.split()
    assert action == "trust"
    assert sorted(notebooks) == sorted(str(path.relative_to(ROOT)) for path in (ROOT / "examples").glob("*.ipynb"))
