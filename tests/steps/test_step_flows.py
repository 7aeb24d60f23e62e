"""Strict and frozen notebooks: `%keel flow --strict --frozen --new` (K5, K14, K15, K21-K28, K31, O1, O8)."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from keel_notebook.core.model import Kind, Status

STEPS = [f"%%keel_step s{i}\nhit('do{i}')\nv{i} = {i}\n" for i in (1, 2, 3)]


@pytest.fixture
def strict(book, monkeypatch):
    book.shutdown()
    monkeypatch.setenv("KEEL_STRICT", "1")
    return book.boot()


def run(book, *numbers):
    return [book.run(STEPS[n - 1]) for n in numbers][-1]


def codes(book, *numbers):
    return [book.run(STEPS[n - 1]).code for n in numbers]


def marks(book, key):
    return [e for e in book.entries(Kind.MARKER) if e.key == key]


def restart(book):
    book.shutdown()
    book.boot()


def test_k5_k14_o1_o8_another_order_is_refused_with_flow_position_expected_and_observed(strict):
    run(strict, 1, 2, 3)
    strict.kill()
    strict.boot()
    assert codes(strict, 1) == [""]
    refused = run(strict, 3)
    assert refused.code == "E031"
    assert "flow a.ipynb, position 2: recorded is s2, called was s3" in str(refused.error)
    assert codes(strict, 2, 3, 1) == ["", "", ""], "a cell that runs again keeps its place"
    assert strict.hits == ["do1", "do2", "do3"]


def test_k15_with_warn_it_goes_on_and_the_new_order_is_the_recorded_one(strict):
    run(strict, 1, 2, 3)
    strict.kill()
    strict.boot()
    run(strict, 1)
    said = strict.ok(STEPS[2].replace("s3", "s3 --on-divergence warn")).err
    assert "position 2: recorded is s2, called was s3" in said
    assert codes(strict, 2) == [""]
    strict.kill()
    strict.boot()
    assert codes(strict, 1, 3, 2) == ["", "", ""]
    assert [(e.occurrence, e.step) for e in marks(strict, "flow:at")][-2:] == [(2, "s3"), (3, "s2")]


def test_k14_in_a_strict_flow_every_difference_stops_unless_the_step_says_otherwise(strict):
    run(strict, 1)
    edited = STEPS[0] + "more = 1\n"
    assert strict.run(edited).code == "E031"
    assert strict.hits == ["do1"]
    assert "executes" in strict.ok(edited.replace("s1", "s1 --on-divergence warn")).err


def test_k21_k22_k23_each_kernel_is_one_attempt_and_the_fourth_is_refused_until_a_person_begins_anew(strict):
    for attempt in (1, 2, 3):
        assert codes(strict, 1) == [""]
        assert marks(strict, "flow:attempt")[-1].attempt == attempt
        strict.kill()
        strict.boot()
    assert codes(strict, 1, 1) == ["E032", "E032"]
    assert marks(strict, "flow:status")[-1].ambient["status"] == "dead"
    keeper = strict.session.leader().keeper
    keeper.rules = replace(keeper.rules, max_attempts=10)
    assert codes(strict, 1) == ["E032"], "a higher cap revives nobody (K22)"
    assert [e.attempt for e in strict.entries(Kind.STEP)] == [1], "the step itself never died"
    strict.ok("%keel flow --new")
    assert codes(strict, 2, 1) == ["", ""]
    assert strict.hits == ["do1", "do2"]


def test_k26_k28_a_completed_flow_is_replayed_without_lease_attempt_or_effect(strict):
    run(strict, 1, 2)
    restart(strict)
    held = strict.session.leader().calls_of_flow().parts.guard
    held.take = lambda: pytest.fail("no lease for a replay")
    assert codes(strict, 1, 2) == ["", ""]
    assert strict.run(STEPS[0] + "more = 1\n").code == "E031"
    assert [e.attempt for e in marks(strict, "flow:attempt")] == [1]
    restart(strict)
    assert [e.ambient["status"] for e in marks(strict, "flow:status")] == ["completed"], "and stays completed"
    assert strict.hits == ["do1", "do2"]


OTHER = """
import os, signal, sys
from tests.cell.shells import shell
from tests.steps.conftest import HIT
from keel_notebook.front.magics import load, unload
with shell() as book:
    load(book)
    for cell in [HIT, *sys.argv[2:]]:
        assert book.run_cell(cell).success
    if sys.argv[1] == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    unload(book)
