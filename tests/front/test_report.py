"""``status``: the shape that is pinned, the state of every step, and which of several states is shown."""

import itertools
import json

import pytest
from msgspec.structs import replace

from keel_notebook.core.decide import Difference, Part
from keel_notebook.core.lifecycle import FORGET, RERUN, REVIVE
from keel_notebook.core.model import Kind, NotStored, Status
from keel_notebook.core.options import StepOptions
from keel_notebook.core.ports import FlowRecords, RunEnd, RunSeen, RunStart
from keel_notebook.core.report import StepDone, status
from keel_notebook.core.states import PRECEDENCE, Moment, StepSeen, states

from .conftest import PRINTED, Story

BADGES = [
    *("dead", "ambiguous", "failed", "interrupted", "diverged", "stale", "waiting", "sleeping"),
    *("running", "saving", "saved", "replayed", "resource", "recorded"),
]
"""FRONTEND.md, Behaviour: the order of precedence."""


def report(story, *, live=False, done=None, order=(), **more):
    return status(story.records, done=done or {}, now=story.now, live=live, notebook="nb.ipynb", order=order, **more)


def states_of(story, **more):
    return {row.name: row.state for row in report(story, **more).steps}


def row_of(story, name="fit", **more):
    return next(row for row in report(story, **more).steps if row.name == name)


# The shape --------------------------------------------------------------------------------------------------------


def test_the_json_has_exactly_the_pinned_shape(three_steps):
    found = json.loads(json.dumps(report(three_steps, live=True).to_dict()))
    assert list(found) == ["flow", "status", "run", "holder", "steps", "saved_s"]
    assert found["flow"] == "flow-1"
    assert found["status"] == "running"
    assert found["run"] == 2
    assert found["holder"] == "pid 4711 on host"
    assert found["saved_s"] == pytest.approx(599.98)
    keys = "name state decision attempts recorded_at took_s replay_s bytes differs why not_stored"
    assert all(list(step) == keys.split() for step in found["steps"])
    load = found["steps"][0]
    assert load == {
        "name": "load",
        "state": "replayed",
        "decision": "replayed",
        "attempts": 1,
        "recorded_at": three_steps.entries[1].ended_at,
        "took_s": 600.0,
        "replay_s": 0.02,
        "bytes": 2_100_000 + PRINTED.size,
        "differs": [],
        "why": "code and inputs are those of the record",
        "not_stored": [],
    }


def test_what_is_not_stored_is_named_with_type_and_reason(story):
    lost = NotStored("conn", "sqlite3.Connection", "lives in one process")
    story.run().step("load", not_stored=(lost,))
    [step] = report(story).to_dict()["steps"]
    assert step["not_stored"] == [{"name": "conn", "type": "sqlite3.Connection", "reason": "lives in one process"}]


def test_differs_holds_the_pinned_words_and_why_the_rest(story):
    story.run().step("fit")
    differs = (Difference(Part.INPUT, "a", "7", "9"), Difference(Part.INPUT, "b", "1", "2"), Difference(Part.CODE))
    done = {"fit": StepDone("fit", "executed", story.entries[0].entry, differs=differs, took_s=1.0)}
    found = row_of(story, live=True, done=done)
    assert found.differs == ("input", "code")
    assert found.why == "input a 7 -> 9; input b 1 -> 2; code"


def test_steps_come_in_the_order_of_the_notebook_and_the_rest_as_recorded(story):
    story.run()
    for name in ("c", "a", "b", "gone"):
        story.step(name)
    assert list(states_of(story, order=["a", "b", "never recorded", "c"])) == ["a", "b", "c", "gone"]


def test_an_empty_flow_has_no_steps(story):
    found = report(story)
    assert (found.steps, found.saved_s, found.holder) == ((), 0.0, None)


def test_a_replay_that_took_longer_than_the_step_saves_nothing(story):
    entry = story.run().step("fit", took=0.001)
    story.decided("fit", "replayed", entry=entry.entry, replay_s=0.5)
    assert report(story).saved_s == 0.0


