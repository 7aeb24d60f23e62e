"""What `%keel`, `%keel plan` and `%keel why` tell of a step that is not finished: its saved and owed calls."""

import pytest

from tests.support.notebook import KernelDied

pytestmark = pytest.mark.kernel

ASK = """
import os, keel_notebook as keel
MODEL = "small"
def ask(i):
    if os.path.exists(f"stop{i}"): raise KeyboardInterrupt
    if os.path.exists(f"kill{i}"): os.kill(os.getpid(), 9)
    if os.path.exists(f"bad{i}"): raise ValueError(i)
    return MODEL, i
# ---
%%keel_step answers
"""
COUNT = """
from keel_notebook.front.magics import session_of
a = session_of(get_ipython()).attached()
print(sum(e.kind == "call" and e.status == "ok" for e in a.journal.records(a.flow.id).entries))
"""
MAP = ASK + "out = keel.map(ask, range(10), max_workers=1)"
LOOP = ASK + "out = [keel.call(ask, i) for i in range(10)]"
KEEP = ASK + "out = keel.map(ask, range(10), on_error='keep')"
ALONE = ASK + "x = 1\nif os.path.exists('kill7'): os.kill(os.getpid(), 9)"


def said(book):
    """What the three say of the step."""
    return [book.execute(line).text for line in ("%keel", "%keel plan", "%keel why answers")]


def killed(book, at=7):
    (book.folder / f"kill{at}").touch()
    with pytest.raises(KernelDied):
        book.run_all()
    (book.folder / f"kill{at}").unlink()
    book.kill()
    book.start()
    book.execute("%load_ext keel_notebook")


@pytest.mark.parametrize("cells", [MAP, LOOP])
def test_the_calls_that_a_killed_step_has_saved_are_told(notebook, cells):
    book = notebook(cells)
    killed(book)
    number = int(book.execute(COUNT).text)
    assert number in ({7} if "keel.call" in cells else {6, 7}), "workers begin a call while the last one is recorded"
    for text in said(book):
        assert f"{number} calls of it are saved" in text, text
    assert "if functions and arguments of saved calls are what they were" in said(book)[1]
    book.run_all()
    for text in said(book):
        assert "of it are saved" not in text, "finished: the step's own record counts"


def test_an_edited_step_tells_the_calls_that_it_has_still(notebook):
    book = notebook(MAP)
    book.run_all()
    book.edit(1, "range(10)", "range(11)")
    assert "code differs; 10 calls of it are saved" in book.execute("%keel plan").text


def test_calls_of_a_function_that_was_called_with_other_code_since_do_not_count(notebook):
    book = notebook(LOOP)
    killed(book)
    book.edit(0, "small", "large")
    killed(book, at=3)
    for text in said(book):
        assert "3 calls of it are saved" in text, text


@pytest.mark.parametrize("wish", ["%keel forget answers", "%keel rerun answers"])
def test_calls_that_a_person_rejected_are_not_told(notebook, wish):
    book = notebook(MAP)
    killed(book)
    book.execute(wish)
    assert "of it are saved" not in book.execute("%keel plan").text


def test_a_step_without_calls_says_nothing_of_them(notebook):
    book = notebook(ALONE)
    killed(book)
    for text in said(book):
        assert "of it" not in text.replace("first line", ""), text


def test_calls_whose_failure_was_kept_are_told_until_they_came(notebook):
    book = notebook(KEEP)
    for at in (2, 5):
        (book.folder / f"bad{at}").touch()
    book.run_all()
    owed = "2 of its calls failed in run 1 and were kept: those are tried again"
    table, plan, why = said(book)
    assert "0 of 1 step saved" in table
    for text in (table, plan, why):
        assert owed in text, text
    book.kill()
    book.start()
    book.execute("%load_ext keel_notebook")
    for text in said(book):
        assert owed in text, text
    for at in (2, 5):
        (book.folder / f"bad{at}").unlink()
    book.run_all()
    table, plan, why = said(book)
    assert "1 of 1 step saved" in table
    assert "failed in run" not in plan
    assert table.count(owed) == why.count(owed) == 1, "only as the reason why it executed"
