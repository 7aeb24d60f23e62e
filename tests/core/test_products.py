"""What steps below left in files: only what is surely below vouches for a changed product (DESIGN 6, Files)."""

import pytest

from keel_notebook.core.decide import ABSENT, Facts, changed_products, differences
from keel_notebook.core.model import Entry, FileSeen, Kind, Status, entry_id
from keel_notebook.core.products import left_below


def entry(step, run, seq, *files, kind=Kind.STEP, status=Status.OK):
    return Entry(
        entry=entry_id(run, seq),
        flow="f",
        run=run,
        seq=seq,
        step=step,
        kind=kind,
        status=status,
        code="c",
        files=tuple(FileSeen(*each) for each in files),
    )


MAKE = entry("make", 1, 1, ("x", "write", "d1"))
BELOW = entry("below", 1, 2, ("x", "found", "d1"), ("x", "write", "d2"))


def met(step, run, seq):
    return entry(step, run, seq, kind=Kind.MARKER)


@pytest.mark.parametrize(
    ("story", "run", "left"),
    [
        ([MAKE, BELOW], 2, {"x": {"d2"}}),
        ([MAKE, BELOW], 1, {"x": {"d2"}}),
        ([BELOW, entry("make", 1, 3, ("x", "write", "d1"))], 2, {}),  # it was above
        ([MAKE, BELOW, met("below", 2, 1)], 2, {}),  # in this kernel it came first
        ([MAKE, BELOW, met("make", 2, 1), met("below", 2, 2)], 2, {"x": {"d2"}}),
        ([MAKE, BELOW, met("below", 2, 1), met("make", 2, 2)], 3, {}),  # the cells were moved
        ([MAKE, entry("below", 2, 1, ("x", "write", "d2"))], 3, {}),  # never met in one run
        ([MAKE, BELOW, met("make", 2, 1), entry("below", 2, 2, ("x", "write", "d3"))], 3, {"x": {"d3"}}),
        ([MAKE, entry("below", 1, 2, ("x", "write", "d2"), status=Status.FAILED)], 2, {}),
        ([entry("make", 1, 1, ("x", "read", "d1")), BELOW], 2, {}),  # what was only read is no product
    ],
)
def test_what_steps_below_left(story, run, left):
    mine = [each for each in story if each.step == "make" and each.kind is Kind.STEP]
    assert left_below(mine, story, "make", run=run) == left


@pytest.mark.parametrize(
    ("files", "now", "below", "said"),
    [
        ([("x", "write", "d1")], "d1", (), []),
        ([("x", "write", "d1")], "d9", (), []),
        ([("x", "write", "d1")], None, (), []),
        ([("x", "write", "d1")], ABSENT, (), ["file x is missing"]),
        ([("x", "write", "d1")], ABSENT, (ABSENT,), []),
        ([("x", "write", ABSENT)], "d9", (), []),
        ([("x", "found", "d0"), ("x", "write", "d1")], "d0", (), []),
        ([("x", "found", "d0"), ("x", "write", "d1")], "d1", (), []),
        ([("x", "found", "d0"), ("x", "write", "d1")], "d2", ("d2",), []),
        ([("x", "found", "d0"), ("x", "write", "d1")], "d2", (), ["file x changed"]),
        ([("x", "found", None), ("x", "write", "d1")], "d1", (), []),
        ([("x", "found", None), ("x", "write", None)], None, (), ["file x cannot be read"]),
        ([("x", "read", "d1")], "d2", ("d2",), ["file x changed"]),
        ([("x", "makes", "d1")], "d2", ("d2",), ["file x changed"]),
        ([("x", "read", None)], "d1", (), ["file x was changed while the step ran, or cannot be compared"]),
        ([("x", "absent", ABSENT)], "d1", (), ["file x is there now"]),
        ([("x", "append", None)], "d1", (), []),
    ],
)
def test_when_a_file_is_a_difference(files, now, below, said):
    record = entry("make", 1, 1, *files)
    facts = Facts(name="make", code="c", inputs={}, files={"x": now}, left={"x": frozenset(below)})
    assert [str(each) for each in differences(facts, record, now=0.0)] == said


def test_listings_and_patterns_are_asked_for_apart_from_content():
    record = entry("s", 1, 1, ("d", "list", "names"), ("d", "read", "all"), ("d/*", "glob", "some"))
    facts = Facts(name="s", code="c", inputs={}, files={"list d": "names", "d": "all", "glob d/*": "more"})
    assert [str(each) for each in differences(facts, record, now=0.0)] == ["file d/* matches other files"]


def test_a_changed_product_is_named():
    record = entry("make", 1, 1, ("x", "write", "d1"), ("y", "write", "d1"), ("z", "write", "d1"))
    facts = Facts(
        name="make", code="c", inputs={}, files={"x": "d2", "y": "d1", "z": "d3"}, left={"z": frozenset({"d3"})}
    )
    assert changed_products(facts, record) == ["x"]