# Every state, told as a story --------------------------------------------------------------------------------------


def told(tell):
    story = Story()
    story.run()
    tell(story)
    return story


def dead(story):
    story.step("fit", Status.RUNNING)
    for _ in range(2):
        story.run().step("fit", Status.RUNNING)


def refused(code, *differs):
    def tell(story):
        story.step("fit")
        story.run(RunEnd.OPEN).decided("fit", "refused", refusal=code, differs=differs, why="because")

    return tell


def edited_upstream(story):
    story.step("load", writes={"df": "d1"})
    story.step("fit", reads={"df": "d1"})
    story.step("load", writes={"df": "d2"})


def alive(status_, **more):
    def tell(story):
        story.run(RunEnd.OPEN).step("fit", status_, **more)

    return tell


def wait_in(kind):
    def tell(story):
        story.run(RunEnd.OPEN).step("fit", Status.RUNNING)
        story.step("fit", Status.RUNNING, kind=kind)

    return tell


def replayed(story):
    entry = story.step("fit")
    story.run(RunEnd.OPEN).decided("fit", "replayed", entry=entry.entry)


RESOURCE = "%%keel_step fit --always\nclient = connect()"

STORIES = {
    "dead": [(dead, False), (refused("E032"), True)],
    "ambiguous": [(lambda s: s.step("fit", Status.INTENT), False)],
    "failed": [(lambda s: s.step("fit", Status.FAILED), False), (alive(Status.FAILED), True)],
    "interrupted": [
        (lambda s: s.step("fit", Status.INTERRUPTED), False),
        (lambda s: s.step("fit", Status.RUNNING), False),
    ],
    "diverged": [(refused("E031"), True), (refused("E031", Difference(Part.CODE)), False)],
    "stale": [(edited_upstream, False), (edited_upstream, True)],
    "waiting": [(wait_in(Kind.PROMISE), True)],
    "sleeping": [(wait_in(Kind.SLEEP), True)],
    "running": [(alive(Status.RUNNING), True), (alive(Status.RUNNING), False), (alive(Status.INTENT), False)],
    "saved": [(lambda s: s.step("fit"), False), (replayed, False), (refused("E050"), True)],
    "replayed": [(replayed, True)],
    "resource": [(alive(Status.OK, source=RESOURCE), True), (lambda s: s.step("fit", source=RESOURCE), False)],
    "recorded": [(alive(Status.OK), True), (alive(Status.OK, kind=Kind.ADOPT), True)],
}


@pytest.mark.parametrize(
    ("state", "tell", "live"), [(state, *case) for state, cases in STORIES.items() for case in cases]
)
def test_each_state_is_told_by_a_story(state, tell, live):
    assert row_of(told(tell), live=live).state == state


def test_saving_is_what_a_power_cut_could_still_take():
    story = told(alive(Status.OK))
    entry = story.entries[-1].entry
    assert row_of(story, live=True, unsynced={entry}).state == "saving"


def test_every_badge_state_has_a_story():
    assert {*STORIES, "saving"} == set(BADGES)


def test_a_step_that_ran_and_was_not_recorded_is_not_shown_as_recorded():
    story = told(lambda s: s.step("fit"))
    story.run(RunEnd.OPEN)
    done = {"fit": StepDone("fit", "executed", None, why="the disk is full", took_s=3.0)}
    found = row_of(story, live=True, done=done)
    assert (found.state, found.why) == ("interrupted", "the disk is full")


def test_a_dead_step_that_was_edited_or_revived_is_no_longer_dead():
    story = told(dead)
    assert row_of(story).state == "dead"
    story.run()
    story.retire("fit", REVIVE, story.entries[0])
    assert row_of(story).state == "interrupted"
    story = told(dead)
    story.run().step("fit", source="%%keel_step fit\nsmaller()")
    assert row_of(story).state == "saved"


