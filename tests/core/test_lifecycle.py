"""Which records of a step count, and how often its kernel died (DESIGN 5, Deaths)."""

import itertools

import pytest
from msgspec.structs import replace

from keel_notebook.core.lifecycle import FORGET, NEW_KEY, RERUN, REVIVE, fingerprint, recorded
from keel_notebook.core.model import Entry, Input, Kind, Status, entry_id
from keel_notebook.core.ports import FlowRecords, RunEnd, RunSeen, RunStart

NOW = fingerprint("c0de", {"a": Input("a", "d1")})


def entry(run, status, *, code="c0de", digest="d1", kind=Kind.STEP, key="", root=""):
    return Entry(
        entry=entry_id(run, next(_SEQ)),
        flow="f",
        run=run,
        seq=1,
        step="fit",
        kind=kind,
        status=status,
        code=code,
        key=key,
        inputs=(Input("a", digest),),
        ambient={"root": root} if root else {},
    )


_SEQ = itertools.count(1)


def flow(*entries, ends, rss=0):
    start = RunStart(run=0, host="h", pid=1, boot="b", started=0.0)
    return FlowRecords("f", entries, {run: RunSeen(start, end, rss) for run, end in ends.items()})


def running(run, **changed):
    return entry(run, Status.RUNNING, **changed)


@pytest.mark.parametrize(
    ("end", "tries", "deaths"),
    [
        (RunEnd.DIED, 1, 1),
        (RunEnd.VANISHED, 1, 0),
        (RunEnd.ASKED, 1, 0),
        (RunEnd.CLEAN, 1, 0),
        (RunEnd.OPEN, 0, 0),
    ],
)
def test_only_a_kernel_that_died_by_itself_counts_as_a_death(end, tries, deaths):
    found = recorded(flow(running(1), ends={1: end}), "fit", NOW)
    assert (found.tries, found.deaths) == (tries, deaths)


@pytest.mark.parametrize("kind", [Kind.CALL, Kind.LOOP])
def test_an_attempt_that_recorded_a_new_call_or_turn_starts_the_count_anew(kind):
    ends = dict.fromkeys((1, 2, 3, 4), RunEnd.DIED)
    progress = entry(3, Status.OK, kind=kind, key="7")
    found = recorded(flow(running(1), running(2), running(3), progress, running(4), ends=ends), "fit", NOW)
    assert (found.tries, found.deaths) == (2, 2), "run 3 came further than 1 and 2; since then it died twice"
    same = recorded(flow(running(1), progress, running(2), running(3), ends=ends), "fit", NOW)
    assert same.deaths == 1


@pytest.mark.parametrize("status", [Status.RUNNING, Status.INTENT])
def test_an_intent_without_a_result_is_an_attempt_that_did_not_end(status):
    found = recorded(flow(entry(1, status), ends={1: RunEnd.DIED}), "fit", NOW)
    assert (found.entries, found.tries, found.deaths) == ((), 1, 1)


def test_a_new_key_retires_every_record_of_a_step_and_counts():
    found = recorded(flow(entry(1, Status.OK), entry(1, Status.OK, kind=Kind.RETIRE, key=NEW_KEY), ends={}), "fit", NOW)
    assert (found.entries, found.generation) == ((), 1)


def test_c03_deaths_are_counted_in_a_row_and_the_memory_last_seen_is_kept():
    found = recorded(flow(running(1), running(2), ends={1: RunEnd.DIED, 2: RunEnd.DIED}, rss=7), "fit", NOW)
    assert (found.tries, found.deaths, found.memory) == (2, 2, 7)


@pytest.mark.parametrize(
    "between",
    [entry(2, Status.OK), entry(2, Status.FAILED), running(2, code="other"), running(2, digest="other")],
    ids=["an ok attempt", "a failed attempt", "an edit", "another input"],
)
def test_an_attempt_that_ended_or_an_edit_starts_the_count_anew(between):
    ends = {1: RunEnd.DIED, 2: RunEnd.DIED, 3: RunEnd.DIED}
    assert recorded(flow(running(1), between, running(3), ends=ends), "fit", NOW).deaths == 1


def test_an_edit_of_the_step_forgets_the_deaths_of_the_old_code():
    edited = fingerprint("new", {"a": Input("a", "d1")})
    assert recorded(flow(running(1), running(2), ends={1: RunEnd.DIED, 2: RunEnd.DIED}), "fit", edited).deaths == 0


def test_deaths_count_although_an_input_cannot_be_digested():
    unknown = fingerprint("c0de", {"a": Input("a", None)})
    assert recorded(flow(running(1, digest=None), ends={1: RunEnd.DIED}), "fit", unknown).deaths == 1


def test_deaths_of_another_notebook_in_an_unnamed_flow_do_not_count():
    ends = {1: RunEnd.DIED, 2: RunEnd.DIED}
    records = flow(running(1, root="A"), running(2, root="B"), ends=ends)
    assert recorded(records, "fit", NOW, root="B").deaths == 1


@pytest.mark.parametrize("key", [REVIVE, FORGET])
def test_a_person_can_revive_a_dead_step(key):
    asked = entry(2, Status.OK, kind=Kind.RETIRE, key=key)
    assert recorded(flow(running(1), asked, ends={1: RunEnd.DIED, 2: RunEnd.CLEAN}), "fit", NOW).deaths == 0


def test_rerun_retires_every_older_record_of_its_fingerprint_and_no_other():
    same, other = entry(1, Status.OK), entry(1, Status.OK, code="other")
    asked = entry(2, Status.OK, kind=Kind.RETIRE, key=RERUN)
    newer = entry(2, Status.OK)
    found = recorded(flow(same, other, asked, newer, ends={1: RunEnd.CLEAN, 2: RunEnd.OPEN}), "fit", NOW)
    assert found.entries == (newer, other)


def test_rerun_retires_the_record_also_when_the_new_attempt_fails():
    asked = entry(2, Status.OK, kind=Kind.RETIRE, key=RERUN)
    failed = entry(2, Status.FAILED)
    found = recorded(flow(entry(1, Status.OK), asked, failed, ends={1: RunEnd.CLEAN, 2: RunEnd.OPEN}), "fit", NOW)
    assert all(e.status is not Status.OK for e in found.entries)


def test_forget_retires_every_older_record_of_the_step():
    asked = entry(2, Status.OK, kind=Kind.RETIRE, key=FORGET)
    found = recorded(
        flow(entry(1, Status.OK), entry(1, Status.OK, code="x"), asked, ends={1: RunEnd.CLEAN, 2: RunEnd.OPEN}),
        "fit",
        NOW,
    )
    assert found.entries == ()


def test_rerun_retires_records_of_which_only_the_end_told_all_inputs():
    """A conditional store: what it may have left as it was is an input that no marker can know (I11)."""
    late = (Input("a", "d1"), Input("flagged", "d2"))
    record = replace(entry(1, Status.OK), inputs=late)
    other = replace(entry(1, Status.OK, digest="other"), inputs=(Input("a", "other"), late[1]))
    asked = entry(2, Status.OK, kind=Kind.RETIRE, key=RERUN)
    failed = entry(2, Status.FAILED)
    found = recorded(flow(other, record, asked, failed, ends={1: RunEnd.CLEAN, 2: RunEnd.OPEN}), "fit", NOW)
    assert found.entries == (failed, other)
