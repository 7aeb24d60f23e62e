"""What came of a step that was executed again, beside its record (``core.verify``): every verdict."""

import pytest
from msgspec.structs import replace

from keel_notebook.core.calls import CallNow, Place, decide_call
from keel_notebook.core.decide import Difference, Execute, Facts, Mode, Part, Policy, Recorded, Refuse, Replay, decide
from keel_notebook.core.model import (
    Digest,
    Effect,
    Entry,
    FlowId,
    Input,
    Kind,
    NotStored,
    Problem,
    Status,
    Write,
    entry_id,
)
from keel_notebook.core.ports import Message
from keel_notebook.core.verify import HOLDS, Verdict, verified

RECORD = Entry(
    entry=entry_id(1, 1), flow=FlowId("f"), run=1, seq=1, step="fit", kind=Kind.STEP, status=Status.OK,
    code=Digest("c"), writes=(Write("a", Digest("a1"), "int", 1, "1"), Write("b", Digest("b1"), "list", 9)),
    deleted=("gone",),
)  # fmt: skip
HI = Message("stream", {"name": "stdout", "text": "hi\n"})


def now(**changed):
    return replace(RECORD, entry=entry_id(2, 1), run=2, **changed)


def compared(entry, *, record=RECORD, differences=(), shown=(HI,), recorded=(HI,)):
    return verified(entry, record, differences, shown=shown, recorded=recorded)


A2 = Write("a", Digest("a2"), "int", 1, "2")
B1, B2, UNKNOWN = RECORD.writes[1], Write("b", Digest("b2"), "list", 9), Write("b", None, "list", 9)


@pytest.mark.parametrize(
    ("entry", "names", "unknown"),
    [
        (now(), (), ()),
        (now(writes=(A2, B1)), ("a 1 -> 2",), ()),
        (now(writes=(RECORD.writes[0], B2)), ("b (list) holds something else",), ()),
        (now(writes=(B1,)), ("a is no longer left",), ()),
        (now(writes=(*RECORD.writes, replace(A2, name="z"))), ("z is left now",), ()),
        (now(deleted=()), ("gone is no longer deleted",), ()),
        (now(deleted=("gone", "more")), ("more is deleted now",), ()),
        (now(writes=(RECORD.writes[0], UNKNOWN)), (), ("b",)),
        (now(not_stored=(NotStored("f", "file", "open"), NotStored("_", "file", "open"))), (), ("f",)),
    ],
)
def test_every_name_is_compared_and_what_has_no_digest_counts_neither_way(entry, names, unknown):
    found = compared(entry)
    assert (found.names, found.unknown) == (names, unknown)
    assert found.verdict is (Verdict.DIFFERS if names else Verdict.SAME)
    assert found.well is (not names)


def test_what_was_different_before_it_ran_is_another_verdict():
    found = compared(now(writes=(A2, B1)), differences=[Difference(Part.INPUT, "x", "1", "2")])
    assert (found.verdict, found.changed, found.well) == (Verdict.CHANGED, ("input x 1 -> 2",), False)
    assert str(found) == "fit: changed: input x 1 -> 2; a 1 -> 2"


def test_an_error_and_a_step_without_a_record_are_told_apart():
    found = compared(now(status=Status.FAILED, error=Problem("ValueError")))
    assert str(found) == "fit: failed ValueError"
    assert compared(now(), record=None).verdict is Verdict.NEW
    assert {Verdict.SAME, Verdict.NEW, Verdict.PUT_BACK} == HOLDS


@pytest.mark.parametrize(
    ("shown", "differs"),
    [
        ([HI], ""),
        ([], "1 outputs -> 0"),
        ([replace(HI, content={"name": "stdout", "text": "ho\n"})], "output 1 (stream) shows something else"),
        ([replace(HI, content=HI.content | {"transient": {"display_id": "x"}})], ""),
        ([Message("comm_open", {"comm_id": "x"}), HI], ""),
    ],
)
def test_outputs_are_compared_without_what_is_new_in_every_kernel(shown, differs):
    assert compared(now(), shown=shown).outputs == differs


def test_outputs_that_cannot_be_read_are_not_compared():
    assert compared(now(), recorded=None).verdict is Verdict.SAME


def test_what_may_be_behind_a_difference_is_named_from_both_runs():
    found = compared(now(writes=(A2, B1), ambient={"saw": ["network"]}), record=replace(RECORD, ambient={"random": 1}))
    assert str(found).endswith("(it used the network, it draws from the module random)")


@pytest.mark.parametrize("entries", [(), (RECORD,)])
@pytest.mark.parametrize("rerun", [False, True])
def test_in_verify_mode_every_step_executes_whatever_is_recorded(entries, rerun):
    facts = Facts("fit", Digest("c"), {}, rerun=rerun)
    recorded = Recorded(entries, tries=5, deaths=5)
    assert isinstance(decide(facts, recorded, Policy(Mode.VERIFY), now=0.0), Execute)


@pytest.mark.parametrize("effect", Effect)
def test_in_verify_mode_no_guarded_call_fires_and_a_recorded_one_comes_back(effect):
    call = CallNow(Place("ask", "k", 1), Digest("c"), Digest("a"), "i", effect)
    assert isinstance(decide_call(call, (), mode=Mode.VERIFY), Execute if effect is Effect.IDEMPOTENT else Refuse)
    kept = replace(RECORD, kind=Kind.CALL, inputs=(Input("args", Digest("a")),), idempotency_key="i", effect=effect)
    assert isinstance(decide_call(call, (kept,), mode=Mode.VERIFY), Replay)
