"""Areas G and H as a person meets them: the journal's own troubles never become the notebook's. Real kernels."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from tests.support.notebook import Notebook

pytestmark = pytest.mark.kernel

STEP = """
%%keel_step s
hit("s"); v = 1
# ---
print(v)
"""


def ingested(book, deadline_s=60):
    """Wait until the DuckDB file is there and nobody writes to it."""
    path = book.journal() / "journal.duckdb"
    until = time.monotonic() + deadline_s
    while not path.exists():
        assert time.monotonic() < until, "the record file never came"
        time.sleep(0.05)
    return path


def test_c79_two_notebooks_in_one_folder_at_the_same_time(tmp_path):
    books = [
        Notebook(tmp_path, "%%keel_step s\nv = '" + name + "'; print(v)", name=name) for name in ("a.ipynb", "b.ipynb")
    ]
    try:
        for book in books:
            book.start()
        for book in books * 3:
            for at in range(len(book.cells)):
                shown = book._run(at)
                assert shown.status == "ok"
                assert "lock" not in shown.stderr
        for book in books:
            assert book.rerun()[0].text == book.path.name + "\n"
            assert book.table()["s"]["decision"] == "replayed"
    finally:
        for book in books:
            book.close()


def test_several_kernels_on_one_notebook(notebook, tmp_path):
    first, second = notebook(STEP), Notebook(tmp_path, STEP)
    try:
        first.run_all()
        assert second.run_all()[1].text == "1\n"
        assert second.table()["s"]["decision"] == "replayed"
        assert first.hits == "s"
        second.cells[2] = second.cells[2].replace("v = 1", "v = 2")
        assert second.run(0).status == "ok"
        assert first.run(0).status == "ok"
        assert first.hits == "s s", "the other kernel's newer record of other code does not hide this one's"
    finally:
        second.close()


VIEWER = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"


def test_c81_a_viewer_holds_the_duckdb_file(notebook):
    book = notebook(STEP)
    book.run_all()
    book.shutdown()
    path = ingested(book)
    viewer = subprocess.Popen(
        [sys.executable, "-c", VIEWER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(100):  # an ingest may hold the file for a moment
            if viewer.stdout.readline() == "open\n":
                break
            viewer.communicate()
            viewer = subprocess.Popen(
                [sys.executable, "-c", VIEWER, str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        book.cells.append("%%keel_step t\nw = 2")
        book.ids.append("t")
        shown = book.run_all()
        assert [cell.status for cell in shown] == ["ok"] * 3
        assert all(cell.stderr == "" for cell in shown)
        assert book.rerun()[1].text == "1\n"
        assert book.hits == "s"
    finally:
        viewer.kill()
        viewer.communicate()


def test_c82_a_damaged_record_file_costs_nothing_that_segments_and_heads_hold(notebook):
    book = notebook(STEP)
    book.run_all()
    book.shutdown()
    path = ingested(book)
    raw = bytearray(path.read_bytes())
    raw[4096:8192] = bytes(4096)
    path.write_bytes(raw)
    assert book.run_all()[1].text == "1\n"
    assert book.hits == "s"


def test_k13_a_damaged_payload_makes_its_own_step_execute_and_no_other(notebook):
    book = notebook("""
%%keel_step big
hit("big"); import numpy as np; x = np.arange(300_000.0)
# ---
%%keel_step small
hit("small"); y = 3
# ---
print(x[-1], y)
""")
    book.run_all()
    book.kill()
    for path in (book.journal() / "objects").rglob("*"):
        if path.is_file() and path.stat().st_size > 1_000_000:
            os.chmod(path, 0o600)
            raw = bytearray(path.read_bytes())
            raw[1_000_000] ^= 1
            path.write_bytes(raw)
    shown = book.run_all()
    assert shown[2].text == "299999.0 3\n"
    assert "big executes: its record cannot be read" in shown[0].stderr
    assert "E051" in shown[0].stderr
    assert book.hits == "big small big"


@contextmanager
def small_disk(path, size):
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def test_c85_disk_full_the_cell_succeeds_and_earlier_records_stay(notebook, tmp_path):
    with small_disk(tmp_path / "small", "5m") as disk:
        book = notebook(
            """
