"""Auto mode: every cell is a step, no annotation (DESIGN 3.1). Real kernels, real SIGKILL."""

import pytest

from tests.support.notebook import KernelDied

pytestmark = pytest.mark.kernel

CELLS = """
%keel auto on --min-seconds 0.2
# ---
import time
import math
def area(r): return math.pi * r * r
n = 3
# ---
hit("slow"); time.sleep(0.3)
rows = [area(i) for i in range(n)]
# ---
hit("cheap"); total = sum(rows); total
"""


def test_run_all_replays_the_slow_cells_and_runs_the_cheap_ones(notebook):
    book = notebook(CELLS)
    first = book.run_all()
    assert [shown.status for shown in first] == ["ok"] * 4
    again = book.rerun()
    assert again[3].text == first[3].text
    assert book.hits == "slow cheap cheap"
    assert again[2].stderr == ""
    assert book.table()["cell-4"]["decision"] == "replayed"
    assert "cell-5" not in book.table(), "a cheap cell is a plain one"


COUNTED = """
%keel auto on
# ---
import keel_notebook.payload.digest as digests
looks = []
def looked(self, value, *rest, real=digests.StructuralDigester._digested):
    if type(value) is list and value[:1] == ["marked"]:
        looks.append(len(value))
    return real(self, value, *rest)
digests.StructuralDigester._digested = looked
# ---
marked = ["marked", *range(1000)]
# ---
print(len(looks))
# ---
marked.sort(key=str, reverse=True); print(looks[-1], len(looks))
# ---
print(len(looks))
"""


def test_before_a_cell_runs_what_it_reads_is_looked_at_once(notebook):
    """Also where it may change that and a copy is kept; and a second time the same cell looks anew."""
    book = notebook(COUNTED)
    shown = book.run_all()
    (before,), (length, then), (_,) = (list(map(int, each.text.split())) for each in shown[3:])
    assert (length, then - before) == (1001, 1)
    book.execute("marked.append(1)")
    assert book.execute("marked.sort(key=str, reverse=True); print(looks[-1])").text.startswith("1002")


def test_an_edit_above_executes_and_says_why(notebook):
    book = notebook(CELLS)
    book.run_all()
    book.edit(1, "n = 3", "n = 4")
    again = book.rerun()
    assert "keel: cell In[5] executes: input n 3 -> 4" in again[2].stderr
    assert book.hits == "slow cheap slow cheap"


def test_restore_brings_the_whole_session_back(notebook):
    book = notebook(CELLS)
    book.run_all()
    book.kill()
    book.start()
    book.execute("%load_ext keel_notebook")
    shown = book.execute("%keel restore")
    assert "not restored" not in shown.text, shown.text
    assert (
        book.execute("print(n, len(rows), round(total, 2), area(1) > 3, time.sleep(0))").text == "3 3 15.71 True None\n"
    )
    assert book.hits == "slow cheap"


def test_auto_mode_is_remembered_with_the_notebook(notebook):
    book = notebook(CELLS)
    book.run_all()
    book.kill()
    book.cells[2] = "pass"  # the cell that switched it on is gone
    book.run_all()
    assert book.hits == "slow cheap cheap"
    book.execute("%keel auto off")
    book.rerun()
    assert book.hits == "slow cheap cheap slow cheap"


def test_the_same_cell_again_executes_and_run_all_replays(notebook):
    book = notebook(CELLS)
    book.run_all()
    book.run(2)
    assert book.hits == "slow cheap slow"
    book.run(3)
    book.run(2)
    assert book.hits == "slow cheap slow cheap slow", "only a later cell ran since"
    book.run_all()
    assert book.hits == "slow cheap slow cheap slow cheap"


def test_cells_that_talk_to_a_shell_or_a_person_run_and_what_they_leave_is_kept(notebook):
    book = notebook("""
%keel auto on --min-seconds 0.1
# ---
%%bash
echo bash >> hits.txt; sleep 0.2
# ---
files = !echo one two
hit("shell")
# ---

# only a comment
# ---
%%time
import time; hit("timed"); time.sleep(0.2); y = 5
# ---
%%capture said
hit("captured"); time.sleep(0.2); print("quiet")
# ---
%%keel_step named
hit("named"); z = y + 1
# ---
print(files, y, said.stdout.strip(), z)
""")
    first = book.run_all()
    assert first[-1].text == "['one two'] 5 quiet 6\n", first
    assert "is not saved" in first[1].stderr
    again = book.rerun()
    assert again[-1].text == first[-1].text
    assert again[4].outputs == first[4].outputs
    assert book.hits == "bash shell timed captured named bash shell"
    book.kill()
    book.start()
    book.execute("%load_ext keel_notebook")
    book.execute("%keel restore")
    assert book.execute("print(files, y, said.stdout.strip(), z)").text == first[-1].text


def test_what_cannot_be_stored_breaks_nothing_and_is_named(notebook):
    book = notebook("""
%keel auto on --min-seconds 0.2
# ---
import threading, time
lock = threading.Lock(); k = 1
# ---
time.sleep(0.3); gen = (i for i in range(5)); m = 2; hit("slow")
# ---
print(next(gen), m, k, lock.locked())
""")
    first = book.run_all()
    assert first[3].text == "0 2 1 False\n"
    again = book.rerun()
    assert again[3].text == "0 2 1 False\n"
    book.kill()
    book.start()
    book.execute("%load_ext keel_notebook")
    shown = book.execute("%keel restore").text
    assert "not restored: lock (run cell In[4]" in shown
    assert "not restored: gen (run" in shown
    assert book.execute("print(k, m)").text == "1 2\n"
    shown = book.execute("%keel restore --run").text
    assert "ran, because no record holds what they make or change: cell In[4], step cell-4, cell In[6]" in shown
    assert book.execute("print(next(gen), lock.locked())").text == "1 False\n", "the session had drawn once"


def test_a_failed_cell_keeps_what_it_had_made(notebook):
    book = notebook("""
%keel auto on
# ---
x = 1
# ---
x = 2; 1 / 0
""")
    assert book.run_all()[-1].status == "error"
    book.kill()
    book.start()
    book.execute("%load_ext keel_notebook")
    book.execute("%keel restore")
    assert book.execute("print(x)").text == "2\n"


def test_killed_in_the_middle_finished_cells_stay(notebook):
    book = notebook("""
%keel auto on --min-seconds 0.1
# ---
import os, signal, time
a = [1, 2]
# ---
hit("one"); time.sleep(0.2); b = [*a, 3]
# ---
hit("two"); b.append(4)
if not os.path.exists("died"):
    open("died", "w").close(); os.kill(os.getpid(), signal.SIGKILL)
time.sleep(0.2)
# ---
print(b)
""")
    with pytest.raises(KernelDied):
        book.run_all()
    book.kill()
    assert book.run_all()[-1].text == "[1, 2, 3, 4]\n"
    assert book.hits == "one two two"


def test_what_a_cheap_cell_drew_comes_back_in_the_first_kernel_after_a_death(notebook):
    """Trap 20: a cheap `run_id` runs again; the slow cell that reads it must not, though the cell was new before."""
    book = notebook("""
%keel auto on --min-seconds 0.2
# ---
import time, uuid
t0 = time.time(); run_id = uuid.uuid4().hex
# ---
hit("slow"); time.sleep(0.3); made_by = run_id
# ---
print(made_by == run_id)
""")
    for _ in range(2):
        assert book.rerun()[-1].text == "True\n"
    assert book.hits == "slow"
