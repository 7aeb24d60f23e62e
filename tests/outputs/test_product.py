"""Area B of the cases, through the product: real kernel, SIGKILL, Run All; the outputs are those of the first run."""

import re

import pytest

pytestmark = [pytest.mark.kernel, pytest.mark.crash]

CELLS = """
%matplotlib inline
import matplotlib.pyplot as plt, random, sys, threading, time
import ipywidgets as w
# What the threads wait on hangs where no step reads it as a value.
for name in ("go", "done"): setattr(threading.main_thread(), name, threading.Event())
# ---
%%keel_step epochs
hit("epochs")
for i in range(5): print("epoch", i, flush=True)
# ---
%%keel_step fig
hit("fig"); plt.plot([1, 2, 3]);
# ---
print("x")
# ---
%%keel_step cr
hit("cr")
for i in range(20000): sys.stderr.write(f"\\r{i}/20000")
sys.stderr.write("\\n");
# ---
%%keel_step wi
hit("wi"); display(w.IntSlider(value=7)); print("under")
# ---
%%keel_step ow
hit("ow"); out = w.Output()
print("1")
with out: print("2")
display(out); print("3"); del out
# ---
%%keel_step th
hit("th")
def late(main):
    main.go.wait(30); print("late"); main.done.set()
threading.Thread(target=late, args=(threading.main_thread(),)).start(); print("now")
# ---
%%keel_step other
hit("other"); threading.main_thread().go.set(); threading.main_thread().done.wait(30); print("other")
# ---
%%keel_step noisy
hit("noisy")
for i in range(150_000): print("line", i)
# ---
%%keel_step mime
hit("mime"); display({"application/vnd.plotly.v1+json": {"data": [], "layout": {}},
         "text/html": "<div>p</div>", "text/plain": "p"}, raw=True, metadata={"k": 1})
# ---
%%keel_step sh
hit("sh")
!echo from a child
41 + 1
# ---
%%keel_step ambient
import os
hit("ambient"); random.seed(5); os.environ["MODE"] = "prod"; plt.rcParams["lines.linewidth"] = 7
# ---
import os
print(random.random(), os.environ["MODE"], plt.rcParams["lines.linewidth"])
"""
NAMES = [line.split()[1] for line in CELLS.split("\n") if line.startswith("%%keel_step")]


@pytest.fixture
def runs(notebook, monkeypatch):
    """The outputs of the first run and of a run after the kernel was killed, by step; and the book."""
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # ipykernel does not read what children write while it sees pytest
    book = notebook(CELLS)
    by_name = []
    for run in (book.run_all, book.rerun):
        shown = run()
        assert [one.error for one in shown if one.status != "ok"] == []
        steps = [re.match(r"%%keel_step (\w+)", source) for source in book.cells[2:]]
        by_name.append({step[1] if step else at: one for at, (step, one) in enumerate(zip(steps, shown, strict=True))})
    return *by_name, book


def test_area_b_every_output_comes_back_after_a_death_and_nothing_ran_twice(runs):
    first, again, book = runs
    assert sorted(book.hits.split()) == sorted(NAMES)

    for same in ("epochs", "fig", "mime", "sh", "wi", "ow"):  # C11, C13, C24, C64; C17, C18: they live again
        assert again[same].outputs == first[same].outputs, same
    assert again["epochs"].text == "".join(f"epoch {i}\n" for i in range(5))
    assert [output["output_type"] for output in again["fig"].outputs] == ["display_data"]
    assert again["mime"].outputs[0]["metadata"] == {"k": 1}
    assert "from a child" in again["sh"].text
    assert again[3].text == "x\n"  # C13: and no figure under the next cell

    assert again["cr"].stderr == "19999/20000\n"  # C16
    assert again["wi"].text == "IntSlider(value=7)under\n"
    assert sorted(first["other"].text.split()) == ["late", "other"]  # C19: shown, and credited to nobody
    assert again["other"].text == "other\n"
    assert again["noisy"].text.startswith("line 0\n")  # C21
    assert again["noisy"].text.endswith("line 149999\n")
    assert " bytes …\n" in again["noisy"].text
    last = len(book.cells) - 3
    assert again[last].text == first[last].text  # C37, trap 16
