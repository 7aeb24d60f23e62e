"""Area A: the kernel dies or is restarted, and what had finished is back. Real kernels, real SIGKILL."""

import os
import signal

import pytest

from tests.support.notebook import KernelDied

pytestmark = pytest.mark.kernel


def test_c01_after_sigkill_everything_that_had_finished_is_back(notebook):
    book = notebook("""
%%keel_step load
hit("load"); import numpy as np
X = np.arange(1_000_000); total = int(X.sum())
# ---
print(total, X.dtype)
""")
    book.run_all()
    shown = book.rerun()
    assert shown[1].text == "499999500000 int64\n"
    assert book.hits == "load"
    assert book.table()["load"]["decision"] == "replayed"


def test_c03_the_step_that_always_kills_its_kernel_is_dead_after_its_attempts(notebook):
    book = notebook("""
%%keel_step poison --max-attempts 2
import os; hit("p"); os.kill(os.getpid(), 9)
""")
    for _ in range(2):
        with pytest.raises(KernelDied):
            book.run_all()
        book.kill()
    shown = book.run_all()
    assert shown[0].status == "error"
    assert "E032" in shown[0].error
    assert "2 times" in shown[0].error
    assert book.hits == "p p"
    assert book.kernel.is_alive()
    assert book.table()["poison"]["state"] == "dead"
    book.execute("%keel revive poison")
    with pytest.raises(KernelDied):
        book.run(0)
    assert book.hits == "p p p"


def test_k10_the_step_that_was_running_at_a_kill_executes_again_as_attempt_2(notebook):
    book = notebook("""
%%keel_step once
import os; hit("once")
if not os.path.exists("go"): os.kill(os.getpid(), 9)
v = 7
# ---
print(v)
""")
    with pytest.raises(KernelDied):
        book.run_all()
    book.kill()
    (book.folder / "go").write_text("")
    shown = book.run_all()
    assert shown[1].text == "7\n"
    assert book.hits == "once once"
    assert book.table()["once"]["attempts"] == 2


def test_c04_after_a_wanted_restart_plain_cells_run_and_steps_replay(notebook):
    book = notebook("""
%%keel_step prep
hit("prep"); rows = list(range(5)); label = "train"
# ---
n = len(rows)
# ---
print(label, n)
""")
    book.run_all()
    book.shutdown()
    shown = book.run_all()
    assert shown[2].text == "train 5\n"
    assert book.hits == "prep"


def test_c06_sigterm_after_the_work_is_done_loses_nothing(notebook):
    book = notebook("""
%%keel_step train
hit("t"); print("epoch 1"); model = {"w": [0.5]}
# ---
print(model)
""")
    book.run_all()
    os.kill(book.pid, signal.SIGTERM)
    book.kill()
    shown = book.run_all()
    assert shown[0].text == "epoch 1\n"
    assert shown[1].text == "{'w': [0.5]}\n"
    assert book.hits == "t"


def test_c53_imports_made_in_a_replayed_step_are_there(notebook):
    book = notebook("""
%%keel_step imp
hit("i"); import numpy as np, json as J
from math import sqrt
x = np.ones(2)
# ---
print(np.sum(x), J.dumps(1), sqrt(4))
""")
    book.run_all()
    assert book.rerun()[1].text == "2.0 1 2.0\n"
    assert book.hits == "i"


def test_c37_generators_go_on_from_the_recorded_state(notebook):
    book = notebook("""
import numpy as np, random
np.random.seed(1); random.seed(1)
# ---
%%keel_step r
a = np.random.rand(3); q = random.random(); hit("r")
# ---
print(np.random.rand(2), random.random())
""")
    first = book.run_all()
    again = book.rerun()
    assert again[2].text == first[2].text
    assert book.hits == "r"


def test_deleted_names_are_gone_after_a_replay(notebook):
    book = notebook("""
a, b = 1, 2
# ---
%%keel_step gone
hit("g"); c = a + b
del b
# ---
print("b" in globals(), c)
""")
    book.run_all()
    assert book.rerun()[2].text == "False 3\n"
    assert book.hits == "g"


