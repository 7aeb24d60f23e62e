"""Contracts in a notebook that belong to no other file here (K8, K10, K13, O3, O4, O6, O7, Z6 to Z11, Z14, Z24)."""

import os
import threading

import pytest

import keel_notebook as keel
from keel_notebook.core.model import Kind, Status
from keel_notebook.errors import DiskFullError
from keel_notebook.journal import segment


def test_o3_clock_and_chance_inside_a_step_leave_no_rows_of_their_own(book):
    book.ok("%%keel_step s\nimport time, random\nt = time.time(); r = random.random()\n")
    assert book.entries(Kind.TIME) == book.entries(Kind.RANDOM) == []
    book.ok("%%keel_step t\nt = keel.time()\n")
    assert len(book.entries(Kind.TIME)) == 1, "durable values do"


def test_o4_the_row_of_an_outer_call_comes_after_those_of_the_calls_inside_it(book):
    book.ok("def inner(i): hit(i); return i\ndef outer(): return [keel.call(inner, i, key=i) for i in (1, 2)]\n")
    book.ok("%%keel_step s\nout = keel.call(outer)\n")
    rows = [entry.call.split("/")[-1] for entry in book.entries(Kind.CALL)]
    assert rows == ["inner", "inner", "outer"]
    book.again("def inner(i): hit(i); return i\ndef outer(): return [keel.call(inner, i, key=i) for i in (1, 2)]\n")
    book.ok("%%keel_step s\nout = keel.call(outer)\nmore = 1\n")
    assert (book["out"], book.hits) == ([1, 2], ["1", "2"])


def test_o6_a_step_that_could_not_be_recorded_runs_says_so_and_is_recorded_once_when_there_is_room(book, monkeypatch):
    book.ok("1")
    journal = book.session.attached().journal.inner

    def full(entry, *, synced=False):
        raise DiskFullError(journal="j", detail="no room")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "append", full)
        assert "not durable" in book.ok("%%keel_step s\nhit('s')\nx = 1\n").err
    book.ok("%%keel_step s\nhit('s')\nx = 1\n")
    book.ok("%%keel_step s\nhit('s')\nx = 1\n")
    assert book.hits == ["s", "s"]
    assert [e.status for e in book.entries()] == [Status.OK]


def test_o7_the_live_name_keeps_the_live_object_and_what_would_be_lost_is_named(book):
    said = book.ok("%%keel_step s\npair = (1, 2)\nturns = (i for i in range(3))\nnext(turns)\n").err
    assert "turns (generator)" in said
    assert next(book["turns"]) == 1, "the live object, not a copy of it"
    book.again("%%keel_step s\npair = (1, 2)\nturns = (i for i in range(3))\nnext(turns)\n")
    assert book["pair"] == (1, 2)
    assert isinstance(book["pair"], tuple)


def test_z6_a_guarded_result_makes_all_that_was_written_before_it_power_safe(book, monkeypatch):
    safe = {}
    sync_file = segment.sync_file

    def seen(fd):
        size = os.fstat(fd).st_size
        sync_file(fd)
        safe[os.fstat(fd).st_ino] = size  # what was there when the system was asked is safe once it answered

    monkeypatch.setattr(segment, "sync_file", seen)
    for i in range(20):
        book.ok(f"%%keel_step s{i}\nx{i} = {i}\n")
    book.ok("%%keel_step pay --effect exactly_once\npaid = 1\n")
    journal = book.session.attached().journal
    own = book.folder / ".keel" / "inbox" / f"{journal.run}.seg"
    written = own.read_bytes()
    held = written[: safe[own.stat().st_ino]]
    for step in (b"pay", *(b"s%d" % i for i in range(20))):
        assert held.count(step) == written.count(step) > 1, step
    assert not journal.unsynced


def test_z8_there_is_one_committed_result_for_each_key(book):
    cell = "%%keel_step pay --effect exactly_once\npaid = 1\n"
    for _ in range(2):
        book.ok(cell)
        book.again(cell)
    for wish in ("rerun", "forget"):  # no wish makes a second one under it
        book.ok(f"%keel {wish} pay")
        book.ok(cell)
    committed = [e.idempotency_key for e in book.entries() if e.status is Status.OK]
    assert len(committed) == len(set(committed)) == 1


def test_z9_a_new_kernel_goes_on_with_a_number_of_its_own_and_leaves_no_gap_in_what_it_writes(book):
    for run in (1, 2, 3):
        book.ok("%%keel_step s --always\nx = 1\n")
        assert book.session.attached().journal.run == run
        seqs = [e.seq for e in book.session.attached().journal.records(book.session.attached().flow.id).entries
                if e.run == run]  # fmt: skip
        assert sorted(seqs) == list(range(min(seqs), max(seqs) + 1))
        assert len(seqs) == len(set(seqs))
        book.kill()
        book.boot()


