"""What plain cells set without a name, as inputs of the steps that use it (DESIGN 6, Ambient state; traps 16)."""

import pytest

pytestmark = pytest.mark.kernel

SETS = """
import os, decimal, numpy as np, pandas as pd, matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
os.makedirs("one", exist_ok=True); os.makedirs("two", exist_ok=True)
for folder in ("one", "two"):
    open(folder + "/x.txt", "w").write(folder)
frame = pd.DataFrame({"v": range(20)})
# ---
os.environ["MODE"] = "a"; os.environ["LEFT_ALONE"] = "1"; os.environ["API_KEY"] = "sk-0123456789abcdefghij"
# ---
os.chdir("one")
# ---
plt.rcParams["lines.linewidth"] = 1
# ---
pd.set_option("display.max_rows", 5); np.set_printoptions(suppress=True)
# ---
np.seterr(divide="ignore"); decimal.getcontext().prec = 5
# ---
%%keel_step nothing
hit("nothing"); n = 1 + 1
# ---
%%keel_step mode
hit("mode"); m = os.environ["MODE"], os.getenv("NOT_SET"), os.environ.get("API_KEY", "")[:2]
# ---
%%keel_step folder
hit("folder"); text = open("x.txt").read()
# ---
%%keel_step plots
hit("plots"); fig, ax = plt.subplots(); ax.plot([1]); width = ax.lines[0].get_linewidth(); plt.close(); del fig, ax
# ---
%%keel_step shows
hit("shows"); print(frame); print(np.array([1.23456]))
# ---
%%keel_step sums
hit("sums"); total = int(frame.v.sum())
# ---
os.chdir("..")
"""
ALL = "nothing mode folder plots shows sums"
EVERY_STEP = range(6, 12)
USERS_OF_NUMPY = ("plots", "shows", "sums")
EDITS = [
    (1, '"MODE"] = "a"', '"MODE"] = "b"', {"mode": "mode executes: environment variable MODE changed"}),
    (1, '"LEFT_ALONE"] = "1"', '"LEFT_ALONE"] = "2"', {}),
    (1, '"LEFT_ALONE"', '"NOT_SET"', {"mode": "environment variable NOT_SET is set now"}),
    (1, "sk-0", "sk-1", {"mode": "environment variable API_KEY changed"}),
    (2, '"one"', '"two"', {"folder": "folder executes: working directory one -> two"}),
    (3, "= 1", "= 7", {"plots": "plots executes: matplotlib lines.linewidth 1.0 -> 7.0"}),
    (
        4,
        "max_rows",
        "max_columns",
        {"shows": "pandas display.max_columns default -> 5"},
    ),
    (4, "suppress=True", "suppress=False", {"plots": "", "shows": "numpy print suppress True -> default"}),
    (5, '"ignore"', '"raise"', dict.fromkeys(USERS_OF_NUMPY, "numpy errors divide 'ignore' -> 'raise'")),
    (5, "prec = 5", "prec = 6", dict.fromkeys(ALL.split(), "decimal context")),
]
"""Which cell is edited, from what to what; which steps execute for it, and why. matplotlib prints numbers."""


def test_each_setting_is_an_input_of_the_steps_that_use_it_and_of_no_other(notebook):
    book = notebook(SETS)
    book.cells[1] = book.cells[1].replace('"hits.txt"', repr(str(book.folder / "hits.txt")))
    assert [shown.error for shown in book.run_all() if shown.status != "ok"] == []
    assert book.hits == ALL
    assert all(shown.stderr == "" for shown in book.rerun()), "and nothing is recomputed for nothing"
    assert book.hits == ALL

    for at, old, new, expected in EDITS:
        before = book.hits
        book.edit(at, old, new)
        shown = book.run_all()
        ran = book.hits.removeprefix(before).split()
        assert ran == list(expected), (new, [shown[step].stderr for step in EVERY_STEP])
        for step, said in expected.items():
            assert said in shown[6 + ALL.split().index(step)].stderr
    assert "sk-" not in book.execute("%keel why mode").text