%%keel_step first
hit("first"); a = 1
# ---
%%keel_step s
hit("s"); import random; data = random.Random(1).randbytes(20_000_000); n = len(data)
# ---
print(a, n)
""",
            env={"KEEL_JOURNAL": str(disk / "keel")},
        )
        shown = book.run_all()
        assert shown[2].text == "1 20000000\n"
        assert "not recorded" in shown[1].stderr
        assert "disk is full" in shown[1].stderr
        shown = book.rerun()
        assert shown[2].text == "1 20000000\n"
        assert book.hits == "first s s"
        book.close()


def test_a_folder_that_cannot_be_written_never_stops_a_cell(notebook, tmp_path):
    (tmp_path / "file").write_text("")
    book = notebook(STEP, env={"KEEL_JOURNAL": str(tmp_path / "file" / "keel")})
    shown = book.run_all()
    assert shown[1].text == "1\n"
    assert "not durable" in shown[0].stderr
    assert "E054" in shown[0].stderr


def test_c07_another_machine_with_the_key_replays(notebook, tmp_path):
    key = tmp_path / "owner.key"
    book = notebook(STEP, env={"KEEL_KEY_FILE": str(key), "XDG_CONFIG_HOME": str(tmp_path / "one")})
    book.run_all()
    book.kill()
    book.env["XDG_CONFIG_HOME"] = str(tmp_path / "two")
    assert book.run_all()[1].text == "1\n"
    assert book.hits == "s"


def test_e050_a_journal_of_somebody_else_stops_the_first_step(notebook, tmp_path):
    book = notebook(STEP, env={"XDG_CONFIG_HOME": str(tmp_path / "one")})
    book.run_all()
    book.kill()
    book.env["XDG_CONFIG_HOME"] = str(tmp_path / "two")
    shown = book.run_all()
    assert shown[0].status == "error"
    assert "E050" in shown[0].error
    assert book.hits == "s"


def test_c89_forked_workers_in_a_step_harm_nothing(notebook):
    book = notebook("""
%%keel_step pool
import multiprocessing as mp, os
def sq(i): return i * i
with mp.get_context("fork").Pool(2) as p: r = p.map(sq, range(4))
pid = os.fork()
if pid == 0: os._exit(0)
os.waitpid(pid, 0); hit("pool")
# ---
%%keel_step after
hit("after"); t = sum(r)
# ---
print(r, t)
""")
    first = book.run_all()
    assert first[2].text == "[0, 1, 4, 9] 14\n"
    assert book.rerun()[2].text == "[0, 1, 4, 9] 14\n"
    assert book.hits == "pool after"


def test_c90_a_renamed_notebook_keeps_its_records(notebook):
    book = notebook(STEP)
    book.run_all()
    book.kill()
    book.path = book.path.rename(book.folder / "renamed.ipynb")
    assert book.run_all()[1].text == "1\n"
    assert book.hits == "s"


def test_c92_nobody_tells_which_notebook_this_is(notebook):
    book = notebook(STEP)
    book.named = False
    book.ids = [""] * len(book.cells)
    book.run_all()
    assert book.rerun()[1].text == "1\n"
    assert book.hits == "s"


def test_c93_rewritten_cell_ids_are_no_divergence(notebook):
    book = notebook(STEP)
    book.run_all()
    book.ids = [f"new-{at}" for at in range(len(book.ids))]
    assert book.rerun()[1].text == "1\n"
    assert book.hits == "s"


def test_c96_the_journal_ignores_itself_in_git(notebook):
    book = notebook(STEP)
    book.run_all()
    if shutil.which("git") is None:
        raise AssertionError("git is part of every machine that this runs on")
    subprocess.run(["git", "init", "-q"], cwd=book.folder, check=True)
    status = ["git", "status", "--porcelain", "-uall"]
    assert ".keel" not in subprocess.run(status, cwd=book.folder, capture_output=True, text=True, check=True).stdout


def test_c103_no_secret_is_anywhere_in_the_journal(notebook):
    secret = "sk-test-1234567890abcdefgh"
    book = notebook(f"""
api_key = "{secret}"
# ---
%%keel_step ask
r = len(api_key); token = api_key + "x"
""")
    book.run_all()
    book.shutdown()
    ingested(book)
    for path in book.journal().rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


def test_modes_of_files_keep_others_out(notebook):
    book = notebook(STEP)
    book.run_all()
    book.shutdown()
    ingested(book)
    for path in [book.journal(), *book.journal().rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


END = """
import os, sys
os.environ["JPY_SESSION_NAME"] = os.path.join(os.getcwd(), "a.ipynb")
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("%load_ext keel_notebook")
assert shell.run_cell("%%keel_step s\\nimport numpy as np; x = np.ones(3_000_000)").success
{end}
"""


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "os._exit(0)", "raise SystemExit"])
def test_the_end_of_the_interpreter_never_aborts(tmp_path, end):
    done = subprocess.run(
        [sys.executable, "-c", END.format(end=end)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "terminate" not in done.stderr
