"""C100: nbclient and nbval get the same outputs from a replay as from the recorded run."""

import os
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.kernel

EXTENSION = '''
from pathlib import Path
from keel_notebook.capture.outputs import make_tap, pack_messages, unpack_messages

def load_ipython_extension(shell):
    """Cells that begin with "# record NAME" are recorded once, and shown from the record ever after."""
    tap, running = make_tap(shell), []

    def kept(cell):
        return Path(cell.partition("# record ")[2].partition("\\n")[0].strip() + ".kept")

    def from_the_record(lines):
        replays = lines and lines[0].startswith("# record ") and kept(lines[0]).exists()
        return [f"get_ipython().replay({str(kept(lines[0]))!r})\\n"] if replays else lines

    def before(cell):
        if cell.raw_cell.startswith("# record ") and not kept(cell.raw_cell).exists():
            running.append(kept(cell.raw_cell))
            tap.open()

    def after(result):
        if running:
            running.pop().write_bytes(pack_messages(tap.close()))

    object.__setattr__(shell, "replay", lambda path: tap.replay(unpack_messages(Path(path).read_bytes())))
    shell.input_transformers_cleanup.append(from_the_record)
    shell.events.register("pre_run_cell", before)
    shell.events.register("post_run_cell", after)
'''
# nbval itself knows neither updates of displays nor the semicolon that hides a result
CELLS = [
    "%load_ext recorder",
    """# record s
import sys
open("hits.txt", "a").write("s")
print("a"); print("b"); print("warn", file=sys.stderr); 41 + 1""",
    """# record progress
import sys
for i in range(300): sys.stderr.write(f"\\r{i}/300 done" + "." * (i % 7))
print("end", file=sys.stderr)""",
    """# record shown
display({"text/html": "<b>x</b>", "text/plain": "x"}, raw=True, metadata={"k": 1})
!echo child
print("end")""",
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "recorder.py").write_text(EXTENSION)
    return tmp_path


def run(folder):
    """The cells' outputs as nbclient saves them."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    where = {"metadata": {"path": str(folder)}}
    NotebookClient(book, timeout=60, resources=where, coalesce_streams=True).execute()
    nbformat.write(book, folder / "a.ipynb")
    return [[{**output} for output in cell.outputs] for cell in book.cells]


def passes_nbval(folder):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    command = [sys.executable, "-m", "pytest", "--nbval", "-p", "no:cacheprovider", "-q", "a.ipynb"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False).returncode == 0


def test_c100_nbclient_and_nbval_get_the_same_live_and_on_replay(folder, monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # ipykernel does not read what children write while it sees pytest
    live = run(folder)
    assert passes_nbval(folder)  # a replay, against the live run
    assert run(folder) == live
    assert (folder / "hits.txt").read_text() == "s"  # nothing ran again
    for kept in folder.glob("*.kept"):
        kept.unlink()
    assert passes_nbval(folder)  # a live run, against the replay
    assert (folder / "hits.txt").read_text() == "ss"
    (folder / "s.kept").write_bytes((folder / "shown.kept").read_bytes())
    assert not passes_nbval(folder)  # and nbval does notice another output
