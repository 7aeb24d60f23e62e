"""Where a name is not known and another is near, that one is named; where a list of names is given, it is whole."""

import pytest
from click.testing import CliRunner

from keel_notebook.errors import KeelError
from keel_notebook.front.cli import keel
from keel_notebook.front.commands import COMMANDS
from keel_notebook.front.elsewhere import IN_A_TERMINAL, meant
from keel_notebook.front.explain import explained

pytestmark = pytest.mark.kernel

CELLS = """
%%keel_step hotel
import keel_notebook as keel
train = 1; keel.undo(print, "cancelled"); promised = keel.promise("approve").id
"""


def test_near_names_in_a_notebook(notebook):
    book = notebook(CELLS)
    book.run_all()
    for line, said in [
        ("%keel undo hotle", "did you mean hotel?"),
        ("%keel restore trian", "did you mean train?"),
        ("%keel restore hotle", "did you mean hotel?"),
        ("%keel use mian", "did you mean main?"),
        ("%keel show hotel", "in a terminal: `keel show`"),
        ("%keel lgo", "in a terminal: `keel log`"),
        ("%keel statsu", "did you mean status?"),
        ("%keel qqq", "undo, use, verify, why"),
    ]:
        shown = book.execute(line)
        assert said in shown.error + shown.text, line
    asked = CliRunner().invoke(keel, ["resolve", "aprove", "--as-owner", "--value", "1", "--in", str(book.path)])
    assert "no such promise is waiting here: aprove; did you mean approve?\n" in asked.output


def test_what_a_terminal_has_and_a_notebook_has_not_is_told_apart():
    assert set(keel.commands) - set(COMMANDS) == IN_A_TERMINAL
    assert meant("qqq", list(COMMANDS)).count(", ") == len(COMMANDS) - 1


@pytest.mark.parametrize("written", ["E31", "31", "e0031", "KEEL-E31", "KEEL-31", "E0311", "XE031"])
def test_a_code_with_the_same_number_is_meant(written):
    with pytest.raises(KeelError, match=r"did you mean E031\?"):
        explained(written)


def test_a_mode_that_is_none_is_answered_with_those_that_are():
    said = CliRunner().invoke(keel, ["run", "--mode", "reply", "a.ipynb"]).output
    assert "'reply' is not one of 'live', 'replay', 'verify', 'off'." in said