def test_aliases_inside_a_step_survive(notebook):
    book = notebook("""
%%keel_step alias
hit("a"); a = [1]; b = a; d = {"a": a}
# ---
print(b is a, d["a"] is a)
""")
    book.run_all()
    assert book.rerun()[1].text == "True True\n"
    assert book.hits == "a"


def test_out_and_the_last_results_are_back(notebook):
    book = notebook("""
%%keel_step val
hit("v"); x = 20
x + 1
# ---
print(_, Out[max(Out)])
""")
    first = book.run_all()
    again = book.rerun()
    assert first[0].outputs[0]["output_type"] == again[0].outputs[0]["output_type"] == "execute_result"
    assert again[0].outputs[0]["execution_count"] == again[0].count
    assert first[1].text == again[1].text == "21 21\n"
    assert book.hits == "v"


def test_c50_what_cannot_be_stored_never_breaks_the_cell_and_is_named(notebook):
    book = notebook("""
%%keel_step mix
hit("m"); import sqlite3, threading
con = sqlite3.connect(":memory:"); g = (i for i in range(3)); lock = threading.Lock(); n = 5
# ---
print(n); print(next(g))
""")
    first = book.run_all()
    assert first[0].status == "ok"
    named = {item["name"]: item["type"] for item in book.table()["mix"]["not_stored"]}
    assert named.keys() == {"con", "g", "lock"}
    assert named["con"] == "sqlite3.Connection"
    shown = book.rerun()
    assert shown[1].text == "5\n0\n"
    assert book.hits == "m m", "a step that lacks a value executes again instead of giving a NameError"


def test_c50_a_value_that_nobody_reads_again_does_not_make_the_step_execute(notebook):
    book = notebook("""
%%keel_step read
hit("r")
with open("in.txt") as f: text = f.read()
# ---
with open("in.txt") as f: again = f.read()
print(text, again)
""")
    (book.folder / "in.txt").write_text("abc")
    assert book.run_all()[0].stderr == "", "a closed file is nobody's loss"
    assert book.rerun()[1].text == "abc abc\n"
    assert book.hits == "r"


def test_e020_a_reader_of_a_lost_value_is_refused_and_its_step_executes_next_time(notebook):
    book = notebook("""
%%keel_step make
hit("m"); g = (i for i in range(3)); n = 5
# ---
print(n)
""")
    book.run_all()
    book.rerun()
    assert book.hits == "m"
    refused = book.execute("print(next(g))")
    assert refused.status == "error"
    assert "E020" in refused.error
    assert "make" in refused.error
    assert book.run(0).status == "ok"
    assert book.execute("print(next(g))").text == "0\n"
    assert book.hits == "m m"


def test_an_archive_of_arrays_comes_back_and_reads_from_its_file(book):
    """`np.load("a.npz")` gives a value that reads when asked: it is opened again where its file is as it was."""
    nb = book("""
import numpy as np
np.savez("a.npz", x=np.arange(3), y=np.ones(2))
# ---
# keel: step a
hit("a"); z = np.load("a.npz"); same = [z]
with np.load("a.npz") as closed: first = closed["x"]
# ---
# keel: step b
hit("b"); total = z["x"].sum()
# ---
print(z["y"], z, same[0] is z, closed.zip, list(closed.files), total, first)
""")
    shown = nb.shows()
    assert shown.startswith("[1. 1.] NpzFile 'a.npz' with keys: x, y True None ['x', 'y'] 3 [0 1 2]")
    assert nb.shows() == shown
    assert nb.hits == "a b"
    nb.edit(0, "np.arange(3)", "np.arange(4)")
    assert "6 [0 1 2 3]" in nb.shows()
    assert nb.hits == "a b a b"
    nb.cells = ["import numpy as np", "np.savez('a.npz', x=np.zeros(1))"]
    said = nb.run_all("%keel restore").printed[-1]
    assert "not restored: z (run step a: it needs the archive a.npz, which has changed since" in said
    assert "first, total" in said, "the rest is there"
