"""What ``keel gc`` lets go (``core.retention``): never what is needed, and what is missed least first."""

from hypothesis import given
from hypothesis import strategies as st

from keel_notebook.core.model import (
    Blob,
    Digest,
    Effect,
    Entry,
    FlowId,
    Kind,
    Payload,
    Status,
    entry_id,
)
from keel_notebook.core.retention import KEEP_S, ORPHAN_S, Held, Wishes, plan

DAY = 86_400.0
NOW = 1_000 * DAY
F = FlowId("f")


def record(seq, objects="", *, age=100, step="fit", refs=(), **fields):
    """A record of ``age`` days that holds one object for each letter."""
    buffers = tuple(Digest(name) for name in objects)
    return Entry(
        entry=entry_id(1, seq), flow=F, run=1, seq=seq, step=step, kind=fields.pop("kind", Kind.STEP),
        status=fields.pop("status", Status.OK), payload=Payload(Blob(1, inline=b"h"), buffers, tuple(refs)),
        started_at=NOW - age * DAY, ended_at=NOW - age * DAY, **fields,
    )  # fmt: skip


def gone(*entries, objects=None, **wishes):
    names = objects or sorted({d for e in entries for d in e.payload.buffers})
    held = {Digest(name): Held(10, NOW - 100 * DAY) for name in names}
    return "".join(plan({F: entries}, held, Wishes(**wishes), now=NOW).objects)


def test_only_superseded_records_older_than_the_retention_go():
    assert gone(record(1, "a"), record(2, "b"), record(3, "c", age=1)) == "ab"
    assert gone(record(1, "a", age=29), record(2, "b", age=1)) == ""
    assert gone(record(1, "a", age=29), record(2, "b", age=1), keep_s=DAY) == "a"
    assert gone(record(1, "a", age=900)) == "", "the newest record of a step has no age"


def test_a_record_that_a_kernel_has_put_back_is_needed_with_what_it_refers_to():
    old = [record(1, "a", step="x"), record(2, "b", refs=[entry_id(1, 1)])]
    new = [record(3, "c", step="x"), record(4, "d")]
    assert gone(*old, *new) == "ab"
    assert gone(*old, *new, keep=frozenset({entry_id(1, 2)})) == ""
    assert gone(*old, *new, keep=frozenset({entry_id(1, 3), entry_id(1, 4)})) == "ab", "the newest are needed anyway"
    assert gone(record(1, "a"), record(2, "b"), claimed=frozenset({Digest("a")})) == ""


def test_an_object_goes_with_its_last_user_and_references_are_kept():
    assert gone(record(1, "ab"), record(2, "b")) == "a"
    assert gone(record(1, "a", step="load"), record(2, "b", step="load"), record(3, "c", refs=[entry_id(1, 1)])) == ""
    chain = [record(1, "a", step="x"), record(2, "b", step="x", refs=[entry_id(1, 1)]), record(3, "c", step="x")]
    assert gone(*chain, record(4, "d", step="y", refs=[entry_id(1, 2)])) == ""


def test_what_must_not_happen_twice_is_never_let_go():
    for fields in ({"effect": Effect.EXACTLY_ONCE}, {"effect": Effect.AT_LEAST_ONCE}, {"kind": Kind.PROMISE}):
        assert gone(record(1, "a", **fields), record(2, "b", **fields), record(3, "c"), budget=0) == "", fields


def test_calls_are_kept_by_their_key_and_occurrence():
    calls = [record(n, name, kind=Kind.CALL, call="ask", key=key) for n, name, key in ((1, "a", "k"), (2, "b", "l"))]
    assert gone(*calls) == ""
    assert gone(*calls, record(3, "c", kind=Kind.CALL, call="ask", key="k")) == "a"


def test_other_parameter_sets_and_lanes_go_only_for_the_budget_and_after_what_is_superseded():
    old, other, newest = (
        record(1, "a", ambient={"parameters": "p"}),
        record(2, "b", ambient={"parameters": "p"}),
        record(3, "c"),
    )
    assert gone(old, other, newest, keep_s=KEEP_S) == "a"
    assert gone(old, other, newest, keep_s=1e12) == ""
    assert gone(old, other, newest, keep_s=1e12, budget=20) == "a"
    assert gone(old, other, newest, keep_s=1e12, budget=19) == "ab"
    found = plan({F: [old, other, newest]}, {Digest(n): Held(10, 0.0) for n in "abc"}, Wishes(budget=5), now=NOW)
    assert (found.bytes, found.left, found.over) == (20, 10, 5)


def test_objects_that_no_entry_names_go_after_a_day_where_everything_could_be_read():
    held = {Digest("young"): Held(10, NOW - ORPHAN_S + 1), Digest("old"): Held(10, NOW - ORPHAN_S)}
    assert plan({}, held, Wishes(), now=NOW).objects == ("old",)
    assert plan({}, held, Wishes(orphans=False), now=NOW).objects == ()


ENTRIES = st.lists(
    st.tuples(
        st.text("abcdef", max_size=3), st.integers(0, 90), st.sampled_from(["x", "y"]),
        st.sampled_from(list(Effect)), st.sampled_from(["", "p"]), st.sampled_from([Status.OK, Status.FAILED]),
        st.integers(0, 3),
    ),
    max_size=8,
)  # fmt: skip


@given(ENTRIES, st.one_of(st.none(), st.integers(0, 60)))
def test_whatever_the_history_the_newest_records_and_what_they_refer_to_stay_whole(found, budget):
    entries = []
    for at, (objects, age, step, effect, parameters, status, back) in enumerate(found, 1):
        refs = [entry_id(1, at - back)] if back and at > back else ()
        entries.append(
            record(at, objects, age=age, step=step, effect=effect, status=status, refs=refs,
                   ambient={"parameters": parameters})
        )  # fmt: skip
    lost = set(gone(*entries, objects="abcdef", budget=budget))
    by_id = {e.entry: e for e in entries}
    ok = [e for e in entries if e.status is Status.OK]
    current = ok[-1].ambient["parameters"] if ok else ""
    needed = [e for e in entries if e.effect is not Effect.IDEMPOTENT]
    for step in "xy":
        needed += [e for e in ok if e.step == step and e.ambient["parameters"] == current][-1:]
    while needed:
        entry = needed.pop()
        assert lost.isdisjoint(entry.payload.buffers), entry
        needed += [by_id[ref] for ref in entry.payload.refs]
