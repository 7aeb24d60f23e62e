"""Which runs that were left may go on (K37, O17, O25, Z38), and what a job's file keeps: enumerated, no journal."""

import math

import pytest

from keel_notebook.core.jobs import MOST_TRIES, Around, Job, Look, from_map, job_id, look_at, mark_of, to_map, tries_now
from keel_notebook.core.model import Entry, Kind, Status, entry_id

NOW = 1000.0
AROUND = Around(held=False, kernel_lives=False, notebook_there=True, boot="b")
JOB = Job(id="j", notebook="/n/a.ipynb", output="/n/a.run.ipynb", key="", flow="", began_at=5.0, boot="b", host="h")


def story(*told):
    """``(kind, status, what)`` of each entry of one step, in order."""
    entries = []
    for seq, (kind, status, more) in enumerate(told, 1):
        head = {"entry": entry_id(1, seq), "flow": "f", "run": 1, "seq": seq, "step": "s"}
        entries.append(Entry(**head, kind=kind, status=status, **more))
    return entries


STEP = (Kind.STEP, Status.RUNNING, {})
CALL = (Kind.CALL, Status.OK, {})
PROMISE = (Kind.PROMISE, Status.RUNNING, {"key": "f:p", "call": "promise", "ambient": {"name": "deploy"}})
NOTICE = (Kind.PROMISE, Status.OK, {"key": "f:p", "call": "notice"})
ANSWER = (Kind.PROMISE, Status.OK, {"key": "f:p", "call": "answer"})


def sleep(due, status=Status.RUNNING):
    return (Kind.SLEEP, status, {"key": "2h", "ambient": {"wake_at": due}})


def tried(times, entries):
    return {"tries": times, "mark": mark_of(entries)}


CASES = {
    "left in the middle": ((STEP, CALL), 0, {}, Look.GOES),
    "nothing recorded": ((), 0, {}, Look.GOES),
    "its process lives": ((STEP,), 0, {"held": True}, Look.RUNS),
    "its kernel is not gone yet": ((STEP,), 0, {"kernel_lives": True}, Look.KERNEL),
    "its notebook is gone": ((STEP,), 0, {"notebook_there": False}, Look.GONE),
    "its timer is not due": ((STEP, CALL, sleep(NOW + 1)), 0, {}, Look.SLEEPS),
    "its timer is due": ((STEP, CALL, sleep(NOW)), 0, {}, Look.GOES),
    "its timer fired": ((STEP, sleep(NOW + 1, Status.OK)), 0, {}, Look.GOES),
    "something else goes on beside its timer": ((STEP, sleep(NOW + 1), CALL), 0, {}, Look.GOES),
    "it sleeps, however often it was tried": ((STEP, sleep(NOW + 1)), MOST_TRIES, {}, Look.SLEEPS),
    "who tells people of its promise may not have run": ((STEP, PROMISE), 0, {}, Look.GOES),
    "it waits for an answer again": ((STEP, PROMISE, NOTICE), 1, {}, Look.WAITS),
    "its promise is answered": ((STEP, PROMISE, ANSWER), 1, {}, Look.GOES),
    "it died twice with nothing new": ((STEP, CALL), MOST_TRIES - 1, {}, Look.GOES),
    "it dies again and again": ((STEP, CALL), MOST_TRIES, {}, Look.STUCK),
    "it died on another boot": ((STEP, CALL), MOST_TRIES, {"boot": "other"}, Look.GOES),
}


@pytest.mark.parametrize(("told", "times", "around", "look"), CASES.values(), ids=CASES)
def test_k37_what_is_to_be_done_with_a_job(told, times, around, look):
    entries = story(*told)
    values = {name: getattr(AROUND, name) for name in AROUND.__struct_fields__} | around
    job = Job(**{name: getattr(JOB, name) for name in JOB.__struct_fields__} | tried(times, entries))
    assert look_at(job, Around(**values), entries, NOW).look is look


def test_o25_the_earliest_timer_is_due_first():
    dues = [look_at(JOB, AROUND, story(STEP, sleep(due)), NOW).due for due in (900.0, 300.0, 700.0)]
    assert sorted(dues) == [300.0, 700.0, 900.0]


def test_a_job_that_came_further_is_not_counted_against():
    entries = story(STEP, CALL)
    job = Job(id="j", notebook="n", output="o", key="", flow="", boot="b", **tried(MOST_TRIES, entries))
    assert tries_now(job, entries, "b") == MOST_TRIES
    assert tries_now(job, story(STEP, CALL, CALL), "b") == 0


def test_a_job_reads_as_it_was_written_and_withheld_parameters_stop_it():
    values = (("a", 1), ("b", 0.1), ("c", math.inf), ("d", None), ("e", True), ("f", "it's\n"), ("g", False))
    job = Job(id=job_id("n", "", "k"), notebook="n", output="o", key="k", flow="", parameters=values)
    assert from_map(to_map(job)) == job
    lacking = Job(id="j", notebook="n", output="o", key="", flow="", withheld=("api_key",))
    assert look_at(lacking, AROUND, (), NOW).look is Look.LACKS
    with pytest.raises((KeyError, ValueError, TypeError)):
        from_map({"parameters": [["a", "object", "x"]]})
