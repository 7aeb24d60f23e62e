"""The decision over its whole finite domain: enumerated, not sampled (STYLE, Habits)."""

import itertools

import pytest

from keel_notebook.core.decide import (
    Difference,
    Diverged,
    Execute,
    Facts,
    Mode,
    Part,
    Policy,
    Recorded,
    Refuse,
    Replay,
    Response,
    decide,
    differences,
    lacking,
    same,
)
from keel_notebook.core.fileholds import ABSENT, FilesNow
from keel_notebook.core.model import Entry, FileSeen, Input, Kind, NotStored, Status, entry_id

NOW = 1_000.0
CODE = "c0de"
INPUTS = {"a": Input("a", "d1", preview="7"), "b": Input("b", "d2")}
NEEDED = frozenset({"con"})
FACTS = Facts(name="fit", code=CODE, inputs=INPUTS, files=FilesNow({"in.csv": "f1"}), ttl_s=100.0, needed=NEEDED)


def record(seq: int, **changed: object) -> Entry:
    fields = {
        "entry": entry_id(1, seq),
        "flow": "f",
        "run": 1,
        "seq": seq,
        "step": "fit",
        "kind": Kind.STEP,
        "status": Status.OK,
        "code": CODE,
        "inputs": tuple(INPUTS.values()),
        "files": (FileSeen("in.csv", "read", "f1"),),
        "ambient": {"saw": []},
        "ended_at": NOW - 50,
    }
    return Entry(**(fields | changed))


NEWEST = {
    "nothing": None,
    "valid": record(9),
    "other code": record(9, code="0ther"),
    "other input": record(9, inputs=(Input("a", "d9"), INPUTS["b"])),
    "unknown input": record(9, inputs=(Input("a", None), INPUTS["b"])),
    "one input more": record(9, inputs=(*INPUTS.values(), Input("z", "d3"))),
    "one input less": record(9, inputs=(INPUTS["a"],)),
    "other file": record(9, files=(FileSeen("in.csv", "read", "f9"),)),
    "unknown file": record(9, files=(FileSeen("gone.csv", "uses", "f9"),)),
    "expired": record(9, ended_at=NOW - 100),
    "lacks a value": record(9, not_stored=(NotStored("con", "sqlite3.Connection", "a connection"),)),
    "failed": record(9, status=Status.FAILED),
    "interrupted": record(9, status=Status.INTERRUPTED),
}
OLDER = {
    "nothing": None,
    "valid, saw nothing": record(5),
    "valid, used the network": record(5, ambient={"saw": ["network"]}),
    "valid, of unknown doings": record(5, ambient={}),
    "other code": record(5, code="0ther"),
}
DOMAIN = list(
    itertools.product(
        NEWEST,
        OLDER,
        [0, 1, 3],  # tries
        [0, 1, 3],  # deaths
        [1, 3],  # cap
        [Mode.LIVE, Mode.REPLAY],
        Response,
        [False, True],  # always
        [False, True],  # rerun
        ["none", "newest", "older"],  # untrusted
    )
)


def answers():
    for newest, older, tries, deaths, cap, mode, response, always, rerun, untrusted in DOMAIN:
        entries = tuple(e for e in (NEWEST[newest], OLDER[older]) if e is not None)
        chosen = {"none": None, "newest": NEWEST[newest], "older": OLDER[older]}[untrusted]
        recorded = Recorded(
            entries,
            tries=tries,
            deaths=min(deaths, tries),
            untrusted=frozenset({chosen.entry} if chosen is not None else ()),
        )
        facts = Facts(**{f: getattr(FACTS, f) for f in FACTS.__slots__} | {"always": always, "rerun": rerun})
        policy = Policy(mode, response, cap)
        yield facts, recorded, policy, decide(facts, recorded, policy, now=NOW)


@pytest.fixture(scope="module")
def all_answers():
    return list(answers())


