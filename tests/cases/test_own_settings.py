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
