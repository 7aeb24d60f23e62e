"""Which runs a run goes on with (DESIGN 5, Volatile): enumerated."""

import itertools

import pytest
from msgspec.structs import replace

from keel_notebook.core.model import Entry, Kind, Status, entry_id
from keel_notebook.core.ports import FlowRecords, RunEnd, RunSeen, RunStart
from keel_notebook.core.resuming import RESUMED_S, of_root, resumed_runs

DAY_S = 86_400.0
NOON = 1_000 * DAY_S + DAY_S / 2
HOUR = 3600.0


def day(at):
    return str(at // DAY_S)


def flow(*runs):
    """``(end, when it started, when it was last seen)`` of each run, oldest first."""
    seen = {n: RunSeen(RunStart(n, "h", 1, "b", started), end) for n, (end, started, _) in enumerate(runs, 1)}
    entries = [
        Entry(entry=entry_id(n, 1), flow="f", run=n, seq=1, step="s", kind=Kind.STEP, status=Status.OK, started_at=last)
        for n, (_, _, last) in enumerate(runs, 1)
    ]
    return FlowRecords("f", entries, seen)


ENDS = (RunEnd.DIED, RunEnd.VANISHED, RunEnd.ASKED, RunEnd.CLEAN, RunEnd.OPEN)


@pytest.mark.parametrize(("older", "newer"), list(itertools.product(ENDS, ENDS)))
def test_runs_that_died_are_gone_on_with_up_to_the_last_that_ended_in_order(older, newer):
    records = flow((older, NOON - 2 * HOUR, NOON - 2 * HOUR), (newer, NOON - HOUR, NOON - HOUR))
    wanted = set()
    for number, end in ((2, newer), (1, older)):
        if end == RunEnd.CLEAN:
            break
        if end != RunEnd.OPEN:
            wanted.add(number)
    assert resumed_runs(records, 3, NOON, day=day) == wanted


CELLS = [(Kind.STEP, "", Status), (Kind.PLAIN, "", Status), (Kind.MARKER, "refused", [Status.OK])]


@pytest.mark.parametrize(
    ("kind", "decision", "status"), [(kind, said, status) for kind, said, every in CELLS for status in every]
)
def test_where_asked_a_run_that_stopped_short_is_gone_on_with_though_its_kernel_ended_in_order(kind, decision, status):
    """A mistake in the last cell does not make what depends on the clock execute again (C66)."""
    records = flow((RunEnd.CLEAN, NOON, NOON))
    key = "decision" if decision else ""
    last = Entry(
        entry=entry_id(1, 2), flow="f", run=1, seq=2, step="t", kind=kind, status=status, key=key,
        ambient={"decision": decision}, started_at=NOON,
    )  # fmt: skip
    records.entries.append(last)
    finished = status is Status.OK and not decision
    assert resumed_runs(records, 2, NOON, day=day, asked=True) == (set() if finished else {1})
    assert resumed_runs(records, 2, NOON, day=day) == set(), "by itself, only what died"


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize(
    ("started", "last", "now", "by_itself"),
    [
        (NOON - 11 * HOUR, NOON - 11 * HOUR, NOON, True),
        (NOON - 13 * HOUR, NOON - HOUR, NOON, True),  # it ran long, and died just now
        (NOON - 13 * HOUR, NOON - 13 * HOUR, NOON, False),
        (NOON, NOON + 11 * HOUR, NOON + 13 * HOUR, False),  # two hours ago, and yesterday
        (NOON - 12 * HOUR, NOON - 12 * HOUR, NOON - 12 * HOUR + RESUMED_S + 1, False),
    ],
)
def test_by_itself_only_on_the_day_of_its_death_and_within_twelve_hours(started, last, now, by_itself, asked):
    records = flow((RunEnd.DIED, started, last))
    assert resumed_runs(records, 2, now, day=day, asked=asked) == ({1} if by_itself or asked else set())


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize(
    ("kind", "status", "ambient", "finished"),
    [
        (Kind.STEP, Status.OK, {}, True),
        (Kind.STEP, Status.FAILED, {}, False),
        (Kind.STEP, Status.INTERRUPTED, {}, False),
        (Kind.PLAIN, Status.OK, {}, True),
        (Kind.PLAIN, Status.FAILED, {}, False),
        (Kind.MARKER, Status.OK, {"decision": "refused"}, False),
        (Kind.MARKER, Status.OK, {"decision": "replayed"}, True),
    ],
)
def test_a_run_whose_last_cell_did_not_end_well_is_not_finished_though_its_kernel_was_shut_down(
    kind, status, ambient, finished, asked
):
    records = flow((RunEnd.CLEAN, NOON - HOUR, NOON - HOUR))
    last = Entry(
        entry=entry_id(1, 2), flow="f", run=1, seq=2, step="", kind=kind, status=status, key="decision",
        ambient=ambient, started_at=NOON,
    )  # fmt: skip
    records = FlowRecords("f", [*records.entries, last], records.runs)
    assert resumed_runs(records, 2, NOON, day=day, asked=asked) == ({1} if asked and not finished else set())


def test_in_the_default_flow_only_runs_of_the_same_notebook_are_gone_on_with():
    records = flow((RunEnd.DIED, NOON - 2 * HOUR, NOON - 2 * HOUR), (RunEnd.CLEAN, NOON - HOUR, NOON - HOUR))
    entries = [replace(e, ambient={"root": root}) for e, root in zip(records.entries, ("a", "b"), strict=True)]
    records = FlowRecords("f", entries, records.runs)
    assert resumed_runs(of_root(records, "a"), 3, NOON, day=day) == {1}
    assert resumed_runs(of_root(records, "b"), 3, NOON, day=day) == set()
