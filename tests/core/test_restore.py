"""What comes back without running a cell, and what does not (DESIGN 5, Restore)."""

import itertools

import pytest
from msgspec.structs import replace

from keel_notebook.core.chain import chain, restored_marker
from keel_notebook.core.done import DECISION
from keel_notebook.core.dotted import PATCHED
from keel_notebook.core.model import Blob, Entry, Kind, NotStored, Payload, Status, Write, entry_id
from keel_notebook.core.ports import FlowRecords, RunSeen, RunStart
from keel_notebook.core.restore import SUSPECTS, asked_for, definitions_in, steps_back
from keel_notebook.core.restore import holdings as holdings_of

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


def records(entries, **ends):
    start = RunStart(1, "", 0, "", 0.0, "", "")
    return FlowRecords("f", entries, {int(run[1:]): RunSeen(start, end) for run, end in ends.items()})


def holdings(entries, **ends):
    return holdings_of(entries, chain(records(entries, **ends)))


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
    assert [(lost.name, lost.reason) for lost in found.lost] == [("x", "run cell In[7]")]


def test_a_name_that_a_plain_cell_may_have_changed_does_not_come_back_older_than_it_was():
    found = holdings([entry(step="load", writes=["df"]), plain("df['y'] = 1", suspects=["df"], occurrence=3)])
    assert found.held == {}
    assert [(lost.name, lost.reason) for lost in found.lost] == [("df", "run cell In[3]")]


def test_a_replay_binds_again_what_the_record_holds():
    step = entry(step="a", writes=["x"])
    replay = entry(Kind.MARKER, run=2, step="a", key=DECISION, ambient={"decision": "replayed", "entry": step.entry})
    assert holdings([step, plain("x = 1", ["x"]), replay], r2="clean").held == {"x": step}


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


def test_a_run_that_ended_in_order_has_what_it_had_and_nothing_of_the_runs_before():
    old, new = entry(step="a", writes=["v"]), entry(step="a", run=2, writes=["u"])
    other, again = entry(step="b", writes=["w"]), entry(step="c", writes=["x"])
    assert holdings([old, other, again, new], r1="clean", r2="clean").held == {"u": new}
    assert holdings([old, other, again, new], r1="died", r2="clean").held == {"u": new}


def test_a_run_that_died_inherits_the_cells_that_it_had_not_reached_and_not_the_old_state_of_those_that_it_ran():
    old, other = entry(step="a", writes=["v", "t"]), entry(step="b", writes=["w", "t"])
    new = entry(step="a", run=2, writes=["u", "t"])
    assert holdings([old, other, new], r2="died").held == {"u": new, "w": other, "t": other}
    assert holdings([old, other, new], r2="open").held == {"u": new, "w": other, "t": other}


def test_cells_that_a_run_jumped_over_are_there_unless_the_notebooks_file_lost_them():
    first, second, third = (entry(step=name, writes=[name]) for name in "abc")
    last = entry(step="c", run=2, writes=["c"])
    told = records([first, second, third, last], r2="died")
    assert [cell.step for cell in chain(told)] == ["a", "b", "c"]
    assert [cell.step for cell in chain(told, in_file=lambda step: step != "b")] == ["a", "c"]


def test_a_run_without_cells_is_no_run_to_go_by():
    first = entry(step="a", writes=["x"])
    said = entry(Kind.RUN, run=2)
    assert holdings([first, said], r1="clean", r2="clean").held == {"x": first}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (Status.INTERRUPTED, "it was interrupted"),
        (Status.FAILED, "it failed"),
        (Status.RUNNING, "its kernel went away while it ran"),
        (Status.INTENT, "its kernel went away while it ran"),
    ],
)
def test_a_step_that_did_not_end_well_is_listed_and_what_it_left_does_not_come_back(status, said):
    before, other = entry(step="a", writes=["x", "y"]), entry(step="b", writes=["z"])
    left = replace(entry(step="train", run=1, writes=["x"]), status=status, payload=None)
    found = holdings([before, left, other], r1="died")
    assert found.held == {"y": before, "z": other}
    assert [(lost.name, lost.reason) for lost in found.lost] == [("x", f"run step train: {said}")]
    nameless = holdings([before, replace(left, writes=()), other], r1="died")
    assert [(lost.name, lost.reason) for lost in nameless.lost] == [("step train", said)]


def test_imports_and_definitions_of_a_step_that_failed_are_there():
    left = replace(entry(step="a", writes=["np", "f", "x"]), status=Status.FAILED, payload=None)
    found = holdings([replace(left, source="%%keel_step a\nimport numpy as np\ndef f(): pass\nx = 1")])
    assert [text for _, text in found.definitions] == ["import numpy as np", "def f():\n    pass"]
    assert [lost.name for lost in found.lost] == ["x"]


def test_a_step_that_was_interrupted_in_a_new_run_has_no_older_state():
    old = entry(step="train", writes=["model"])
    left = replace(entry(step="train", run=2), status=Status.INTERRUPTED, payload=None)
    assert holdings([old, left], r2="died").held == {}


def test_a_step_that_another_kernel_runs_right_now_is_no_loss():
    running = replace(entry(step="train"), status=Status.RUNNING, payload=None)
    assert holdings([running], r1="open").lost == ()


def test_what_a_restore_put_back_is_what_its_run_has():
    step, cell = entry(step="a", writes=["x", "y"]), plain("def f(): pass\nn = 1", ["f", "n"])
    marker = restored_marker({step.entry: ["x"]}, [cell.entry], flow="f", run=2, seq=1)
    found = holdings([step, cell, marker], r1="died", r2="clean")
    assert found.held.keys() == {"x"}
    assert [text for _, text in found.definitions] == ["def f():\n    pass"]
    assert [lost.name for lost in found.lost] == ["n"]


def test_a_class_of_a_plain_cell_that_another_one_changed_is_not_defined_as_it_was_at_first():
    cell, other = plain("class K: n = 1", ["K"]), plain("K.n = 2", suspects=["K"], occurrence=5)
    found = holdings([cell, other])
    assert found.definitions == ()
    assert [(lost.name, lost.reason) for lost in found.lost] == [("K", "run cell In[2], then cell In[5]")]
