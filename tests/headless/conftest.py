"""Notebooks that run without a front end, in a folder of their own, by real commands with real kernels."""

import json
import os
import subprocess
import sys
import time

import nbformat
import pytest

from tests.support.notebook import HIT, LOAD


class Job:
    """A notebook file and the commands that run it."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "a.ipynb"
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("KEEL_")}
        self.env |= {"IPYTHONDIR": str(folder / ".ipython"), "XDG_CONFIG_HOME": str(folder / "config")}
        # Where papermill's warnings and frozen modules are of no interest.
        self.env |= {"PYDEVD_DISABLE_FILE_VALIDATION": "1", "PYTHONWARNINGS": "ignore"}

    def write(self, *cells, tags=None):
        """Save the notebook. ``tags``: index of a cell to its tag."""
        book = nbformat.v4.new_notebook()
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        book.cells = [
            nbformat.v4.new_code_cell(source, id=f"cell-{at}") for at, source in enumerate([LOAD, HIT, *cells])
        ]
        for at, tag in (tags or {}).items():
            book.cells[at + 2].metadata["tags"] = [tag]
        nbformat.write(book, self.path)

    def start(self, *words, **env):
        """A command that goes on by itself."""
        command = [sys.executable, "-m", *map(str, words)]
        return subprocess.Popen(
            command, cwd=self.folder, env=self.env | env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def call(self, *words, code=0, **env):
        """What a command wrote to stdout and stderr, after its exit code is checked."""
        command = self.start(*words, **env)
        out, err = command.communicate(timeout=120)
        assert code is None or command.returncode == code, out + err
        return out, err

    def run(self, *words, code=0, **env):
        """``keel run a.ipynb``: its events."""
        out, _ = self.call("keel_notebook", "run", self.path, *words, "--json", code=code, **env)
        return [json.loads(line) for line in out.splitlines()]

    def status(self, *words):
        """``keel status``: the steps by name."""
        out, _ = self.call("keel_notebook", "status", self.path, "--json", *words)
        return {step["name"]: step for step in json.loads(out)["steps"]}

    def cells(self, *cells, **env):
        """Run cells in a shell of a fresh process, as the notebook's kernel would: what each gave."""
        env = {"JPY_SESSION_NAME": str(self.path)} | env
        command = [sys.executable, "-c", SHELL]
        done = subprocess.run(
            command, cwd=self.folder, env=self.env | env, input=json.dumps([LOAD, HIT, *cells]), capture_output=True,
            text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)[2:]

    def wait_for(self, word, *alive):
        """Return when ``word`` was hit. The processes ``alive`` are to do it: they must not have ended."""
        while word not in self.hits:
            assert all(process.poll() is None for process in alive)
            time.sleep(0.02)

    @property
    def hits(self):
        """Real executions, in order."""
        path = self.folder / "hits.txt"
        return " ".join(path.read_text().split()) if path.exists() else ""


SHELL = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
config = Config()
config.HistoryManager.enabled = False
shell, shown = InteractiveShell(config=config), []
for cell in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        result = shell.run_cell(cell, store_history=True)
    error = result.error_before_exec or result.error_in_exec
    told = {"out": out.getvalue(), "err": err.getvalue(), "result": repr(result.result)}
    told |= {"error": "" if error is None else type(error).__name__, "text": getattr(error, "report", str)()}
    shown.append(told)
    if error is not None:
        break
print(json.dumps(shown))
"""


@pytest.fixture
def job(tmp_path):
    """A job in an empty folder."""
    return Job(tmp_path)


def printed(path):
    """What every code cell of an executed notebook shows as text, in order."""
    book = nbformat.read(path, as_version=4)
    return ["".join(out.get("text", "") for out in cell.outputs) for cell in book.cells if cell.cell_type == "code"]
