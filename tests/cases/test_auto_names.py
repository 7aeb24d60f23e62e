"""A cell without a name goes by where it stands and how it begins: nobody is shown a front end's id (DESIGN 3.1)."""

import pytest

pytestmark = pytest.mark.kernel

CELLS = """
%keel auto on --min-seconds 0.2
# ---
import time
n = 3
# ---
# what takes long
time.sleep(0.3); rows = list(range(n))
# ---
%%keel_step named
print(len(rows))
"""


@pytest.mark.parametrize("line", ["%keel", "%keel plan", "%keel why cell 5", "%keel diff cell 5", "%keel rerun cell 5"])
def test_a_cell_without_a_name_is_called_by_its_place_and_its_first_words(notebook, line):
    book = notebook(CELLS)
    book.run_all()
    shown = book.execute(line)
    assert "cell 5 (time.sleep(0.3); rows =…)" in shown.text, shown
    assert "cell-" not in shown.text
    assert book.table()["cell-4"]["decision"] == "executed", "for programs it goes by its id"
