"""Whole steps that are tried again, and in their time: `--retries`, `--timeout` (K23, K40, E011, E014)."""

import traceback

import pytest

from keel_notebook.core.model import Kind, Status
from keel_notebook.engine import tries


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    waited = []
    monkeypatch.setattr(tries, "sleep", waited.append)
    return waited


FLAKY = """
left = [2]
def flaky():
    hit("try")
    if left[0]: left[0] -= 1; raise ConnectionError("503")
    return "answer"
"""


def test_a_step_is_tried_again_waits_longer_each_time_and_shows_its_value(book, waits):
    book.ok(FLAKY)
    ran = book.ok("%%keel_step ask --retries 2 --backoff 2s --ignore left\nx = flaky()\nx + '!'\n")
    assert (ran.result, book.hits) == ("answer!", ["try"] * 3)
    assert 1 <= waits[0] <= 2 < 2 * waits[0] <= 2 * waits[1] <= 8
    assert "ask: ConnectionError; again in" in ran.err
    [entry] = book.entries()
    assert (entry.attempt, entry.ambient["retries"]) == (1, 2), "tries never count as deaths (K23)"
    left = book.again(FLAKY, "%%keel_step ask --retries 2 --backoff 2s --ignore left\nx = flaky()\nx + '!'\n")
    assert (left.result, len(book.hits)) == ("answer!", 3), "and a replay tries nothing"


def test_the_last_error_is_the_persons_own_with_its_own_lines(book):
    ran = book.run("%%keel_step bad --retries 1\nx = 1\n\nraise RuntimeError('mine')\n")
    assert isinstance(ran.error, RuntimeError)
    assert "KEEL-E010" in ran.error.__notes__[0]
    own = [f for f in traceback.extract_tb(ran.error.__traceback__) if "ipython-input" in f.filename]
    assert [f.lineno for f in own] == [4]
    assert not any("/keel_notebook/" in f.filename for f in traceback.extract_tb(ran.error.__traceback__))
    assert [e.status for e in book.entries()] == [Status.FAILED]


def test_each_try_starts_from_the_inputs_as_they_were(book):
    book.ok("rows, left = [1], [1]")
    cell = "%%keel_step grow --retries 1 --ignore left\nrows.append(2)\nif left[0]: left[0] = 0; raise OSError\n"
    book.ok(cell)
    assert book["rows"] == [1, 2]


def test_finished_calls_are_not_paid_for_again_by_the_next_try(book):
    book.ok("left = [1]\ndef paid(i): hit(i); return i")
    cell = "%%keel_step loop --retries 1 --ignore left\nout = [keel.call(paid, i, key='same') for i in range(2)]\n"
    book.ok(cell + "if left[0]: left[0] = 0; raise OSError\n")
    assert (book["out"], book.hits) == ([0, 1], ["0", "1"])


def test_e014_a_guarded_step_is_not_tried_again_without_a_key_of_its_own(book, waits):
    cell = "%%keel_step pay --effect exactly_once --retries 3{key}\nhit(keel.idempotency_key())\nraise OSError\n"
    ran = book.run(cell.format(key=""))
    assert "KEEL-E014" in ran.error.__notes__[0]
    assert (len(book.hits), waits) == (1, [])
    book.run(cell.format(key=" --key order-1"))
    assert len(book.hits) == 5
    assert len(set(book.hits[1:])) == 1, "one key for all tries (K40)"
    assert len(book.entries(Kind.STEP)) == 2


def test_keels_own_refusals_are_not_tried_again(book):
    ran = book.run("%%keel_step s --retries 3\nhit('x')\nkeel.call(int, '1', effect='sometimes')\n")
    assert (ran.code, book.hits) == ("E001", ["x"])


def test_e011_a_step_that_takes_too_long_is_stopped_also_where_it_swallows_the_error(book):
    ran = book.run("%%keel_step slow --timeout 50ms\nimport time\ntime.sleep(60)\n")
    assert ran.code == "E011"
    ran = book.run("%%keel_step deaf --timeout 50ms\ntry: time.sleep(60)\nexcept Exception: pass\nx = 1\n")
    assert ran.code == "E011"
    assert [e.status for e in book.entries()] == [Status.FAILED] * 2
    assert book.run("%%keel_step pay --effect exactly_once --timeout 50ms\ntime.sleep(60)\n").code == "E011"
    assert book.run("%%keel_step pay --effect exactly_once --timeout 50ms\ntime.sleep(60)\n").code == "E060", (
        "what it does may still happen"
    )


def test_a_step_that_awaits_is_tried_again_and_stopped_without_blocking_its_loop(book):
    book.ok(
        "import asyncio\nleft = [1]\nasync def ask():\n    hit('try')\n    if left[0]: left[0] = 0; raise OSError\n"
    )
    book.ok("%%keel_step ask --retries 1 --backoff 1ms --ignore left\nawait ask()\ndone = 1\n")
    assert (book["done"], book.hits) == (1, ["try", "try"])
    assert book.run("%%keel_step wait --timeout 20ms\nawait asyncio.sleep(60)\n").code == "E011"


def test_a_body_that_does_not_compile_shows_its_own_error(book):
    assert isinstance(book.run("%%keel_step bad --retries 2\nbreak\n").error, SyntaxError)
    assert book.run("%%keel_step bad --backoff 1s\nx = 1\n").code == "E001"