def test_the_cap_is_that_of_the_steps_own_line():
    story = told(lambda s: s.step("fit", Status.RUNNING, source="%%keel_step fit --max-attempts 1\nfit()"))
    found = row_of(story)
    assert (found.state, found.why) == ("dead", "the kernel died once in it")


def test_c03_a_replay_overtakes_an_attempt_that_died_after_the_record(story):
    entry = story.run().step("fit")
    story.run().step("fit", Status.RUNNING, source="%%keel_step fit\nedited()")
    story.run(RunEnd.OPEN).decided("fit", "replayed", entry=entry.entry)
    found = row_of(story, live=True)
    assert (found.state, found.attempts, found.decision) == ("replayed", 1, "replayed")


def test_a_rejected_record_would_execute_and_a_forgotten_one_is_gone(story):
    entry = story.run().step("fit")
    story.retire("fit", RERUN, entry)
    assert (row_of(story).state, row_of(story).why) == ("stale", "a rerun was asked for")
    story.retire("fit", FORGET, entry)
    assert report(story).steps == ()


def test_what_stands_open_in_a_step_that_is_over_is_no_wait(story):
    story.run(RunEnd.OPEN).step("fit", Status.RUNNING)
    story.step("fit", Status.RUNNING, kind=Kind.PROMISE, key="p1", call="promise")
    story.step("fit", Status.RUNNING, kind=Kind.PROMISE, key="p2", call="promise")
    story.step("fit", kind=Kind.PROMISE, key="p1", call="answer")
    assert row_of(story, live=True).state == "waiting"
    story.step("fit", kind=Kind.PROMISE, key="p2", call="answer")
    assert row_of(story, live=True).state == "running"
    story.step("fit", Status.RUNNING, kind=Kind.PROMISE, key="p3", call="promise")
    ended = story.step("fit")
    assert row_of(story, live=True).state == "recorded"
    story.run(RunEnd.OPEN).decided("fit", "replayed", entry=ended.entry)
    assert row_of(story, live=True).state == "replayed"


def test_the_second_attempt_after_a_death_says_so(story):
    story.run().step("fit", Status.RUNNING)
    story.run(RunEnd.OPEN).step("fit", attempt=2)
    assert row_of(story, live=True).attempts == 2


# Stale: only what the records prove ----------------------------------------------------------------------------------


def test_stale_goes_down_through_steps_that_would_execute(story):
    story.run()
    story.step("load", writes={"df": "d1"})
    story.step("clean", reads={"df": "d1"}, writes={"df": "d1c"})
    story.step("fit", reads={"df": "d1c"}, writes={"model": "m"})
    story.step("other", writes={"y": "y"})
    story.step("load", writes={"df": "d2"})
    found = {row.name: (row.state, row.why) for row in report(story).steps}
    assert found["clean"] == ("stale", "reads df, which load changed since")
    assert found["fit"] == ("stale", "reads df, made by clean, which differs")
    assert found["load"][0] == found["other"][0] == "saved"


def test_a_step_that_another_kernel_made_stale_says_which(story):
    story.run(RunEnd.OPEN)
    story.step("load", writes={"df": "d1"})
    story.step("fit", reads={"df": "d1"})
    story.run(RunEnd.OPEN).step("load", writes={"df": "d2"})
    here = {row.name: row.why for row in report(story, live=True, run=1).steps}
    assert here["fit"] == "reads df, which load changed since in run 2 by another kernel (pid 4711 on host)"
    there = {row.name: row.why for row in report(story, live=True, run=2).steps}
    assert there["fit"] == "reads df, which load changed since"
    story.runs[2] = replace(story.runs[2], end=RunEnd.DIED)
    ended = {row.name: row.why for row in report(story, live=True, run=1).steps}
    assert ended["fit"] == "reads df, which load changed since in run 2"


