"""Verify mode never does what must not happen twice, and says of such a step that it was not compared."""

import pytest

from keel_notebook.core.effects import OnAmbiguous

BOTH = ["at_least_once", "exactly_once"]


def step(effect, options="", body="hit('fired'); paid = 1"):
    return f"%%keel_step pay --effect {effect} {options}\n{body}\n"


def call(effect, argument="'fired'", options=""):
    return f"%%keel_step pay\npaid = keel.call(hit, {argument}, effect={effect!r}{options})\n"


def verifying(book, monkeypatch, *, died=False):
    (book.kill if died else book.shutdown)()
    monkeypatch.setenv("KEEL_MODE", "verify")
    book.boot()


def found(book):
    return {one.step: (str(one.verdict), one.well) for one in book.session.leader().verifier.found}


@pytest.mark.parametrize("effect", BOTH)
def test_a_step_that_must_not_happen_twice_is_put_back_and_not_compared(book, monkeypatch, effect):
    book.ok(step(effect))
    verifying(book, monkeypatch)
    book.ok(step(effect))
    assert (book["paid"], book.hits, found(book)) == (1, ["fired"], {"pay": ("not compared", True)})


@pytest.mark.parametrize("effect", BOTH)
@pytest.mark.parametrize(
    ("first", "then"),
    [
        (None, step),
        (step, lambda effect: step(effect, body="hit('edited'); paid = 2")),
        (step, lambda effect: step(effect, "--retries 2 --key k")),
        (lambda effect: step(effect, body="hit('fired'); 1 / 0"), lambda effect: step(effect, body="hit('fired'); 1")),
        (call, lambda effect: call(effect, "'edited'")),
        (None, call),
    ],
    ids=["never recorded", "edited", "other options", "failed", "a call with another argument", "a new call"],
)
def test_what_cannot_be_put_back_is_refused_and_not_fired(book, monkeypatch, effect, first, then):
    book.ok("%%keel_step other\nx = 1\n")
    if first is not None:
        book.run(first(effect))
    before = book.hits
    verifying(book, monkeypatch)
    ran = book.run(then(effect))
    assert book.hits == before, ran
    assert (ran.code == "E031") or ran.error is None


@pytest.mark.parametrize("word", OnAmbiguous)
def test_an_ambiguous_step_is_not_fired_whatever_its_line_says(book, monkeypatch, word):
    book = book.dies_in(step("exactly_once"))
    verifying(book, monkeypatch, died=True)
    book.run(step("exactly_once", f"--on-ambiguous {word}"))
    assert book.hits == ["fired"]


@pytest.mark.parametrize("effect", BOTH)
def test_a_recorded_call_comes_back_into_the_step_that_is_compared(book, monkeypatch, effect):
    book.ok(call(effect) + "n = 5\n")
    verifying(book, monkeypatch)
    book.ok(call(effect) + "n = 5\n")
    assert (book.hits, found(book)) == (["fired"], {"pay": ("same", True)})


@pytest.mark.parametrize("effect", BOTH)
def test_a_rerun_that_is_asked_for_in_verify_mode_fires_nothing(book, monkeypatch, effect):
    book.ok(step(effect))
    verifying(book, monkeypatch)
    book.ok(step(effect))
    book.run("%keel rerun pay")
    book.run(step(effect))
    book.run("%keel rerun pay --new-key")
    book.run(step(effect))
    assert book.hits == ["fired"]


def test_an_undo_is_not_carried_out_in_verify_mode(book, monkeypatch):
    pay = step("exactly_once", body="hit('fired'); keel.undo(hit, 'taken back'); paid = 1")
    book.ok(pay)
    verifying(book, monkeypatch)
    book.ok(pay)
    assert book.run("%keel undo").code == "E006"
    assert book.hits == ["fired"]
