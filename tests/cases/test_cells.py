"""Area E: what a cell can hold behaves as in a plain cell."""

import subprocess
import sys

import nbformat
import pytest

pytestmark = pytest.mark.kernel


def test_c62_top_level_await(notebook):
    book = notebook("""
%%keel_step aw
import asyncio; hit("a")
x = await asyncio.sleep(0, 5)
# ---
print(x)
""")
    assert book.run_all()[1].text == "5\n"
    assert book.rerun()[1].text == "5\n"
    assert book.hits == "a"


def test_c64_magics_and_shell_lines(notebook):
    book = notebook("""
%%keel_step sh
%matplotlib inline
hit("s")
files = !echo one two
%time y = sum(range(10))
!echo done
# ---
print(files, y)
""")
    first = book.run_all()
    again = book.rerun()
    assert again[1].text == "['one two'] 45\n"
    assert again[0].outputs == first[0].outputs
    assert "done" in again[0].text
    assert "Wall time" in again[0].text
    assert book.hits == "s"


def test_c64_a_cell_magic_as_first_body_line(notebook):
    book = notebook("""
%%keel_step timed
%%time
hit("t"); y = sum(range(10))
# ---
print(y)
""")
    first = book.run_all()
    assert first[0].status == "ok", first[0].error
    again = book.rerun()
    assert again[1].text == "45\n"
    assert again[0].outputs == first[0].outputs
    assert book.hits == "t"


@pytest.mark.parametrize(
    "head", ["# load the data\n%%keel_step ld", "\n\n%%keel_step ld", "# keel: step ld", "# a\n# keel: step ld"]
)
def test_c65_comments_and_blank_lines_above_the_line(notebook, head):
    book = notebook([f"{head}\nhit('l'); x = 1", "print(x)"])
    assert book.run_all()[1].text == "1\n"
    assert book.rerun()[1].text == "1\n"
    assert book.hits == "l"


_FAILING = {
    "the line below": ("# a comment\n%%keel_step bad\n1 / 0", "2 %%keel_step bad"),
    "in the middle": (
        "%%keel_step bad --ttl 2h\nx = 1\ndef f():\n    raise ValueError('no')\nf()",
        "1 %%keel_step bad --ttl 2h",
    ),
    "a comprehension over lines": (
        "%%keel_step bad\nxs = {'a': 1,\n      'b': 0}\n{k: 1 / v\n for k, v in xs.items()}",
        "1 %%keel_step bad",
    ),
    "the comment": ("# keel: step bad\n1 / 0", "1 # keel: step bad"),
    "with its options": ("%%keel_step bad  --retries 0\n1 / 0", "1 %%keel_step bad  --retries 0"),
}


@pytest.mark.parametrize(("source", "line"), _FAILING.values(), ids=_FAILING)
def test_tracebacks_are_those_of_a_plain_cell_and_show_its_lines_as_written(notebook, source, line):
    book = notebook([source, "x = f if 'f' in globals() else print"])
    (shown,) = book.run_all()[:1]
    traceback = _lines(shown)
    assert line in [" ".join(each.split(maxsplit=1)) for each in traceback]
    plain = book.execute(source.replace("%%keel_step", "# step", 1).replace("# keel: step", "# step"))
    assert ("# keel: step" in "\n".join(traceback)) == ("# keel: step" in source)
    own = ("%%keel_step", "# keel: step", "# step")
    assert [each for each in traceback if not any(mark in each for mark in own)] == [
        each for each in _lines(plain) if not any(mark in each for mark in own)
    ]


def _lines(shown):
    import re

    text = "\n".join(next(o for o in shown.outputs if o["output_type"] == "error")["traceback"])
    bare = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return re.sub(r"In\[\d+\]|ipykernel_\d+/\d+|line \d+ in <cell line.*", "", bare).split("\n")