def test_stale_does_not_depend_on_the_order_in_which_cells_were_run(story):
    story.run()
    load, fit = story.step("load", writes={"df": "d1"}), story.step("fit", reads={"df": "d1"})
    story.step("load", writes={"df": "d2"})
    for order in (["load", "fit"], ["fit", "load"], []):
        assert states_of(story, order=order) == {"load": "saved", "fit": "stale"}
    story.entries[:2] = [fit, load]
    assert states_of(story)["fit"] == "stale"


def test_a_value_that_some_step_still_leaves_is_not_stale(story):
    story.run()
    story.step("load", writes={"df": "d1"})
    story.step("copy", writes={"df": "d1"})
    story.step("fit", reads={"df": "d1"})
    story.step("load", writes={"df": "d2"})
    assert states_of(story)["fit"] == "saved"


def test_equal_values_of_a_step_that_ran_again_make_nothing_stale(story):
    story.run()
    story.step("load", writes={"df": "d1"})
    story.step("fit", reads={"df": "d1"})
    story.step("load", writes={"df": "d1"})
    assert set(states_of(story).values()) == {"saved"}


def test_a_value_that_a_plain_cell_made_in_between_proves_nothing(story):
    story.run()
    story.step("load", writes={"x": "x1"})
    story.plain("x = x + 1")
    story.step("fit", reads={"x": "x2"})
    assert states_of(story)["fit"] == "saved"


def test_what_cannot_be_digested_is_not_said_to_be_stale(story):
    story.run()
    story.step("load", writes={"x": None})
    story.step("fit", reads={"x": None})
    assert states_of(story)["fit"] == "saved"


def test_followers_of_an_edited_step_are_stale(story):
    story.run()
    story.step("load", writes={"df": "d1"})
    story.step("fit", reads={"df": "d1"})
    assert states_of(story, edited={"load"}) == {"load": "diverged", "fit": "stale"}


def test_a_step_does_not_make_itself_stale_by_changing_what_it_reads(story):
    story.run()
    story.step("load", writes={"df": "d1"})
    story.step("grow", reads={"df": "d1"}, writes={"df": "d2"})
    story.step("grow", reads={"df": "d1"}, writes={"df": "d2"})
    assert set(states_of(story).values()) == {"saved"}


# Words for the run ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "last", "word"),
    [
        (RunEnd.OPEN, Status.OK, "running"),
        (RunEnd.CLEAN, Status.OK, "finished"),
        (RunEnd.CLEAN, Status.FAILED, "failed"),
        (RunEnd.ASKED, Status.FAILED, "failed"),
        (RunEnd.CLEAN, Status.INTERRUPTED, "interrupted"),
        (RunEnd.ASKED, Status.RUNNING, "stopped"),
        (RunEnd.DIED, Status.FAILED, "died"),
        (RunEnd.DIED, Status.OK, "died"),
        (RunEnd.VANISHED, Status.OK, "died"),
    ],
)
def test_the_word_for_the_run(story, end, last, word):
    story.run(end).step("fit", last)
    assert report(story).status == word


def test_a_front_end_may_say_that_a_run_is_finished(story):
    story.run(RunEnd.DIED).step("fit")
    story.step("", kind=Kind.RUN)
    assert report(story).status == "finished"


@pytest.mark.parametrize(("status", "took"), [(Status.FAILED, 3.2), (Status.INTERRUPTED, 3.2), (Status.OK, 3.2)])
def test_what_a_step_took_is_of_the_attempt_that_its_state_tells_of(story, status, took):
    story.run(RunEnd.OPEN).step("fit", took=0.027)
    story.step("fit", status, took=took)
    assert report(story, live=True).steps[0].took_s == took


def test_a_flow_with_a_dead_step_is_dead():
    assert report(told(dead)).status == "dead"
    assert report(told(refused("E032")), live=True).status == "dead"


# Precedence: every combination ---------------------------------------------------------------------------------------