def test_the_domain_is_large_enough_to_mean_something(all_answers):
    kinds = {type(answer) for *_, answer in all_answers}
    assert kinds == {Replay, Execute, Refuse, Diverged}
    assert len(all_answers) > 20_000


def test_what_is_replayed_is_finished_equal_in_every_part_complete_and_sealed(all_answers):
    for facts, recorded, _, answer in all_answers:
        if isinstance(answer, Replay):
            assert answer.entry.status is Status.OK
            assert differences(facts, answer.entry, now=NOW) == ()
            assert answer.entry.entry not in recorded.untrusted
            assert not lacking(answer.entry, NEEDED)
            assert not facts.rerun
            assert not facts.always


def test_a_valid_record_is_never_executed_for_nothing(all_answers):
    for facts, recorded, _, answer in all_answers:
        newest = recorded.entries[0] if recorded.entries else None
        if newest is NEWEST["valid"] and not (facts.rerun or facts.always or recorded.untrusted):
            assert isinstance(answer, Replay)


def test_an_older_record_is_replayed_only_if_its_step_saw_nothing_of_the_world(all_answers):
    for _, recorded, _, answer in all_answers:
        if (
            isinstance(answer, Replay)
            and answer.entry is not recorded.entries[0]
            and recorded.entries[0].status is Status.OK
        ):
            assert answer.entry is OLDER["valid, saw nothing"]


def test_c67_failed_and_interrupted_attempts_are_never_replayed(all_answers):
    for _, recorded, _, answer in all_answers:
        if recorded.entries == (NEWEST["failed"],) or recorded.entries == (NEWEST["interrupted"],):
            assert not isinstance(answer, Replay | Diverged)


def test_replay_mode_never_executes_a_step(all_answers):
    for facts, _, policy, answer in all_answers:
        if policy.mode is Mode.REPLAY and not facts.always:
            assert isinstance(answer, Replay | Refuse)


def test_c03_at_the_cap_only_a_replay_is_possible(all_answers):
    for facts, recorded, policy, answer in all_answers:
        if recorded.deaths >= policy.max_attempts and not facts.always:
            assert isinstance(answer, Replay) or (
                isinstance(answer, Refuse) and answer.code in {"E032", "E031", "E050"}
            )


def test_below_the_cap_nothing_is_dead(all_answers):
    for _, recorded, policy, answer in all_answers:
        if isinstance(answer, Refuse) and answer.code == "E032":
            assert recorded.deaths >= policy.max_attempts


def test_k14_policy_fail_never_runs_a_step_that_differs_from_its_record(all_answers):
    for facts, recorded, policy, answer in all_answers:
        newest_ok = next((e for e in recorded.entries if e.status is Status.OK), None)
        if policy.on_divergence is Response.FAIL and newest_ok is not None and not (facts.rerun or facts.always):
            differs = differences(facts, newest_ok, now=NOW)
            assert not (isinstance(answer, Execute) and differs) or lacking(recorded.entries[0], NEEDED)
            if isinstance(answer, Diverged):
                assert answer.response is Response.FAIL


def test_a_divergence_names_at_least_one_part(all_answers):
    for *_, answer in all_answers:
        if isinstance(answer, Diverged):
            assert answer.differences
            assert all(str(difference) for difference in answer.differences)


def test_e050_a_foreign_record_stops_instead_of_executing_everything(all_answers):
    for facts, recorded, _, answer in all_answers:
        if recorded.untrusted and not (facts.rerun or facts.always):
            assert isinstance(answer, Replay) or (isinstance(answer, Refuse) and answer.code == "E050")


def test_the_attempt_counts_every_try_that_never_ended(all_answers):
    for facts, recorded, _, answer in all_answers:
        if isinstance(answer, Execute | Diverged) and not facts.always:
            assert answer.attempt == recorded.tries + 1


def test_unknown_is_never_equal():
    assert not same(None, None)
    assert not same("d", None)
    assert same("d", "d")


