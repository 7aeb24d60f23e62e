"""What steps below left in files: only what is surely below vouches for a changed product (DESIGN 6, Files)."""

import pytest

from keel_notebook.core.decide import Facts, differences
from keel_notebook.core.fileholds import ABSENT, FilesNow, Later, changed_products
from keel_notebook.core.model import Entry, FileSeen, Kind, Status, entry_id
from keel_notebook.core.products import left_by_others, unsettled
from keel_notebook.core.rewritten import Rewritten


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
    below, _ = left_by_others(mine, story, "make", run=run)
    assert {path: {each.left for each in later} for path, later in below.items()} == left


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
    facts = Facts(
        name="make", code="c", inputs={}, files=FilesNow({"x": now}, {"x": [Later("up", each) for each in below]})
    )
    assert [str(each) for each in differences(facts, record, now=0.0)] == said


def test_listings_and_patterns_are_asked_for_apart_from_content():
    record = entry("s", 1, 1, ("d", "list", "names"), ("d", "read", "all"), ("d/*", "glob", "some"))
    facts = Facts(name="s", code="c", inputs={}, files=FilesNow({"list d": "names", "d": "all", "glob d/*": "more"}))
    assert [str(each) for each in differences(facts, record, now=0.0)] == ["file d/* matches other files"]


def test_a_changed_product_is_named():
    record = entry("make", 1, 1, ("x", "write", "d1"), ("y", "write", "d1"), ("z", "write", "d1"))
    files = FilesNow({"x": "d2", "y": "d1", "z": "d3"}, {"z": [Later("up", "d3")]})
    assert changed_products(files, record) == ["x"]


BY_PLAIN, BY_STEP = Rewritten("cell 3", anew=True), Rewritten("step up")
ONLY_TOUCHED = Rewritten("cell 3", surely=False)
LOGGED, UNTOLD = Rewritten("cell 3", appended=True), Rewritten("cell 3")
HERE = "file x was changed by cell 3 since"


@pytest.mark.parametrize(
    ("files", "now", "by", "said"),
    [
        ([("x", "write", "d1")], "d9", BY_PLAIN, HERE),
        ([("x", "write", "d1")], "d9", ONLY_TOUCHED, HERE),
        ([("x", "write", "d1")], None, BY_PLAIN, HERE),
        ([("x", "write", "d1")], "d1", BY_PLAIN, ""),
        ([("x", "write", "d1")], "d2", BY_STEP, ""),  # the step below left that
        ([("x", "write", "d1")], "d2", BY_PLAIN, HERE),  # a plain cell wrote the same
        ([("x", "write", "d1")], "d3", None, "file x holds what make left"),  # in another state
        ([("x", "write", ABSENT)], "d9", BY_PLAIN, HERE),
        ([("x", "found", "d0"), ("x", "write", "d1")], "d0", BY_PLAIN, HERE),
        ([("x", "found", "d0"), ("x", "write", "d1")], "d1", BY_PLAIN, HERE),  # equal is not applied
        ([("x", "found", "d0"), ("x", "write", "d1")], "d1", ONLY_TOUCHED, ""),
        ([("x", "found", "d0"), ("x", "write", "d1")], "d2", BY_STEP, ""),
        ([("x", "append", "d1", (3, 7))], None, None, ""),
        ([("x", "append", "d1", (3, 7))], None, BY_PLAIN, HERE),
        ([("x", "append", "d1", (3, 7))], "d1", LOGGED, ""),  # what it appended still stands there
        ([("x", "append", "d1", (3, 7))], None, LOGGED, ""),  # somebody rotated it, and others append to the new one
        ([("x", "left", "d1")], "d9", None, ""),
        ([("x", "left", "d1")], "d9", BY_PLAIN, HERE),
        ([("x", "left", None)], None, BY_PLAIN, HERE),
        ([("x", "base", None)], None, BY_PLAIN, HERE),
        ([("x", "append", "d1", (3, 7))], None, UNTOLD, HERE),
        ([("x", "base", None)], None, UNTOLD, ""),  # others insert as well
        ([("x", "read", "d1")], "d1", BY_PLAIN, ""),
    ],
)
def test_what_a_cell_of_this_kernel_did_to_a_product(files, now, by, said):
    record = entry("make", 1, 1, *files)
    asked = {seen.asked: now for seen in record.files}
    seen = FilesNow(asked, {"x": [Later("up", "d2")]}, {"x": {"d3": "make"}}, {"x": by} if by else {})
    facts = Facts(name="make", code="c", inputs={}, files=seen)
    assert "; ".join(str(each) for each in differences(facts, record, now=0.0)) == said


def test_what_other_records_left_is_known_by_their_steps():
    story = [entry("above", 1, 1, ("x", "write", "d7")), MAKE, BELOW, entry("make", 1, 9, ("x", "write", "d4"))]
    _, elsewhere = left_by_others(story[1:2], story, "make", run=2)
    assert elsewhere == {"x": {"d7": "above", "d1": "make", "d2": "below", "d4": "make"}}


DIED = entry("below", 2, 1, status=Status.RUNNING)


@pytest.mark.parametrize(
    ("story", "half"),
    [
        ([MAKE, BELOW], False),
        ([MAKE, BELOW, DIED], True),
        ([MAKE, entry("below", 2, 1, status=Status.FAILED)], True),
        ([MAKE, DIED, entry("below", 2, 2)], False),  # it ran again since
        ([entry("below", 1, 0, status=Status.FAILED), MAKE], False),  # that was before
    ],
)
@pytest.mark.parametrize(("now", "said"), [("d9", True), ("d1", False), ("d2", False)])
def test_a_product_that_changed_while_a_step_did_not_end_well_is_made_again(story, half, now, said):
    below, elsewhere = {"x": [Later("up", "d2")]}, {"x": {"d1": "make"}}
    files = FilesNow({"x": now}, below, elsewhere, unsettled=unsettled([MAKE], story))
    found = differences(Facts(name="make", code="c", inputs={}, files=files), MAKE, now=0.0)
    told = "file x was changed, perhaps by a step that did not end well"
    assert [str(each) for each in found] == ([told] if half and said else [])