def combinations():
    """Every combination of what is known of a step that ``states`` looks at: some 48,000."""
    base = Story().run().step("fit")
    own = replace(base, run=2, entry="2.9")
    attempts = [None, *(replace(base, run=run, entry=f"{run}.9", status=s) for s in Status for run in (1, 2))]
    decisions = [
        None,
        StepDone("fit", "executed", own.entry, took_s=1.0),
        StepDone("fit", "executed", None, took_s=1.0),
        StepDone("fit", "replayed", base.entry, replay_s=0.1),
        StepDone("fit", "refused", refusal="E031", differs=(Difference(Part.CODE),)),
        StepDone("fit", "refused", refusal="E032"),
        StepDone("fit", "skipped"),
    ]
    waits = [frozenset(), frozenset({Kind.PROMISE}), frozenset({Kind.SLEEP})]
    yes_no = (False, True)
    for attempt, record, done, wait in itertools.product(attempts, [None, base, own], decisions, waits):
        above = [("", ()), ("because", ()), ("", ("fit",))]
        for deaths, (stale, edited), always, live, synced in itertools.product((0, 3), above, yes_no, yes_no, yes_no):
            step = StepSeen("fit", attempt, record, done, StepOptions(always=always), deaths, wait, (), stale)
            start = RunStart(1, "h", 1, "b", 0.0)
            runs = {1: RunSeen(start, RunEnd.DIED), 2: RunSeen(start, RunEnd.OPEN if live else RunEnd.DIED)}
            unsynced = () if synced else ("1.9", "2.9")
            yield step, Moment(FlowRecords("f", (), runs), 2, live, unsynced, edited)


def test_precedence_is_that_of_the_badges():
    assert list(PRECEDENCE) == BADGES


def test_over_every_combination_the_states_keep_their_promises():
    pairs = set()
    for step, moment in combinations():
        held = set(states(step, moment))
        assert held <= set(BADGES)
        shown = next((word for word in PRECEDENCE if word in held), None)
        pairs.update(itertools.combinations([word for word in BADGES if word in held], 2))
        if step.record is None and step.attempt is None and (step.done is None or step.done.decision == "skipped"):
            continue
        if shown in ("replayed", "recorded") and step.record is not None:
            assert moment.live, "no green mark for what is not in memory"
        if shown == "replayed":
            assert step.done is not None
            assert step.done.decision == "replayed"
        if step.done is not None and step.done.refusal == "E032":
            assert shown == "dead"
        if step.stale:
            assert shown in BADGES[: BADGES.index("stale") + 1]
        if shown == "running":
            assert moment.live
    impossible = {("saved", "replayed"), ("saved", "resource"), ("replayed", "resource")}
    impossible |= {("ambiguous", "failed"), ("ambiguous", "running"), ("failed", "running"), ("ambiguous", "saving")}
    impossible |= {("failed", "saving"), ("running", "saving"), ("waiting", "sleeping")}
    every = set(itertools.combinations(BADGES, 2))
    assert every - pairs == impossible, "every pair that can hold at once was seen at once"


def test_a_timer_that_an_edit_left_behind_is_not_waited_for_once_a_run_finished(story):
    story.run(RunEnd.DIED).step("", Status.RUNNING, kind=Kind.SLEEP, key="2h", ambient={"wake_at": 9e9})
    assert [wait.kind for wait in report(story).waits] == ["sleep"]
    story.run(RunEnd.CLEAN).step("load")
    assert report(story).waits == ()


@pytest.mark.parametrize("mine", [False, True], ids=["whole record foreign", "an own one since"])
def test_a_record_of_somebody_else_is_not_saved_since_nothing_puts_it_back(story, mine):
    entry = story.run().step("fit")
    story.untrusted = frozenset({entry.entry})
    if mine:
        story.run().step("fit")
    shown = row_of(story)
    expected = ("saved", None) if mine else ("stale", "its record was not written with your key")
    assert shown.state == expected[0]
    assert expected[1] in (None, shown.why)
