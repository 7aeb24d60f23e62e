"""A disk that stands still: what must be acknowledged waits so long and no longer (Z24)."""

import threading
import time

import pytest

from keel_notebook.core.model import Kind, Status

PAY = "%%keel_step pay --effect exactly_once\nhit('paid')\npaid = 1\n"
CALL = "%%keel_step pay\npaid = keel.call(hit, 'paid', effect='exactly_once', key='k')\n"


class Disk:
    """The disk under a kernel's segment: it ``stands`` from now on, or once a body has run, until ``again``."""

    def __init__(self, book):
        self._inner = book.session.attached().journal.inner
        self._segment = self._inner._writer.segment
        self._sync, self.goes, self._book = self._segment.sync, threading.Event(), book

    def stands(self, *, after_the_body=False):
        self.goes.clear()
        self._after_the_body = after_the_body
        self._inner._barrier.patience_s = 3.0
        self._segment.sync = self._stand

    def _stand(self):
        if self._book.hits or not self._after_the_body:
            assert self.goes.wait(60)
        self._sync()

    def again(self):
        self.goes.set()
        assert self._inner.flush(60)
        self._inner._barrier.patience_s = 60.0  # this machine may be busy: what follows is about a disk that answers

    @property
    def stalls(self):
        return self._inner.stalls


def told(book):
    """What `%keel doctor` says of the disk, where anything does not go well."""
    findings = book.ok("%keel doctor").result.report.findings
    return {one.topic: one.level for one in findings if one.topic in {"disk", "this kernel"} and one.level != "ok"}


@pytest.fixture
def disk(book):
    book.ok("%%keel_step before\nx = 1\n")
    found = Disk(book)
    found.again()
    yield found
    found.goes.set()


def test_z24_the_patience_is_five_seconds(book):
    book.ok("%%keel_step before\nx = 1\n")
    assert book.session.attached().journal.inner._barrier.patience_s == 5.0


@pytest.mark.parametrize("cell", [PAY, CALL], ids=["step", "call"])
def test_z24_an_intent_that_is_not_acknowledged_in_time_refuses_and_leaves_nothing_ambiguous(book, disk, cell):
    disk.stands()
    began = time.monotonic()
    refused = book.run(cell)
    assert (refused.code, book.hits) == ("E054", [])
    assert time.monotonic() - began < 20, "a cell ends, the disk still stands"
    assert disk.stalls == 1
    assert told(book) == {"this kernel": "bad", "disk": "warn"}, "a person who asks is told"
    disk.again()
    book.ok(cell)
    assert book.hits == ["paid"], "it had not begun: nobody is asked whether it happened"
    assert told(book) == {"disk": "warn"}, "that it happened is still to be seen"


@pytest.mark.parametrize("cell", [PAY, CALL], ids=["step", "call"])
def test_z24_a_result_that_is_not_acknowledged_in_time_stands_all_the_same_and_is_said(book, disk, cell):
    disk.stands(after_the_body=True)
    ran = book.ok(cell)
    assert (book.hits, book["paid"]) == (["paid"], 1 if cell == PAY else None)
    assert "not durable" in ran.err
    assert disk.stalls == 1
    disk.again()
    found = book.entries(Kind.STEP if cell == PAY else Kind.CALL, "pay")
    assert [e.status for e in found] == [Status.OK]
    book.again(cell)
    assert book.hits == ["paid"]


def test_z24_while_it_is_known_to_stand_nothing_more_waits_for_it(book, disk):
    disk.stands()
    assert book.run(PAY).code == "E054"
    book.session.attached().journal.inner._barrier.patience_s = 1000.0
    assert book.run(PAY).code == "E054", "refused at once"
    book.ok("%%keel_step other\ny = 2\n")
    disk.again()
    book.ok(PAY)
    assert (book.hits, disk.stalls) == (["paid"], 1)


@pytest.mark.parametrize("cell", [PAY, CALL], ids=["step", "call"])
def test_z4_an_intent_that_could_not_be_made_safe_is_taken_back(book, disk, cell):
    """A sync that fails, and not only one that is late: then nothing of this run may be vouched for any more."""

    def broken():
        raise OSError(5, "Input/output error")

    disk._segment.sync = broken
    assert book.run(cell).code in {"E053", "E054"}
    assert book.hits == []
    book.again(cell)
    assert book.hits == ["paid"]
