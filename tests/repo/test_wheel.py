"""The wheel by itself: what is in it, and that it works in an environment that holds nothing else."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    # No isolation: the build's own requirements are in the dev group, and a build environment would be fetched anew.
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def bare(tmp_path_factory, wheel):
    """A venv with the wheel and what it asks for, and no pip: the pip that runs the tests installs into it."""
    env = tmp_path_factory.mktemp("bare") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True)
    pip = [sys.executable, "-m", "pip", "--python", env / "bin" / "python", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "-qq", "--no-input", wheel], check=True)
    return env


def test_the_wheel_holds_the_package_its_data_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top.rpartition(".")[2] for top in tops - {"keel_notebook"}} == {"dist-info", "data"}
    package = {str(path.relative_to(ROOT)) for path in (ROOT / "keel_notebook").rglob("*") if path.is_file()}
    built = {name for name in package if name.startswith("keel_notebook/labextension/")}
    view = {f"keel_notebook/labextension/view/lineage.{kind}" for kind in ("js", "css")}
    shipped = {name for name in package - built if "__pycache__" not in name} | view
    assert shipped == {name for name in names if name.startswith("keel_notebook/")}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_brings_the_front_end_to_jupyter_and_needs_no_node(bare):
    extension = bare / "share" / "jupyter" / "labextensions" / "keel-notebook"
    about = json.loads((extension / "package.json").read_text("utf-8"))
    assert (extension / about["jupyterlab"]["_build"]["load"]).is_file()
    assert (extension / "schemas" / "keel-notebook" / "plugin.json").is_file()
    assert json.loads((extension / "install.json").read_text("utf-8"))["packageName"] == "keel-notebook"
    script = (_module(bare).parent / "labextension" / "view" / "lineage.js").read_text("utf-8")
    assert len(script) < 60_000
    assert "import" not in script.split("(")[0], "one file: it fetches nothing"
    assert "://" not in script.replace(SVG, ""), "no address in it"


SVG = "http://www.w3.org/2000/svg"


@pytest.mark.kernel
def test_the_wheel_works_in_a_bare_venv(bare, notebook, tmp_path, monkeypatch):
    spec = tmp_path / "jupyter" / "kernels" / "python3"
    spec.mkdir(parents=True)
    argv = [str(bare / "bin" / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "bare", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(spec.parents[1]))
    monkeypatch.delenv("PYTHONPATH", raising=False)

    book = notebook(
        """
import sys, importlib.util, keel_notebook
print(keel_notebook.__file__)
print([name for name in ("numpy", "pandas", "pyarrow") if importlib.util.find_spec(name)])
# ---
%%keel_step work
hit("work")
squares = {n: n * n for n in range(1000)}
print("worked")
# ---
print(sum(squares.values()))
"""
    )
    first = book.run_all()
    assert first[0].text.splitlines() == [str(_module(bare)), "[]"]
    again = book.rerun()
    assert [shown.text for shown in again] == [shown.text for shown in first]
    assert again[2].text.strip() == "332833500"
    assert book.hits == "work"

    status = subprocess.run(
        [bare / "bin" / "keel", "status", book.path, "--json"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert {step["name"]: step["decision"] for step in json.loads(status.stdout)["steps"]} == {"work": "replayed"}


def _module(env):
    return next(env.glob("lib/python3.*/site-packages")) / "keel_notebook" / "__init__.py"
