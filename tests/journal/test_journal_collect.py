"""``keel gc`` on a real folder: beside kernels, killed at every write, and with nothing to lose (issue 4, 8)."""

import itertools
import os
import shutil
import time

import pytest
from msgspec.structs import replace

from keel_notebook.core.model import Payload
from keel_notebook.core.retention import Wishes
from keel_notebook.errors import JournalUnreachableError
from keel_notebook.journal import collect as gc
from keel_notebook.journal import ingest, spawn
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.fsck import check
from keel_notebook.journal.reader import read_journal
from tests.journal.journals import FLOW, RealClock, entry, forked, opened
from tests.journal.test_journal_kills import Reaper

AT_ONCE = Wishes(keep_s=0.0)
OLD, NEW = b"o" * 40_000, b"n" * 40_000


class Later:
    """A clock that is a year ahead."""

    def now(self):
        return time.time() + 365 * 86_400

    def monotonic(self):
        return time.monotonic()


@pytest.fixture
def folder(tmp_path):
    """A journal at rest: one step with a superseded record and a newest one, and an object that nobody names."""
    journal = opened(tmp_path / ".keel")
    for content in (OLD, NEW):
        made = entry(journal, ended_at=time.time() - 10)
        journal.append(_with(journal, made, content))
    journal.put([b"x" * 50_000])
    journal.close(clean=True)
    return tmp_path / ".keel"


def _with(journal, made, content):
    return replace(made, payload=Payload(journal.blob(b"h"), (journal.put([content]),), (), len(content)))


def objects(folder):
    return {digest for digest, _ in gc.objects_in(Folder(folder))}


def values(folder):
    """What the records of the flow hold, or None where it is gone."""
    reader = read_journal(folder, seal=None)
    try:
        found = []
        for one in reader.records(FLOW).entries:
            [digest] = one.payload.buffers
            found.append(bytes(reader.map(digest)[:1]) if digest in objects(folder) else None)
        return found
    finally:
        reader.close()


def test_a_dry_run_says_what_the_real_run_does_and_what_is_needed_stays(folder):
    before = gc.planned(folder, AT_ONCE, clock=Later())
    assert len(objects(folder)) == 3
    done = gc.collect(folder, AT_ONCE, clock=Later())
    assert (before.objects, before.orphans, len(done.objects)) == (done.objects, 1, 2)
    assert values(folder) == [None, b"n"]
    assert gc.collect(folder, AT_ONCE, clock=Later()).objects == ()


def test_what_went_by_decision_is_no_damage_and_what_is_lost_after_it_is(folder):
    """K46: fsck tells what gc let go from what is missing, also where the same content was recorded anew."""
    gc.collect(folder, AT_ONCE, clock=RealClock())
    assert values(folder) == [None, b"n"]
    found = check(folder, fix=False)
    assert (found.well, found.findings, found.let_go) == (True, (), 1)
    journal = opened(folder)
    anew = _with(journal, entry(journal, ended_at=time.time() + 10), OLD)
    journal.append(anew)
    journal.close(clean=True)
    assert check(folder, fix=False).well
    [digest] = anew.payload.buffers
    os.unlink(Folder(folder).objects + f"/{digest[:2]}/{digest[2:]}")
    assert [(one.what, anew.entry in one.says) for one in check(folder, fix=False).findings] == [("missing", True)]


def test_nothing_goes_while_a_kernel_is_at_work(folder):
    """A kernel that records equal content again uses the object that is there: its entry comes only afterwards."""
    journal = opened(folder)
    journal.put([OLD])
    with pytest.raises(JournalUnreachableError, match="a kernel works with it"):
        gc.collect(folder, AT_ONCE, clock=Later())
    assert len(objects(folder)) == 3
    assert len(gc.planned(folder, AT_ONCE, clock=Later()).objects) == 2, "a dry run is always possible"
    journal.close(clean=True)


def test_a_kernel_between_two_cells_makes_room_itself(folder):
    journal = opened(folder)
    done = gc.collect(folder, AT_ONCE, clock=Later(), own=journal)
    assert len(done.objects) == 2
    journal.append(_with(journal, entry(journal), OLD))  # equal content is written anew
    journal.close(clean=True)
    assert values(folder) == [b"o", b"n", b"o"]


