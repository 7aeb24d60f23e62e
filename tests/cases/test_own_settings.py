"""What a step itself sets without a name is not its own input (DESIGN 5, Rewind; C31). A restart is a new process."""

import pytest

pytestmark = pytest.mark.crash

SETS = """
import os, sys
sys.path.append(os.getcwd())
# ---
%%keel_step fit
hit("fit")
import sets_things
seen = os.environ.get("OURS"), os.environ.setdefault("OURS", "1"), dict(os.environ).get("THEIRS")
os.environ["COUNT"] = str(int(os.environ.get("COUNT", "0")) + 1)
"""
SHOWS = "print(seen, os.environ['COUNT'])"
TRUTH = "(None, '1', 'x') 1"
LIBRARY = "import os\nos.environ.setdefault('THEIRS', 'x')\n"


def run_again(notebook, *cells):
    """Run All twice in one process; what the last cell prints, and what was said on stderr."""
    run = notebook.run_all(*notebook.cells, *cells, SHOWS)
    assert not run.error, run.error
    return run.printed[-1].strip(), "".join(cell["err"] for cell in run.acknowledged)


def test_variables_that_a_step_sets_are_found_as_before_when_it_comes_round_again(book):
    notebook = book(SETS)
    (notebook.folder / "sets_things.py").write_text(LIBRARY)
    for _ in range(2):
        assert run_again(notebook) == (TRUTH, "")
    assert notebook.hits == "fit"


def test_executed_anew_the_step_starts_from_the_variables_that_it_first_found(book):
    notebook = book(SETS)
    (notebook.folder / "sets_things.py").write_text(LIBRARY)
    for hits in ("fit fit", "fit fit fit"):  # executed above, then put back
        anew = notebook.run_all("%keel rerun fit", *notebook.cells, SHOWS)
        assert anew.printed[-1].strip() == TRUTH
        assert notebook.hits == hits
    assert run_again(notebook)[0] == TRUTH
    assert notebook.hits == hits, "what it recorded then holds in a new kernel"


def test_a_variable_that_another_cell_sets_to_the_same_text_is_an_input(book):
    notebook = book(SETS)
    (notebook.folder / "sets_things.py").write_text(LIBRARY)
    run = notebook.run_all("import os; os.environ['OURS'] = ''.join(['1'])", *notebook.cells, "%keel why fit", SHOWS)
    assert run.printed[-1].strip() == "('1', '1', 'x') 1"
    assert notebook.hits == "fit fit"
    assert run.printed[-2].count("environment variable OURS is set now") <= 2, "said once, and once in the table"


IMPORTS = """
import os, sys
sys.path.append(os.getcwd())
# ---
%%keel_step early
hit("early"); early = dict(os.environ).get("THEIRS")
# ---
%%keel_step fit
hit("fit"); import sets_things; thing = sets_things.Thing(); theirs = dict(os.environ).get("THEIRS")
# ---
%%keel_step late
hit("late"); late = dict(os.environ).get("THEIRS"), type(thing).__name__
"""


def test_what_an_import_sets_while_keel_puts_values_back_is_no_input_of_the_steps(book):
    """Traps 16: unpickling a value imports its library, before the step that did so in the run that is recorded."""
    notebook = book(IMPORTS)
    (notebook.folder / "sets_things.py").write_text(LIBRARY + "class Thing: pass\n")
    shows = "print(early, theirs, late)"
    assert notebook.shows(shows) == "None x ('x', 'Thing')"
    for back in ("%keel restore", "%keel restore thing"):
        first, *steps = notebook.cells
        notebook.cells = [first, back, "print(os.environ['THEIRS'])", *steps]
        run = notebook.run_all(shows)
        notebook.cells = [first, *steps]
        assert not run.error, run.error
        assert run.printed[4].strip() == "x", "the import came with the value"
        assert "".join(cell["err"] for cell in run.acknowledged) == ""
    assert notebook.shows(shows) == "None x ('x', 'Thing')"
    assert notebook.hits == "early fit late"


def test_what_a_cell_sets_after_a_restore_counts(book):
    notebook = book(IMPORTS)
    (notebook.folder / "sets_things.py").write_text(LIBRARY + "class Thing: pass\n")
    notebook.run_all()
    first, *steps = notebook.cells
    notebook.cells = [first, "%keel restore", "os.environ['THEIRS'] = 'x'", *steps]
    assert notebook.shows("print(early)") == "x"
    assert notebook.hits == "early fit late early fit"


OPTIONS = """
import logging
import matplotlib; matplotlib.use("agg")
import matplotlib.pyplot as plt, numpy as np, pandas as pd
# ---
%%keel_step draw
hit("draw")
plt.rcParams["font.size"] += 2; pd.set_option("display.max_rows", 7); np.seterr(all="ignore")
logging.getLogger("a.b").setLevel(10)
seen = plt.rcParams["font.size"], str(pd.DataFrame({"a": [1]})), float(np.log(np.array([1.0]))[0])
# ---
%%keel_step later
hit("later"); pd.set_option("mode.sim_interactive", True); plt.style.use("ggplot"); total = int(pd.Series([1]).sum())
"""
OPTIONS_SHOW = "print(seen[0], total, pd.get_option('mode.sim_interactive'), plt.rcParams['font.size'])"


def test_options_that_steps_set_are_found_as_before_when_they_come_round_again(book):
    notebook = book(OPTIONS)
    for _ in range(2):
        run = notebook.run_all(*notebook.cells, OPTIONS_SHOW)
        assert run.printed[-1].strip() == "12.0 1 True 10.0"
        assert "executes" not in "".join(cell["err"] for cell in run.acknowledged)
    assert notebook.hits == "draw later"


def test_executed_anew_a_step_starts_from_the_options_that_it_first_found(book):
    notebook = book(OPTIONS.partition("# ---\n%%keel_step later")[0])
    run = notebook.run_all("%keel rerun draw", *notebook.cells[1:], "print(seen[0], plt.rcParams['font.size'])")
    assert run.printed[-1].strip() == "12.0 12.0"
    assert notebook.hits == "draw draw"


def test_an_option_that_a_plain_cell_sets_counts_all_the_same(book):
    notebook = book(OPTIONS.partition("# ---\n%%keel_step later")[0])
    run = notebook.run_all("plt.rcParams['font.size'] = 20", *notebook.cells[1:], "print(seen[0])")
    assert run.printed[-1].strip() == "22.0"
    assert notebook.hits == "draw draw"


def test_axes_of_a_plain_cell_are_equal_in_every_process(book):
    notebook = book("""
import matplotlib; matplotlib.use("agg")
import matplotlib.pyplot as plt
fig, ax = plt.subplots()
polar = plt.figure().add_subplot(projection="polar")
# ---
%%keel_step lines
hit("lines"); ax.plot([1, 2]); polar.plot([1]); n = 1
# ---
%%keel_step title
hit("title"); t = ax.set_title("x")
# ---
print(len(ax.lines), ax.get_title(), ax.figure is fig)
""")
    for _ in range(3):
        assert notebook.shows() == "1 x True"
    assert notebook.hits == "lines title"
