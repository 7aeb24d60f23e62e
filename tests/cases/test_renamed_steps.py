"""A step under another name: it executes, and says where its record is. Shells in processes of their own."""

import pytest

CELLS = """
n = 2
# ---
# keel: step add
total = n + 1
# ---
# keel: step last
last = 5
"""


def test_a_renamed_step_says_under_which_name_its_code_is_recorded(book):
    nb = book(CELLS)
    nb.run_all()
    nb.cells[1] = nb.cells[1].replace("step add", "step addition")
    said = [
        cell["err"] for cell in nb.run_all("print(get_ipython().run_line_magic('keel', 'why addition'))").acknowledged
    ]
    why = "there is no record of it; the same code is recorded as add"
    assert f"keel: addition executes: {why}, and replays under that name\n" in said
    nb.cells[1] = nb.cells[1].replace("step addition", "step add")
    assert not any(cell["err"] for cell in nb.run_all().acknowledged), "it replays"
    nb.cells[1] = nb.cells[1].replace("step add", "step addition")
    assert not any(cell["err"] for cell in nb.run_all().acknowledged), "that has a record by now"


@pytest.mark.parametrize(
    ("at", "new"),
    [(1, "# keel: step addition\ntotal = n + 2"), (2, "# keel: step twin\ntotal = n + 1")],
    ids=["other code", "both are there"],
)
def test_another_step_says_nothing_of_it(book, at, new):
    nb = book(CELLS)
    nb.run_all()
    nb.cells[at] = new
    assert not any("recorded as" in cell["err"] for cell in nb.run_all().acknowledged)