def test_c30_a_changed_input_is_named_with_both_values():
    facts = Facts(name="d", code=CODE, inputs={"a": Input("a", "d9", preview="9"), "b": INPUTS["b"]}, files=FACTS.files)
    (only,) = differences(facts, record(1), now=NOW)
    assert only == Difference(Part.INPUT, "a", "7", "9")
    assert str(only) == "input a 7 -> 9"


def test_an_edit_is_said_as_code_and_not_once_more_for_every_name_it_reads():
    facts = Facts(name="d", code="new", inputs={"z": Input("z", "d3")}, files=FACTS.files)
    assert [d.part for d in differences(facts, record(1), now=NOW)] == [Part.CODE]


def test_a_name_that_only_the_record_calls_an_input_is_compared_where_it_is_known():
    kept = record(1, inputs=(*INPUTS.values(), Input("x", "d5", preview="5")))
    unchanged = Facts(name="d", code=CODE, inputs=INPUTS, files=FACTS.files, extra={"x": Input("x", "d5")})
    changed = Facts(name="d", code=CODE, inputs=INPUTS, files=FACTS.files, extra={"x": Input("x", "d6", preview="6")})
    assert differences(unchanged, kept, now=NOW) == ()
    assert [str(d) for d in differences(changed, kept, now=NOW)] == ["input x 5 -> 6"]


def test_a_file_that_was_not_there_is_a_known_state():
    looked_for = record(1, files=(FileSeen("maybe.csv", "absent", ABSENT),))
    still_absent = Facts(name="d", code=CODE, inputs=INPUTS, files=FilesNow({"maybe.csv": ABSENT}))
    there_now = Facts(name="d", code=CODE, inputs=INPUTS, files=FilesNow({"maybe.csv": "f7"}))
    assert differences(still_absent, looked_for, now=NOW) == ()
    assert [d.part for d in differences(there_now, looked_for, now=NOW)] == [Part.FILE]


def test_c50_what_nobody_needs_may_be_lacking():
    lacks = record(1, not_stored=(NotStored("f", "_io.TextIOWrapper", "an open file"),))
    facts = Facts(name="fit", code=CODE, inputs=INPUTS, files=FACTS.files)
    answer = decide(facts, Recorded((lacks,)), Policy(), now=NOW)
    assert isinstance(answer, Replay)


def test_a_step_that_kept_failures_of_its_calls_is_not_finished():
    owes = record(1, ambient={"saw": [], "failed_calls": 2})
    facts = Facts(name="fit", code=CODE, inputs=INPUTS, files=FACTS.files)
    answer = decide(facts, Recorded((owes,)), Policy(), now=NOW)
    assert answer == Execute(1, "2 of its calls failed in run 1 and were kept: those are tried again")
    assert isinstance(decide(facts, Recorded((owes,)), Policy(Mode.REPLAY), now=NOW), Replay)
    better = record(2)
    assert decide(facts, Recorded((better, owes)), Policy(), now=NOW).entry is better


@pytest.mark.parametrize("valid", [True, False])
def test_another_parameter_set_is_no_divergence_and_its_records_stay(valid):
    """C78: the values chosen above pick the record; only within one set does a difference count as one."""
    other = record(9, inputs=(Input("a", "d9"), INPUTS["b"]), ambient={"saw": ["network"], "parameters": "p2"})
    own = record(5, ambient={"saw": ["network"], "parameters": "p1"}, code=CODE if valid else "0ther")
    facts = Facts(name="fit", code=CODE, inputs=INPUTS, files=FilesNow({"in.csv": "f1"}), parameters="p1")
    stop = Policy(on_divergence=Response.FAIL)
    found = decide(facts, Recorded((other, own)), stop, now=NOW)
    if valid:
        assert found == Replay(own, "code and inputs are those of the record")
    else:
        assert isinstance(found, Diverged)
        assert found.entry is own
    assert decide(facts, Recorded((other,)), stop, now=NOW) == Execute(
        1, "there is no record of it with these parameters"
    )
