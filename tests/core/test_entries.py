"""What a step asks of its flow's entries costs the same whatever stands beside it, and is what a walk would find."""

from __future__ import annotations

import gc
import random
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from keel_notebook.core import journalfiles, lifecycle
from keel_notebook.core.done import EXECUTED, REPLAYED, StepDone, decision_entry
from keel_notebook.core.entries import Index, indexed
from keel_notebook.core.model import Digest, Entry, EntryId, FlowId, Kind, Status, entry_id
from keel_notebook.core.ports import FlowRecords
from keel_notebook.core.states import same_code_as

FLOW = FlowId("f")
NOW = lifecycle.fingerprint(Digest("c1"), {})
QUESTIONS: dict[str, Callable[[FlowRecords], Any]] = {
    "the record in force": lambda records: lifecycle.recorded(records, "s1", NOW).last,
    "all about its records": lambda records: lifecycle.recorded(records, "s1", NOW),
    "its newest record": lambda records: lifecycle.newest_ok(records, "s1"),
    "journals that went on": lambda records: journalfiles.acted(lifecycle.of_step(records, "s1"), lambda _: {}),
    "the same code elsewhere": lambda records: same_code_as(records, Digest("c1"), without={"s1"}),
}


def _attempt(seq: int, step: str, code: str, status: Status, kind: Kind = Kind.STEP) -> Entry:
    source = f"%%keel_step {step}\nx = 1"
    return Entry(entry_id(1, seq), FLOW, 1, seq, step, kind, status, code=Digest(code), source=source)


def _flow(entries: Sequence[tuple[Entry | None, Entry]], *, kept: bool) -> FlowRecords:
    """``entries``: what each supersedes, and itself. ``kept``: with the index that a journal keeps of them."""
    index, there = Index(), dict[EntryId, Entry]()
    for old, entry in entries:
        there.pop(entry.entry, None)
        there[entry.entry] = entry
        index.add(entry) if old is None else index.supersede(old, entry)
    return FlowRecords(FLOW, indexed(there.values(), index) if kept else tuple(there.values()), {})


def _story(length: int, seed: int) -> list[tuple[Entry | None, Entry]]:
    chance = random.Random(seed)
    story: list[tuple[Entry | None, Entry]] = []
    for seq in range(1, length + 1):
        step, code = f"s{chance.randrange(4)}", f"c{chance.randrange(3)}"
        if story and chance.random() < 0.4:
            _, old = chance.choice(story)
            if all(entry.entry != old.entry or entry is old for _, entry in story):
                status = chance.choice([Status.OK, Status.FAILED])
                story.append((old, replace(old, status=status)))
                continue
        if chance.random() < 0.3:
            done = StepDone(step, chance.choice([REPLAYED, EXECUTED]), EntryId(f"of {seq}"))
            story.append((None, decision_entry(done, flow=FLOW, run=1, seq=seq, at=float(seq))))
        else:
            kind = chance.choice([Kind.STEP, Kind.STEP, Kind.ACCEPT, Kind.RETIRE, Kind.PLAIN])
            story.append((None, _attempt(seq, step, code, chance.choice(list(Status)), kind)))
    return story


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_index_answers_as_a_walk_through_all_entries(question: str) -> None:
    for seed in range(200):
        story = _story(30, seed)
        kept, walked = (QUESTIONS[question](_flow(story, kept=kept)) for kept in (True, False))
        assert kept == walked, f"seed {seed}"


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_cost_does_not_grow_with_the_flow(question: str) -> None:
    def lines(others: int) -> int:
        mine = [(None, _attempt(seq, "s1", "c1", Status.OK)) for seq in (1, 2)]
        story = [*mine, *((None, _attempt(seq, f"o{seq}", f"k{seq}", Status.OK)) for seq in range(3, others + 3))]
        return _lines_of(QUESTIONS[question], _flow(story, kept=True))

    assert lines(2000) == lines(20)


def _lines_of(ask: Callable[[FlowRecords], Any], records: FlowRecords) -> int:
    """How many lines of Python run: each turn of a loop is one."""
    count = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    gc.disable()  # others hang functions of theirs on it
    sys.settrace(trace)
    try:
        ask(records)
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def test_what_was_indexed_stays_while_more_is_taken_in_on_two_ways() -> None:
    index = Index()
    for seq in (1, 2):
        index.add(_attempt(seq, "s1", "c1", Status.OK))
    before = indexed((), index).looked_up
    other = index.copy()
    index.add(_attempt(3, "s1", "c1", Status.OK))
    other.add(_attempt(4, "s1", "c1", Status.OK))
    found = [[entry.seq for entry in each.of_step["s1"]] for each in (before, index, other)]
    assert found == [[1, 2], [1, 2, 3], [1, 2, 4]]
    assert [entry.seq for entry in reversed(before.of_step["s1"])] == [2, 1]


def test_one_more_entry_of_a_step_copies_none_of_those_that_came_before_it() -> None:
    index = Index()
    for seq in range(1, 3_001):
        index.add(_attempt(seq, "s1", "c1", Status.OK))
    needed = []
    for seq in range(3_001, 3_006):
        entry = _attempt(seq, "s1", "c1", Status.OK)
        tracemalloc.start()
        try:
            index.add(entry)
            needed.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert min(needed) < 3_000  # bytes; the list itself grows now and then
