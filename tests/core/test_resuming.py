"""Which runs a run goes on with (DESIGN 5, Volatile): enumerated."""

import itertools

import pytest

from keel_notebook.core.model import Entry, Kind, Status, entry_id
from keel_notebook.core.ports import FlowRecords, RunEnd, RunSeen, RunStart
from keel_notebook.core.resuming import RESUMED_S, resumed_runs

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
