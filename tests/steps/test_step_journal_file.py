"""An external command that keeps a journal of its own: what it did is asked there (K47)."""

import pytest

TOOL = 'import subprocess\ndef tool(script): hit("tool"); subprocess.run(["sh", "-c", script], check=True)\n'
DOES = "echo did >> tool.journal; exit 1"
NOTHING = "exit 1"


def step(script, options="", more=""):
    return f"%%keel_step move --journal-file tool.journal {options}\ntool({script!r}){more}\n"


@pytest.fixture
def book(book):
    book.ok(TOOL)
    return book


@pytest.mark.parametrize("options", ["", "--effect at_least_once", "--effect exactly_once"])
@pytest.mark.parametrize("before", [None, "from an earlier job\n"])
def test_k47_a_command_whose_own_journal_went_on_in_the_failed_run_is_refused(book, options, before):
    if before is not None:
        (book.folder / "tool.journal").write_text(before)
    assert book.run(step(DOES, options)).error is not None
    refused = book.again(TOOL, step(DOES, options))
    assert (refused.code, book.hits) == ("E033", ["tool"])
    assert "tool.journal" in str(refused.error)
    edited = book.run(step(NOTHING, options, more="; x = 1"))
    assert (edited.code, book.hits) == ("E033", ["tool"]), "an edit undoes nothing of what it did"


@pytest.mark.parametrize("options", ["", "--effect at_least_once", "--effect exactly_once"])
def test_k47_where_its_journal_stands_as_before_the_failed_command_is_run_again(book, options):
    (book.folder / "tool.journal").write_text("from an earlier job\n")
    assert book.run(step(NOTHING, options)).error is not None
    assert book.again(TOOL, step(NOTHING, options)).code == ""
    assert book.hits == ["tool", "tool"]


def test_k47_a_kernel_that_died_in_the_command_is_a_failed_run_too(book):
    book = book.dies_in(step("echo did >> tool.journal"))
    book.ok(TOOL)
    assert (book.run(step("echo did >> tool.journal")).code, book.hits) == ("E033", ["tool"])


def test_k47_after_it_ended_well_its_journal_may_go_on(book):
    book.ok(step("echo did >> tool.journal"))
    (book.folder / "tool.journal").write_text("somebody else went on\n")
    assert book.run(step("true")).error is None, "an edit of what ended well executes as everywhere"


@pytest.mark.parametrize("words", ["rerun move", "forget move"])
def test_k47_a_person_who_looked_may_run_it_all_the_same(book, words):
    book.run(step(DOES))
    assert book.again(TOOL, step(DOES)).code == "E033"
    book.ok(f"%keel {words}")
    assert book.run(step("true")).error is None
    assert book.hits == ["tool", "tool"]


def test_k47_an_unreadable_journal_is_not_one_that_stands_still(book):
    (book.folder / "tool.journal").mkdir()
    (book.folder / "tool.journal" / "a").write_text("1")
    book.run(step(NOTHING))
    (book.folder / "tool.journal" / "a").write_text("2")
    assert book.again(TOOL, step(NOTHING)).code == "E033", "a folder of journals counts with what is in it"


def test_k47_verify_does_not_start_the_command_either(book):
    book.run(step(DOES))
    book.session.settings.mode = "verify"
    assert book.again(TOOL).error is None
    book.session.settings.mode = "verify"
    assert (book.run(step(DOES)).code, book.hits) == ("E033", ["tool"])


def test_k47_a_further_try_within_the_step_asks_the_journal_too(book):
    error = book.run(step(DOES, "--retries 3 --backoff 1ms")).error
    assert book.hits == ["tool"]
    assert any("tool.journal went on" in note for note in error.__notes__)
    book.ok("%keel forget move")
    (book.folder / "hits.txt").unlink()
    book.run(step(NOTHING, "--retries 2 --backoff 1ms"))
    assert book.hits == ["tool"] * 3