def test_z11_k13_a_replay_is_told_as_one_and_shows_its_output_once(book, monkeypatch):
    from IPython.core import getipython

    monkeypatch.setattr(getipython, "get_ipython", lambda: book.shell)
    cell = "%%keel_step s\nprint('shown')\nx = 1\n"
    assert book.ok(cell).out == "shown\n"
    assert book.again(cell).out == "shown\n"
    [step] = keel.status().to_dict()["steps"]
    assert (step["decision"], step["took_s"] is not None) == ("replayed", True)


@pytest.mark.parametrize("response", ["fail", "warn"])
@pytest.mark.parametrize("what", ["input", "code", "function", "file", "order of what it reads"])
def test_z14_what_differs_never_gives_back_a_result_of_something_else(book, what, response):
    def cells(changed):
        n = 2 if changed else 1
        (book.folder / "in.txt").write_text(str(n if what == "file" else 1))
        told = {
            "input": (f"a = {n}", "x = a * 10"),
            "code": ("a = 1", f"x = a * {n} * 10"),
            "function": (f"def g(v): return v * {n}", "x = g(10)"),
            "file": ("import pathlib", "x = int(pathlib.Path('in.txt').read_text()) * 10"),
            "order of what it reads": ("a, b = 1, 2" if n == 1 else "a, b = 2, 1", "x = a * 10"),
        }[what]
        return told[0], f"%%keel_step s --on-divergence {response}\n{told[1]}\n"

    for cell in cells(changed=False):
        book.ok(cell)
    assert book["x"] == 10
    before, step = cells(changed=True)
    book.again(before)
    ran = book.run(step)
    assert (ran.code, book.shell.user_ns.get("x")) == (("E031", None) if response == "fail" else ("", 20))


def test_z24_an_idempotent_step_never_waits_for_a_disk_that_stands_still(book):
    book.ok("def f(i): return i")
    book.ok("%%keel_step before\nx = 1\n")
    segment = book.session.attached().journal.inner._writer.segment
    goes, asked = threading.Event(), threading.Event()
    sync = segment.sync

    def stands_still():
        asked.set()
        goes.wait(30)
        sync()

    segment.sync = stands_still
    try:
        book.ok("%%keel_step s\ny = keel.call(f, 7)\n")
        assert asked.wait(10), "the flush thread waits for the disk"
        assert not goes.is_set()
        assert book.session.attached().journal.unsynced, "and the step says `saving`"
    finally:
        goes.set()
    assert book["y"] == 7


SEES = """
from keel_notebook.journal.reader import read_journal
def sees(name):
    reader = read_journal(".keel", seal=None)
    found = [e for flow in reader.flows() for e in reader.records(flow.id).entries if name in (e.step, e.call)]
    reader.close()
    seen.append([(str(e.status), e.ended_at is None) for e in found])
seen = []
"""


@pytest.mark.parametrize("effect", ["idempotent", "at_least_once", "exactly_once"])
def test_k8_a_body_finds_its_own_entry_in_the_journal_as_running(book, effect):
    """Looked at from outside: what is on the disk at that moment is what a kernel finds after a death."""
    begun = "intent" if effect == "exactly_once" else "running"
    book.ok(SEES)
    book.ok(f"%%keel_step s --effect {effect} --ignore seen\nsees('s')\n")
    assert book["seen"] == [[(begun, True)]]
    book.ok("seen.clear()")
    if effect != "idempotent":
        book.ok("def pay(i): sees('pay'); return i")
        book.ok(f"%%keel_step t --ignore seen\nkeel.call(pay, 1, effect={effect!r})\n")
        assert book["seen"] == [[("intent", True)]], "and a call that must not happen twice"


@pytest.mark.parametrize("effect", ["idempotent", "at_least_once"])
def test_k10_what_had_begun_and_did_not_end_is_executed_again(book, effect):
    step = f"%%keel_step s --effect {effect}\nhit('s')\nx = 1\n"
    book = book.dies_in(step)
    book.ok(step)
    assert (book.hits, book["x"]) == (["s", "s"], 1)
    dies = (
        "import os\n"
        "def dies(i):\n    hit(i)\n    if not os.path.exists('died'):\n"
        "        open('died', 'x').close()\n        raise KeyboardInterrupt\n    return i"
    )
    call = f"%%keel_step t\ny = keel.call(dies, 7, effect={effect!r})\n"
    book.ok(dies)
    assert isinstance(book.run(call).error, KeyboardInterrupt)
    book.again(dies)
    book.ok(call)
    assert (book.hits, book["y"]) == (["s", "s", "7", "7"], 7)
