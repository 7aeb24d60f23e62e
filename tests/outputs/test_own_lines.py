"""What keel itself says while a cell runs is about that run: it is shown, and no part of the record."""

import io

import pytest

from keel_notebook.aside import write_aside
from tests.support.notebook import KernelDied

STEP = """
%%keel_step lo
import os, sys, keel_notebook as keel
print("mine", file=sys.stderr); w = 0
for turn in keel.loop(range(4), state=["w"]):
    if turn == 2 and not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), 9)
    w += turn
print("also mine", file=sys.stderr); print(w)
# ---
%%keel_step every
import threading
lock, got = threading.Lock(), []
def ask(n):
    with lock: return n
got = keel.map(ask, [1, 2]); print("keel: a person may say this", file=sys.stderr)
"""


def own(text):
    return [line for line in text.splitlines() if line.startswith("keel: ") and "a person" not in line]


@pytest.mark.kernel
def test_keels_own_lines_of_a_run_are_no_part_of_its_record(notebook):
    book = notebook(STEP)
    with pytest.raises(KernelDied):
        book.run_all()
    book.kill()
    first = book.run_all()
    assert "goes on with turn 3: 2 were recorded" in first[-2].stderr
    assert first[-2].stderr.index("mine") < first[-2].stderr.index("goes on") < first[-2].stderr.index("also mine")
    again = book.rerun()
    assert book.table()["lo"]["decision"] == "replayed"
    assert again[-2].stderr == "mine\nalso mine\n"
    assert again[-2].text == first[-2].text
    assert book.table()["every"]["decision"] == "replayed"
    assert again[-1].stderr == "keel: a person may say this\n"


def test_in_a_shell_without_a_kernel_too(book):
    nb = book("""
# keel: step lo
import os, sys, keel_notebook as keel
print("mine", file=sys.stderr); w = 0
for turn in keel.loop(range(4), state=["w"]):
    if turn == 2 and not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), 9)
    w += turn
""")
    assert nb.run_all().signal
    assert "goes on with turn 3" in nb.run_all().acknowledged[-1]["err"]
    assert nb.run_all().acknowledged[-1]["err"] == "mine\n"


def test_any_other_stream_is_written_as_ever():
    stream = io.StringIO()
    write_aside(stream, "keel: so\n")
    assert stream.getvalue() == "keel: so\n"
