"""What a clock or entropy made in a plain cell, in a new run and in one that goes on (DESIGN 5, Volatile; traps 3)."""

import pytest

DIE = "import os; os.kill(os.getpid(), 9)"

CELLS = """
import datetime as dt, os, random, secrets, time, uuid
import numpy as np
from uuid import uuid4
from pathlib import Path
def new_name(): return "run-" + uuid4().hex[:8]
# ---
t0 = time.time(); stamp = f"{dt.datetime.now():%Y-%m-%d %H:%M:%S.%f}"
run_id, salt = uuid.uuid4(), os.urandom(4).hex()
name = new_name()
label = f"{name} at {t0 + 1}"
rng = np.random.default_rng()
where = Path(f"out-{name}")
# ---
later = stamp + label
print(t0, stamp, run_id, salt, name, label, where, later)
# ---
%%keel_step work
hit("work"); made = (t0, run_id, label); draw = rng.integers(1 << 40)
# ---
print(made[0] == t0, made[1] == run_id, made[2] == label, draw)
"""


def test_a_run_that_goes_on_has_the_clock_and_the_entropy_of_the_one_that_died(book):
    notebook = book(CELLS)
    first = notebook.run_all(DIE)
    assert first.signal == 9
    again = notebook.run_all()
    assert not again.error
    assert again.printed[4:7] == first.printed[4:7]
    said = again.acknowledged[3]["err"]
    assert "resuming run 1 of " in said
    assert "label, name, rng, run_id, salt, stamp, t0, where as then; `%keel flow --new` starts afresh" in said
    assert notebook.hits == "work"
    new = notebook.run_all()
    assert "resuming" not in str(new.acknowledged), "that one ended in order"
    assert new.printed[4] != first.printed[4]
    assert notebook.hits == "work work"
    assert "--ignore" in new.acknowledged[5]["err"]


def test_a_cell_that_is_run_once_more_by_hand_gives_what_it_gives(book):
    notebook = book("import time\n# ---\n%%keel_step a\nhit('a'); x = 1\n# ---\nt = time.time_ns(); print(t)")
    first = notebook.run_all(DIE)
    again = notebook.run_all("t = time.time_ns(); print(t)")
    assert again.printed[4] != first.printed[4], "print ran before"
    assert again.printed[5] != again.printed[4]


KEPT = "import time, json\nfrom pathlib import Path\ndef load(p): return Path(p).read_text()\nk = 1\n"
NOT_VOLATILE = {
    "file": 'x = (time.time(), open("in.txt").read())',
    "function": 'x = (time.time(), load("in.txt"))',
    "method": 'x = (time.time(), Path("in.txt").read_text())',
    "read": 'rows = load("in.txt"); x = (time.time(), rows)',
    "child": "import subprocess\nx = (time.time(), subprocess.check_output(['cat', 'in.txt']))",
    "edited": "x = (time.time(), k)",
    "branch": "if k: x = (time.time(), open('in.txt').read())",
}


@pytest.mark.parametrize("way", NOT_VOLATILE)
def test_a_repaired_input_is_never_overwritten_by_an_old_value(book, way):
    notebook = book(f"{KEPT}\n# ---\n{NOT_VOLATILE[way]}\n# ---\n%%keel_step s\nhit('s'); y = x[1]\n# ---\nprint(y)")
    (notebook.folder / "in.txt").write_text("bad")
    notebook.run_all(DIE)
    (notebook.folder / "in.txt").write_text("good")
    if way == "edited":
        notebook.edit(0, "k = 1", "k = 'good'")
    run = notebook.run_all()
    assert "good" in run.printed[-1]
    assert "resuming" not in str(run.acknowledged)
    assert notebook.hits == "s s"


def test_what_reads_the_clock_before_the_first_step_reads_the_old_one(book):
    """In a notebook that is known, values are back before the next plain cell reads them."""
    notebook = book("""
import time
t0 = time.time_ns()
# ---
rows = []
rows.append(t0)
# ---
%%keel_step s
hit("s"); n = len(rows), rows[0]
# ---
print(n, t0)
""")
    first = notebook.run_all(DIE)
    again = notebook.run_all()
    assert again.printed[-1] == first.printed[-1]
    assert notebook.hits == "s"


def test_values_in_auto_mode_come_back_as_well(book):
    notebook = book("%keel auto on --min-seconds 0\n# ---\nimport time\n# ---\nt0 = time.time_ns()\n# ---\nprint(t0)")
    first = notebook.run_all(DIE)
    again = notebook.run_all()
    assert again.printed[-1] == first.printed[-1]


def test_a_flow_that_is_named_below_the_first_cells_knows_how_their_values_were_made(book):
    notebook = book("""
import sqlite3, time
con = sqlite3.connect(":memory:", timeout=time.time() * 0 + 5)
# ---
%keel flow nightly
# ---
%%keel_step s
hit("s"); n = con.execute("select 1").fetchone()
# ---
print(n)
""")
    for _ in range(3):
        assert notebook.shows() == "(1,)"
    assert notebook.hits == "s"