def test_what_a_kernel_has_put_back_or_claims_stays(folder):
    reader = read_journal(folder, seal=None)
    old = reader.records(FLOW).entries[0].entry
    reader.close()
    journal = opened(folder)
    claimed = journal.put([b"x" * 50_000])  # the one that nobody named; its entry is still to come
    kept = gc.collect(folder, Wishes(keep_s=0.0, keep=frozenset({old})), clock=Later(), own=journal)
    assert kept.objects == ()
    assert claimed in objects(folder)
    journal.close(clean=True)


@pytest.mark.parametrize("named", [False, True])
def test_what_a_thread_of_the_kernel_met_while_it_was_moved_is_put_back(folder, monkeypatch, named):
    journal = opened(folder)
    real, met = os.rename, []

    def rename(source, target):
        if gc._ASIDE in target and not met:
            met.append(_with(journal, entry(journal), OLD))
            if named:
                journal.append(met[0])
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    gc.collect(folder, AT_ONCE, clock=Later(), own=journal)
    if not named:
        journal.append(met[0])
    journal.close(clean=True)
    assert values(folder)[-1] == b"o"


def test_another_kernel_still_hinders_a_kernel_that_wants_room(folder):
    mine, theirs = opened(folder), opened(folder)
    theirs.append(entry(theirs))
    with pytest.raises(JournalUnreachableError, match="a kernel works with it"):
        gc.collect(folder, AT_ONCE, clock=Later(), own=mine)
    theirs.close(clean=True)
    mine.close(clean=True)


def test_a_kernel_that_comes_while_objects_are_moved_aside_gets_them_back(folder, monkeypatch):
    """The trap: it met the object before it was moved, and names it in an entry afterwards."""
    real, kernels = os.rename, []

    def rename(source, target):
        if not kernels:
            kernels.append(opened(folder))
            kernels[0].put([OLD])
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(JournalUnreachableError, match="a kernel works with it"):
        gc.collect(folder, AT_ONCE, clock=Later())
    monkeypatch.undo()
    [journal] = kernels
    journal.append(_with(journal, entry(journal), OLD))
    journal.close(clean=True)
    assert values(folder) == [b"o", b"n", b"o"]


def test_a_kernel_that_came_and_went_while_it_was_planned_is_seen(folder, monkeypatch):
    real, times = gc.planned, itertools.count()

    def planned(*args, **kwargs):
        found = real(*args, **kwargs)
        if next(times) == 0:
            journal = opened(folder)
            journal.append(_with(journal, entry(journal), OLD))
            journal.close(clean=True)
        return found

    monkeypatch.setattr(gc, "planned", planned)
    gc.collect(folder, AT_ONCE, clock=Later())
    assert values(folder) == [b"o", None, b"o"], "the newest record of the step is the one that came"


def test_the_budget_holds_whatever_the_age(folder):
    found = gc.collect(folder, Wishes(budget=45_000), clock=RealClock())
    assert (found.left, found.over) == (90_000, 45_000), "what nobody names is too young to be called lost"
    assert values(folder) == [None, b"n"]


@pytest.mark.crash
def test_killed_before_any_write_it_loses_nothing_that_is_needed(folder, tmp_path, monkeypatch):
    """At every boundary the newest record is whole, and the next collection ends what this one began."""
    spawn.ingest_now(folder)
    monkeypatch.setattr(spawn, "ingest_now", lambda *_: None)  # it is a process of its own, killed in its own tests
    for number in itertools.count(1):
        copy = tmp_path / str(number)
        shutil.copytree(folder, copy)

        def child(copy=copy, number=number):
            Reaper(number, "before").everywhere()
            gc.collect(copy, AT_ONCE, clock=Later())

        died = forked(child)
        assert values(copy)[-1] == b"n", number
        gc.collect(copy, AT_ONCE, clock=Later())
        assert (len(objects(copy)), values(copy)) == (1, [None, b"n"]), number
        assert not (copy / "objects" / ".going").exists()
        if not died:
            break
    assert number > 5, "it has writes to be killed at"


def test_the_end_of_the_last_kernel_holds_the_budget(folder):
    """Nobody has to ask: the ingest that outlives a kernel looks, unless another kernel is at work."""
    journal = opened(folder)
    assert ingest.main([str(folder), "--budget=45000"]) == 0
    assert values(folder)[:2] == [b"o", b"n"], "a kernel is at work"
    journal.close(clean=True)
    assert ingest.main([str(folder), "--budget=900000"]) == 0
    assert values(folder)[:2] == [b"o", b"n"], "there is room"
    assert ingest.main([str(folder), "--budget=45000"]) == 0
    assert values(folder)[:2] == [None, b"n"]