def test_c66_under_nbclient_an_error_stops_the_run_and_nothing_after_it_runs(tmp_path):
    book = nbformat.v4.new_notebook()
    book.cells = [
        nbformat.v4.new_code_cell(source)
        for source in (
            "%load_ext keel_notebook",
            "%%keel_step bad\nprint('before')\n1/0",
            "open('after.txt', 'w').write('x')",
        )
    ]
    path = tmp_path / "a.ipynb"
    nbformat.write(book, path)
    done = subprocess.run(
        [sys.executable, "-m", "jupyter", "nbconvert", "--to", "notebook", "--execute", "--inplace", str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stderr
    assert "before" in done.stderr
    assert not (tmp_path / "after.txt").exists()


def test_c66_under_papermill_an_error_stops_the_run(tmp_path):
    book = nbformat.v4.new_notebook()
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book.cells = [
        nbformat.v4.new_code_cell(source)
        for source in (
            "%load_ext keel_notebook",
            "%%keel_step bad\nprint('before')\n1/0",
            "open('after.txt', 'w').write('x')",
        )
    ]
    nbformat.write(book, tmp_path / "a.ipynb")
    done = subprocess.run(
        [sys.executable, "-m", "papermill", "a.ipynb", "b.ipynb", "--cwd", str(tmp_path), "--no-progress-bar"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert not (tmp_path / "after.txt").exists()
    written = nbformat.read(tmp_path / "b.ipynb", as_version=4)
    bad = next(cell for cell in written.cells if "keel_step" in cell.source)
    assert [output.output_type for output in bad.outputs] == ["stream", "error"]


def test_an_interrupt_is_recorded_as_one_and_executed_again(notebook):
    book = notebook("""
%%keel_step long
import time, os; hit("l")
while not os.path.exists("go"): time.sleep(0.01)
v = 1
""")
    book.start()
    for at in range(2):
        book._run(at)
    import threading

    def interrupt_once_it_runs():
        while book.hits != "l":
            pass
        book.kernel.interrupt_kernel()

    thread = threading.Thread(target=interrupt_once_it_runs)
    thread.start()
    shown = book.run(0)
    thread.join()
    assert shown.error.startswith("KeyboardInterrupt")
    assert book.table()["long"]["state"] == "interrupted"
    (book.folder / "go").write_text("")
    assert book.run(0).status == "ok"
    assert book.hits == "l l"


def test_debug_works_after_a_failed_step(notebook):
    book = notebook("""
%%keel_step bad
deep = 42
def f():
    local = 43
    raise ValueError("no")
f()
""")
    book.run_all()
    shown = book.execute(
        "import sys; tb = sys.last_traceback\nwhile tb.tb_next: tb = tb.tb_next\nprint(tb.tb_frame.f_locals['local'])"
    )
    assert shown.text == "43\n"


def test_silent_requests_and_nested_runs_pass_through(notebook):
    book = notebook("""
%%keel_step s
hit("s"); a = 1
# ---
get_ipython().run_cell("%%keel_step nested\\nhit('n'); b = 2")
print(b)
""")
    book.run_all()
    book.execute("%%keel_step silent\nhit('q')", silent=True)
    shown = book.rerun()
    assert shown[1].text == "2\n"
    assert book.hits == "s n q n"
    assert set(book.table()) == {"s"}


def test_e001_a_line_that_cannot_be_read_runs_nothing(notebook):
    book = notebook("""
%%keel_step s --nope
hit("s")
""")
    (shown,) = book.run_all()
    assert shown.error.startswith("SettingsError: KEEL-E001: --nope")
    assert book.hits == ""
    assert book.execute("1 + 1").text == "2", "the next cell works"


def test_a_guarded_step_happens_once_whatever_is_edited_in_it(notebook):
    book = notebook("""
%%keel_step pay --effect exactly_once
hit("pay")
""")
    book.run_all()
    assert [shown.error for shown in book.rerun()] == [""]
    assert book.hits == "pay"
    book.edit(0, 'hit("pay")', 'hit("pay again")')
    assert "E031" in book.run(0).error
    assert book.hits == "pay"


def test_the_cell_sees_no_trace_of_keel(notebook):
    book = notebook("""
%%keel_step s
from __future__ import annotations
print(sorted(n for n in globals() if 'keel' in n), __name__)
""")
    (shown,) = book.run_all()
    assert shown.text == "[] __main__\n"
