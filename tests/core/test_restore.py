"""What comes back without running a cell, and what does not (DESIGN 5, Restore)."""

import itertools

from msgspec.structs import replace

from keel_notebook.core.done import DECISION
from keel_notebook.core.dotted import PATCHED
from keel_notebook.core.model import Blob, Entry, Kind, NotStored, Payload, Status, Write, entry_id
from keel_notebook.core.restore import SUSPECTS, asked_for, definitions_in, holdings, steps_back

_SEQ = itertools.count(1)


def entry(
    kind=Kind.STEP,
    *,
    run=1,
    step="",
    source="",
    writes=(),
    deleted=(),
    not_stored=(),
    ambient=None,
    occurrence=0,
    key="",
):
    return Entry(
        entry=entry_id(run, next(_SEQ)),
        flow="f",
        run=run,
        seq=next(_SEQ),
        step=step,
        kind=kind,
        status=Status.OK,
        source=source,
        writes=tuple(Write(n, "d", "int", 1) for n in writes),
        deleted=deleted,
        ambient=ambient or {},
        payload=Payload(Blob(0, b"")),
        not_stored=tuple(NotStored(n, "t", "why") for n in not_stored),
        occurrence=occurrence,
        key=key,
    )


def plain(source, writes=(), suspects=(), occurrence=2):
    return entry(Kind.PLAIN, source=source, writes=writes, ambient={SUSPECTS: list(suspects)}, occurrence=occurrence)


def test_a_name_comes_from_the_last_step_that_bound_it():
    first, second = entry(step="a", writes=["x", "y"]), entry(step="b", writes=["x"])
    found = holdings([first, second])
    assert found.held == {"x": second, "y": first}
    assert found.lost == ()


def test_a_name_that_a_plain_cell_bound_since_is_named_with_its_cell():
    found = holdings([entry(step="a", writes=["x"]), plain("x = 1", ["x"], occurrence=7)])
    assert found.held == {}
    assert [(lost.name, lost.reason) for lost in found.lost] == [("x", "run cell 7")]


def test_a_name_that_a_plain_cell_may_have_changed_does_not_come_back_older_than_it_was():
    found = holdings([entry(step="load", writes=["df"]), plain("df['y'] = 1", suspects=["df"], occurrence=3)])
    assert found.held == {}
    assert [(lost.name, lost.reason) for lost in found.lost] == [("df", "run cell 3")]


def test_a_replay_binds_again_what_the_record_holds():
    step = entry(step="a", writes=["x"])
    replay = entry(Kind.MARKER, run=2, step="a", key=DECISION, ambient={"decision": "replayed", "entry": step.entry})
    assert holdings([step, plain("x = 1", ["x"]), replay]).held == {"x": step}


def test_imports_functions_and_classes_of_plain_cells_are_defined_and_nothing_else_of_them():
    source = "import numpy as np\nfrom math import *\nn = 5\ndef f(): return n\nclass A: pass\nprint(n)"
    found = holdings([plain(source, ["np", "n", "f", "A"])])
    texts = [text for _, text in found.definitions]
    assert texts == ["import numpy as np", "from math import *", "def f():\n    return n", "class A:\n    pass"]
    assert [lost.name for lost in found.lost] == ["n"]


def test_a_definition_whose_text_was_not_kept_whole_is_not_defined():
    assert definitions_in("def f(): return '…'\nimport os") == ["import os"]


def test_what_could_not_be_stored_is_named_with_its_step():
    found = holdings([entry(step="db", writes=["n"], not_stored=["con"])])
    assert [(lost.name, lost.reason) for lost in found.lost] == [("con", "run step db: why")]


def test_a_name_that_is_there_now_is_left_alone_unless_it_is_asked_for():
    found = holdings([entry(step="a", writes=["x", "y"])])
    assert asked_for(found, [], ["x"]) == ("y",)
    assert asked_for(found, ["x"], ["x"]) == ("x",)


def test_what_a_resource_makes_is_named_with_its_step():
    found = holdings([replace(entry(step="db", writes=["con"]), payload=None)])
    assert [(lost.name, lost.reason) for lost in found.lost] == [("con", "run step db: a resource is never stored")]


def test_a_name_asked_for_comes_back_although_a_plain_cell_bound_it_since():
    found = holdings([entry(step="a", writes=["x"]), plain("x = 7", ["x"])])
    assert asked_for(found, [], []) == ()
    assert asked_for(found, ["x"], ["x"]) == ("x",)


def test_a_class_whose_attributes_a_step_changed_comes_back_from_the_step_that_made_it():
    made = entry(step="a", writes=["K", "o"])
    changed = entry(step="b", writes=["K.n", "K"], ambient={PATCHED: ["K"]})
    found = holdings([made, changed])
    assert found.held == {"K": made, "o": made, "K.n": changed}
    assert found.order == (made, changed)


def test_a_step_is_back_where_all_that_it_left_is_there_or_was_made_anew_by_a_later_step():
    load, fit, show = entry(step="load", writes=["x", "y"]), entry(step="fit", writes=["y"]), entry(step="show")
    found = holdings([load, fit, show])
    assert steps_back(found, {"x", "y"}) == {"load": load.entry, "fit": fit.entry, "show": show.entry}
    assert steps_back(found, {"y"}) == {"fit": fit.entry, "show": show.entry}


def test_a_step_whose_name_a_plain_cell_changed_since_is_not_back():
    found = holdings([entry(step="load", writes=["x"]), plain("x = 1", ["x"])])
    assert steps_back(found, {"x"}) == {}


def test_a_step_whose_values_are_not_held_is_not_back():
    found = holdings([replace(entry(step="connect", writes=["db"]), payload=None)])
    assert steps_back(found, {"db"}) == {}
