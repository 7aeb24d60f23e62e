"""The pure decisions about strict flows and guarded effects, enumerated over their whole domain."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from keel_notebook.core import effects as e
from keel_notebook.core import flowstate as f
from keel_notebook.core.decide import Refuse, Replay, Response
from keel_notebook.core.ids import text_digest
from keel_notebook.core.model import Effect, Entry, Kind, Status

STATUSES = [None, *f.FlowStatus]


def entry(status=Status.OK, key="a", kind=Kind.CALL, **more):
    return Entry("1.1", "f", 1, 1, "s", kind, status, key=key, **more)


def test_k21_k22_k26_k31_entering_is_decided_for_every_state():
    for status, free, attempts in itertools.product(STATUSES, [True, False], range(5)):
        check_entry(status, free, attempts)


def check_entry(status, free, attempts):
    state = f.FlowState(status=status, attempts=attempts)
    found = f.decide_entry(state, lease_free=free, max_attempts=3)
    if status is f.FlowStatus.COMPLETED:
        assert found == f.PureReplay(), "K26: no lease, no attempt"
    elif status is f.FlowStatus.DEAD:
        assert found == f.NoEntry("E032"), "K22"
    elif not free:
        assert found == f.NoEntry("E030"), "the lease before the cap: a contender never marks it dead"
    elif attempts >= 3:
        assert found == f.NoEntry("E032", dies=True)
    else:
        assert found == f.Enter(attempts + 1, reopen=status in {f.FlowStatus.FAILED, f.FlowStatus.ABORTED})


def test_k20_every_pair_of_statuses_is_legal_or_not():
    legal = {(old, new) for old, new in itertools.product(f.FlowStatus, f.FlowStatus) if f.may(old, new)}
    assert {(s, s) for s in f.FlowStatus} <= legal, "K30: twice is harmless"
    assert (f.FlowStatus.COMPLETED, f.FlowStatus.FAILED) not in legal, "K28"
    assert (f.FlowStatus.COMPLETED, f.FlowStatus.DEAD) not in legal
    assert (f.FlowStatus.FAILED, f.FlowStatus.COMPLETED) not in legal, "K25: only through running"
    assert len(legal) == 7 + 14
    with pytest.raises(ValueError, match="paused"):
        f.FlowStatus("paused")


ROWS = [None] + [entry(status, key, kind) for status in Status for key in ("a", "b") for kind in (Kind.CALL, Kind.TIME)]


def test_k5_k10_k12_k14_k27_a_call_is_decided_for_every_record():
    for row, response, abandoned, pure in itertools.product(ROWS, Response, [True, False], [True, False]):
        check_call(row, response, abandoned, pure)


def check_call(row, response, abandoned, pure):
    state = f.FlowState(rows={} if row is None else {("", 1): row})
    found = f.decide_strict(state, 1, key="a", kind=Kind.CALL, response=response, abandoned=abandoned, pure=pure)
    if row is None or abandoned:
        assert found == (f.Ungrown(1, "a") if pure else f.Live(1))
    elif row.key != "a" or row.kind is not Kind.CALL:
        assert found == (f.Ungrown(1, "a") if pure else f.Parted(1, response, row.key, "a"))
    elif row.status in {Status.OK, Status.FAILED, Status.SKIPPED}:
        assert found == f.Recorded(row)
    else:
        assert found == (f.Ungrown(1, "a") if pure else f.Live(1, crashed=row))
    key = f.recorded_key(found)
    assert key is None, "K38: these have no key"


def test_k38_a_key_comes_back_from_a_crashed_attempt_only():
    crashed = entry(Status.RUNNING, idempotency_key="k")
    assert f.recorded_key(f.Live(1, crashed)) == "k"
    for answer in (f.Live(1), f.Recorded(crashed), f.Ungrown(1, "a"), f.Parted(1, Response.WARN, "a", "b")):
        assert f.recorded_key(answer) is None


def test_k18_only_fail_is_softened_and_only_where_both_codes_are_known():
    for response, recorded, code in itertools.product(Response, [None, "v1"], [None, "v1", "v2"]):
        softened = response is Response.FAIL and recorded == "v1" and code == "v2"
        assert f.effective(response, recorded_code=recorded, code=code) is (Response.WARN if softened else response)


def test_k1_the_id_of_a_flow_is_a_function_of_its_three_parts_and_no_boundary_can_move():
    ids = {f.strict_flow(*parts) for parts in [("ab", "c", ""), ("a", "bc", ""), ("ab", "", "c"), ("ab", "c", "d")]}
    assert len(ids) == 4
    assert f.strict_flow("ab", "c") == f.strict_flow("ab", "c", "")


# ---- guarded effects

HISTORIES = [
    tuple(history) for length in range(4) for history in itertools.product(
        [Status.INTENT, Status.OK, Status.FAILED, Status.SKIPPED], repeat=length)
]  # fmt: skip


def test_z4_z15_z21_a_guarded_effect_is_decided_for_every_history():
    effects = [Effect.AT_LEAST_ONCE, Effect.EXACTLY_ONCE]
    for effect, history, word, valid in itertools.product(effects, HISTORIES, e.OnAmbiguous, [True, False]):
        check_effect(effect, history, word, valid)


def check_effect(effect, history, word, valid):
    records = [entry(status) for status in history]
    record = next((r for r in records if r.status is Status.OK), None) if valid else None
    found = e.decide_effect(effect, records, valid=record, on_ambiguous=word)
    if record is not None:
        assert found == Replay(record, found.why)
    elif effect is Effect.AT_LEAST_ONCE:
        assert isinstance(found, e.Fire)
        assert found.intent
    elif Status.OK in history:
        assert isinstance(found, Replay), "Z15: committed is never fired again, whatever differs"
    elif not history or history[0] is Status.FAILED:
        assert isinstance(found, e.Fire)
        assert found.ambiguous is None
    elif history[0] is Status.SKIPPED:
        assert found == e.Assume(records[0], first=False, why=found.why)
    else:
        expected = {
            e.OnAmbiguous.FAIL: Refuse,
            e.OnAmbiguous.SKIP: e.Assume,
            e.OnAmbiguous.RERUN: e.Fire,
        }[word]
        assert isinstance(found, expected)
        if isinstance(found, e.Fire):
            assert (found.intent, found.ambiguous) == (False, records[0]), "Z21: the intent is not written again"


@pytest.mark.parametrize("effect", [Effect.AT_LEAST_ONCE, Effect.EXACTLY_ONCE])
def test_o12_a_result_of_a_holder_that_was_taken_over_from_is_void(effect):
    """It was paused between its last look at the lease and its write: the larger fence is the newer word."""
    begun, taken, late = entry(Status.INTENT, fence=1), entry(Status.INTENT, fence=2), entry(Status.OK, fence=1)
    decided = {
        "late": e.decide_effect(effect, [late, taken, begun], valid=None),
        "in time": e.decide_effect(effect, [late, begun], valid=None),
        "unleased": e.decide_effect(effect, [replace(late, fence=0), taken], valid=None),
    }
    once = effect is Effect.EXACTLY_ONCE
    kinds = (Refuse, Replay, Replay) if once else (e.Fire, e.Fire, e.Fire)
    assert tuple(map(type, decided.values())) == kinds
    if not once:
        assert decided["late"].attempt == 3, "what is void is no try"


def test_z23_the_idempotency_key_depends_on_each_of_its_parts_and_on_nothing_else():
    parts = {"flow": "f", "flow_key": "k", "step": "s", "identity": "i", "call": "c", "key": "1", "occurrence": 1}
    base = e.idempotency_key(**parts)
    assert base == e.idempotency_key(**parts)
    others = {e.idempotency_key(**(parts | {name: 2 if name == "occurrence" else "x"})) for name in parts}
    assert len(others | {base}) == 8


@given(
    st.lists(st.text(alphabet="ab1:", max_size=3), max_size=4),
    st.lists(st.text(alphabet="ab1:", max_size=3), max_size=4),
)
def test_z3_two_descriptors_never_collide_however_their_boundaries_are_moved(one, other):
    assert (text_digest(*one) == text_digest(*other)) == (one == other)


@pytest.mark.parametrize(("one", "other"), [(("ab", "c"), ("a", "bc")), (("a", ""), ("", "a")), (("a",), ("a", ""))])
def test_z3_equal_texts_with_other_boundaries_differ(one, other):
    assert text_digest(*one) != text_digest(*other)
