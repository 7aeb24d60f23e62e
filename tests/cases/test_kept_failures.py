"""A failure that was kept in the place of a result is no result: the next run tries that call again, and only that."""

import pytest

pytestmark = pytest.mark.crash

CELLS = """
import os, keel_notebook as keel
# ---
def ask(n):
    hit(f"ask{n}")
    if n == 2 and not os.path.exists("".join(["u", "p"])):
        raise ConnectionError("down")
    return n * 10
# ---
%%keel_step answers
hit("answers"); answers = keel.map(ask, [1, 2, 3], on_error="keep", max_workers=1, progress=False)
# ---
%%keel_step total
hit("total"); total = sum(n for n in answers if n)
"""
IN_A_CALL = CELLS.replace(
    "%%keel_step answers\n",
    """def both(ns):
    hit("both"); return keel.map(ask, ns, on_error="keep", max_workers=1, progress=False)
# ---
%%keel_step answers
""",
).replace('keel.map(ask, [1, 2, 3], on_error="keep", max_workers=1, progress=False)', "keel.call(both, [1, 2, 3])")
SHOWN = ("print(answers, total)",)


def test_a_step_with_kept_failures_executes_again_and_pays_only_those(book):
    notebook = book(CELLS)
    assert notebook.shows(*SHOWN).startswith("[10, <keel.Failure ask ")
    assert notebook.hits == "answers ask1 ask2 ask3 total"
    assert "1 of its calls failed" in notebook.shows("%keel why answers"), "still down: it was tried"
    assert notebook.hits == "answers ask1 ask2 ask3 total answers ask2"
    (notebook.folder / "up").touch()
    assert notebook.shows(*SHOWN) == "[10, 20, 30] 60"
    assert notebook.hits == "answers ask1 ask2 ask3 total answers ask2 answers ask2 total"
    assert notebook.shows(*SHOWN) == "[10, 20, 30] 60", "nothing failed any more: it is finished"
    assert notebook.hits == "answers ask1 ask2 ask3 total answers ask2 answers ask2 total"


def test_a_call_inside_which_a_failure_was_kept_runs_again_too(book):
    notebook = book(IN_A_CALL)
    notebook.shows(*SHOWN)
    (notebook.folder / "up").touch()
    for _ in range(2):
        assert notebook.shows(*SHOWN) == "[10, 20, 30] 60"
    assert notebook.hits == "answers both ask1 ask2 ask3 total answers both ask2 total"


def test_a_person_may_take_the_failures_as_they_are(book):
    notebook = book(CELLS)
    notebook.shows(*SHOWN)
    notebook.edit(2, 'hit("answers")', 'hit("edited")')
    notebook.cells.insert(2, "%keel accept answers")
    assert notebook.shows(*SHOWN).endswith(" 40")
    del notebook.cells[2]
    assert notebook.shows(*SHOWN).endswith(" 40")
    assert notebook.hits == "answers ask1 ask2 ask3 total"
