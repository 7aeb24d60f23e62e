"""`%keel adopt NAME`: what a cell left that ran before it was a step (DESIGN 3.1)."""

import pytest

pytestmark = pytest.mark.kernel


def test_adopt_records_what_a_cell_left_before_it_was_a_step(notebook):
    book = notebook("""
hit("slow"); a = [1, 2]
# ---
%keel adopt slow
""")
    shown = book.run_all()
    assert "recorded as slow" in shown[1].text
    book.cells[2] = "%%keel_step slow\n" + book.cells[2]
    book.cells[3] = "print(a)"
    book.save()
    assert book.rerun()[1].text == "[1, 2]\n"
    assert book.hits == "slow"


ADOPTED = """
%%keel_step fit
hit("fit"); m = 1
# ---
import time
hit("late"); q = 5
# ---
{line}
"""


def test_an_adopted_record_goes_by_the_name_that_was_given(notebook):
    book = notebook(ADOPTED.format(line="%keel adopt later"))
    shown = book.run_all()[-1].text
    assert "recorded as later: q" in shown
    assert "`%%keel_step later`" in shown
    for line in ("%keel", "%keel why later"):
        said = book.execute(line).text
        assert "later" in said
        assert "a cell (" not in said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%keel adopt fit", "`fit` is the name of another cell"),
        ("%keel adopt --undo", "`--undo` is no name"),
        ('%keel adopt ""', "`` is no name"),
    ],
)
def test_a_cell_is_not_adopted_under_a_name_that_another_cell_has_or_none_can_have(notebook, line, said):
    book = notebook(ADOPTED.format(line=line))
    shown = book.run_all()[-1]
    assert shown.status == "error"
    assert said in shown.error
    assert book.execute("%keel why fit").text.count("adopted") == 0
    book.execute("q = 5")
    assert """`%%keel_step 'later on'`""" in book.execute("%keel adopt 'later on'").text


def test_a_name_that_only_the_file_has_is_taken_too(notebook):
    book = notebook("""
q = 5
# ---
%keel adopt below
# ---
%%keel_step below
r = 6
""")
    shown = book.run_all()[-1]
    assert shown.status == "error"
    assert "`below` is the name of another cell" in shown.error