"""


@pytest.mark.parametrize(("how", "attempts"), [("ends", [1]), ("dies", [1, 2])])
def test_k21_k26_what_another_process_did_between_the_look_and_the_lease_is_seen(strict, how, attempts):
    """Two processes begin at once: the slower one has looked, and waits for the lease that the other one has."""
    guard = strict.session.leader().calls_of_flow().parts.guard
    take = guard.take

    def later():
        guard.take = take
        root = str(Path(__file__).resolve().parents[2])
        other = [sys.executable, "-c", OTHER, how, STEPS[0], STEPS[1]]
        done = subprocess.run(other, check=False, env=os.environ | {"PYTHONPATH": root}, capture_output=True, text=True)
        assert done.returncode == (0 if how == "ends" else -signal.SIGKILL), done.stderr
        return take()

    guard.take = later
    assert codes(strict, 1, 2) == ["", ""]
    assert strict.hits == ["do1", "do2"], "nothing runs twice"
    assert [e.attempt for e in marks(strict, "flow:attempt")] == attempts
    assert run(strict, 3).code == ""
    restart(strict)
    assert codes(strict, 1, 2, 3) == ["", "", ""]
    assert strict.hits == ["do1", "do2", "do3"]


def test_notebooks_grow_and_k27_frozen_ones_do_not(strict, monkeypatch):
    run(strict, 1)
    restart(strict)
    assert codes(strict, 1, 2) == ["", ""]
    assert [e.attempt for e in marks(strict, "flow:attempt")] == [1, 2]
    said = [e.ambient["status"] for e in marks(strict, "flow:status")]
    assert said == ["completed", "running"], "it is running again (Z17)"
    strict.shutdown()
    monkeypatch.setenv("KEEL_FROZEN", "1")
    strict.boot()
    assert codes(strict, 1, 2, 3) == ["", "", "E031"]
    assert strict.hits == ["do1", "do2"]


def test_k27_frozen_alone_keeps_an_ordinary_notebook_from_growing(book):
    book.ok("%keel flow --frozen")
    run(book, 2, 1)
    book.session.settings.frozen = False
    restart(book)
    book.ok("%keel flow --frozen")
    assert codes(book, 1, 2, 3) == ["", "", "E031"], "order is not enforced"


def test_k25_k30_a_failed_flow_runs_again_and_an_interrupt_leaves_it_running(strict):
    strict.run("%%keel_step bad\nraise OSError\n")
    restart(strict)
    assert marks(strict, "flow:status")[-1].ambient["status"] == "failed"
    strict.run("%%keel_step bad\nraise KeyboardInterrupt\n")
    assert marks(strict, "flow:status")[-1].ambient["status"] == "running"
    restart(strict)
    assert marks(strict, "flow:status")[-1].ambient["status"] == "running"
    assert [e.status for e in strict.entries(step="bad")] == [Status.FAILED, Status.INTERRUPTED]


def test_a_strict_flow_needs_a_notebook_that_is_known_and_flags_are_read_whole(book, monkeypatch):
    assert book.run("%keel flow --loose").code == "E001"
    book.shutdown()
    monkeypatch.delenv("JPY_SESSION_NAME")
    book.boot()
    book.ok("%keel flow --strict")
    assert codes(book, 1) == ["E006"]
    assert "strict" in str(book.ok("%keel flow report --strict").result)
    assert codes(book, 1) == [""]


def at_version(book, monkeypatch, version, strict="1"):
    """The next kernel, of another version of the application that the notebook belongs to."""
    book.shutdown()
    monkeypatch.setenv("KEEL_STRICT", strict)
    monkeypatch.setenv("KEEL_APP_VERSION", version)
    return book.boot()


def test_o29_another_app_version_fails_the_flow_gives_the_lease_back_and_names_both(book, monkeypatch):
    at_version(book, monkeypatch, "7")
    run(book, 1)
    book.kill()
    book.boot()
    assert codes(book, 1) == [""], "the same version goes on"
    book.kill()
    at_version(book.boot(), monkeypatch, "8")
    refused = run(book, 1)
    assert refused.code == "E034"
    assert all(name in str(refused.error) for name in ("app:7", "app:8"))
    assert marks(book, "flow:status")[-1].ambient["status"] == "failed"
    assert book.session.leader().calls_of_flow().parts.guard._holds == 0
    assert [e.attempt for e in marks(book, "flow:attempt")] == [1, 2], "it is no attempt"
    at_version(book, monkeypatch, "7")
    assert codes(book, 1, 2) == ["", ""], "where its version is back, it goes on"
    at_version(book, monkeypatch, "9")
    assert codes(book, 1, 2) == ["", ""], "completed it is only replayed, whatever the version"
    assert codes(book, 3) == ["E034"]
    book.ok("%keel flow --new")
    assert codes(book, 1, 2, 3) == ["", "", ""], "begun anew it is of this version"
    assert book.hits == ["do1", "do2", "do3"]


def test_o29_a_version_is_opt_in_and_a_flow_without_one_takes_the_first_that_is_told(book, monkeypatch):
    at_version(book, monkeypatch, "")
    run(book, 1)
    book.kill()
    for version, code in (("7", ""), ("", ""), ("8", "E034")):
        at_version(book.boot(), monkeypatch, version)
        assert codes(book, 1) == [code], version
        book.kill()
    book.boot()


def test_o29_in_an_ordinary_notebook_the_version_decides_nothing_and_that_is_said_once(book, monkeypatch):
    at_version(book, monkeypatch, "7", strict="0")
    said = [book.ok(STEPS[0]).err, book.ok(STEPS[1]).err]
    assert ["app_version" in each for each in said] == [True, False]
    at_version(book, monkeypatch, "8", strict="0")
    assert codes(book, 1, 2) == ["", ""]
    assert book.hits == ["do1", "do2"]


def test_keel_flow_says_which_notebook_it_is_and_not_only_a_hash(book, monkeypatch):
    assert str(book.ok("%keel flow").result).startswith(f"flow of {book.folder / 'a.ipynb'} (id ")
    assert str(book.ok("%keel flow report --key 7").result).startswith("flow report, key 7 (id ")
    book.shutdown()
    monkeypatch.delenv("JPY_SESSION_NAME")
    book.boot()
    assert "nobody tells which notebook runs" in str(book.ok("%keel flow").result)


def test_a_completed_flow_says_that_it_is_completed_and_names_a_way_out_that_works(strict):
    run(strict, 1)
    restart(strict)
    refused = strict.run(STEPS[0].replace("v1 = 1", "v1 = 7")).error
    assert refused.code == "E031"
    assert "KEEL_MODE" not in refused.report()
    assert "completed" in refused.report()
    strict.ok("%keel flow --new")
    strict.ok("%keel rerun s1")
    strict.ok(STEPS[0].replace("v1 = 1", "v1 = 7"))
    assert strict["v1"] == 7


def test_why_of_a_refused_order_says_it_once(strict):
    run(strict, 1, 2)
    strict.kill()
    strict.boot()
    run(strict, 2)
    sentence = str(strict.ok("%keel why s2").result).splitlines()[0]
    assert sentence.startswith("s2 was refused: order: flow ")
    assert sentence.count("E031") == 1


def test_a_flow_whose_attempts_are_used_up_names_a_way_out_that_works(strict):
    for _ in range(3):
        run(strict, 1)
        strict.kill()
        strict.boot()
    refused = strict.run(STEPS[0]).error
    assert refused.code == "E032"
    assert "%keel revive" not in refused.report()
    strict.ok("%keel flow --new")
    strict.ok(STEPS[0])
