"""``plan``: what Run All would do, from the records alone, and what that rests on."""

import json

import pytest

from keel_notebook.capture.files import stamp_in
from keel_notebook.core.foreseen import ComingRun
from keel_notebook.core.lifecycle import FORGET, RERUN
from keel_notebook.core.model import Effect, FileSeen, Status
from keel_notebook.core.plans import Told, Wishes, notebook_cells, plan, planned_cell, recorded_cells
from keel_notebook.core.ports import RunEnd
from keel_notebook.front.filelook import looker


def cells(*sources):
    return [planned_cell(at, source) for at, source in enumerate(sources, 1)]


def planned(story, *sources, now=None):
    return plan(cells(*sources), story.records, now=story.now if now is None else now)


def actions(story, *sources, **more):
    return [str(row.action) for row in planned(story, *sources, **more).rows]


LOAD = "%%keel_step load\ndf = read()"
CLEAN = "%%keel_step clean\ndf = df.dropna()"
FIT = "%%keel_step fit\nmodel = train(df)"
PLOT = "%%keel_step plot\nplot(model)"


@pytest.fixture
def recorded(story):
    """A notebook that ran to its end: import, load, clean, a plain cell, fit, plot."""
    story.run(RunEnd.CLEAN)
    story.plain("import pandas as pd")
    story.step("load", source=LOAD, writes={"df": "d1"}, took=600.0)
    story.step("clean", source=CLEAN, reads={"df": "d1"}, writes={"df": "d2"})
    story.plain("n = len(df)")
    story.step("fit", source=FIT, reads={"df": "d2", "n": "n1"}, writes={"model": "m1"}, took=7200.0)
    story.step("plot", source=PLOT, reads={"model": "m1"})
    return story


ALL = ("import pandas as pd", LOAD, CLEAN, "n = len(df)", FIT, PLOT)


def edited(cell, new):
    return tuple(new if source == cell else source for source in ALL)


def test_an_unchanged_notebook_replays_and_says_what_that_rests_on(recorded):
    found = planned(recorded, *ALL)
    assert [str(row.action) for row in found.rows] == ["runs", "replays", "replays", "runs", "replays", "replays"]
    assert found.rows[1].why == "code and inputs are those of run 1"
    assert found.assumptions == ("plain cells give the values that they gave in run 1",)
    assert found.replay_s == 7920.0
    assert found.execute_s == 0.0


def test_formatting_and_comments_change_nothing(recorded):
    reformatted = "# keel: step load\n# read it\ndf = (read())"
    assert set(actions(recorded, *edited(LOAD, reformatted))) == {"runs", "replays"}


def test_what_is_below_an_edit_may_execute_and_says_through_whom(recorded):
    found = planned(recorded, *edited(LOAD, LOAD + ".head()"))
    assert [str(r.action) for r in found.rows][1:] == ["executes", "may execute", "runs", "may execute", "may execute"]
    assert found.rows[1].why == "code differs"
    assert found.rows[2].why == "reads df, made by load, which executes"
    assert found.rows[4].why == "reads df, made by clean, which may execute"
    assert found.rows[5].why == "reads model, made by fit, which may execute"
    assert found.execute_s == 600.0


def test_a_step_that_replays_settles_what_it_writes(recorded):
    fresh = "%%keel_step clean\ndf = 7"
    recorded.step("clean", source=fresh, writes={"df": "d2"})
    found = actions(recorded, *edited(CLEAN, fresh), FIT)
    assert found[2:] == ["replays", "runs", "replays", "replays", "replays"]
    edit_above = [LOAD + ".head()", fresh, FIT]
    assert actions(recorded, *edit_above) == ["executes", "replays", "replays"]


def test_a_changed_value_goes_through_plain_cells_and_the_functions_that_they_call(recorded):
    recorded.plain("def half():\n    return df / 2")
    recorded.plain("x = half()")
    use = "%%keel_step use\ny = x"
    recorded.step("use", source=use, reads={"x": "x1"})
    found = planned(recorded, "def half():\n    return df / 2", LOAD + "!", "x = half()", use)
    assert str(found.rows[1].action) == "executes"
    assert found.rows[2].why == "a plain cell; it reads df, made by load, which executes"
    assert found.rows[3].why.startswith("reads x, made by cell 3, which reads df, made by load")


def test_an_edited_plain_cell_makes_its_readers_uncertain(recorded):
    found = planned(recorded, *edited("n = len(df)", "n = 3"))
    assert [str(row.action) for row in found.rows][3:] == ["runs", "may execute", "may execute"]
    assert found.rows[4].why == "reads n, made by cell 4, which is new or edited"
    assert "new and edited plain cells change only the names that they bind" in found.assumptions


def test_a_plain_cell_that_only_reads_makes_nothing_uncertain(recorded):
    assert actions(recorded, *ALL[:3], "df.head()", *ALL[3:])[3:] == ["runs", "runs", "replays", "replays"]


def test_a_plain_cell_that_nobody_can_read_is_an_assumption(recorded):
    found = planned(recorded, "files = !ls", *ALL)
    assert "cell 1, which is not plain Python, changes nothing that a step reads" in found.assumptions


@pytest.mark.parametrize(
    ("bind", "names"),
    [
        ("df['n'] = 1", {"df"}),
        ("df.loc[0].x = 1", {"df"}),
        ("df += 1", {"df"}),
        ("for df in rows: pass", {"df"}),
        ("with open(p) as df: pass", {"df"}),
        ("import pandas as df", {"df"}),
        ("import df.inner", {"df"}),
        ("def df(): x = 1", {"df"}),
        ("del df", {"df"}),
        ("(df, [y, *z]) = t", {"df", "y", "z"}),
        ("[df for df in rows]", set()),
        ("lambda df: df", set()),
        ("%time df = 1", set()),
    ],
)
def test_what_a_plain_cell_binds(bind, names):
    from keel_notebook.core.sources import names_in

    assert names_in(bind).binds == names


def test_there_is_no_record_yet(story):
    found = planned(story, LOAD)
    assert (str(found.rows[0].action), found.rows[0].why) == ("executes", "there is no record of it")
    assert found.assumptions == ()


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (Status.FAILED, "it failed last time (ValueError)"),
        (Status.INTERRUPTED, "it was interrupted last time"),
        (Status.RUNNING, "its kernel went away while it ran"),
    ],
)
def test_what_did_not_end_well_executes(story, status, why):
    story.run().step("load", status, source=LOAD)
    [row] = planned(story, LOAD).rows
    assert (str(row.action), row.why) == ("executes", why)


def test_a_record_survives_a_later_attempt_that_failed(recorded):
    recorded.step("load", Status.FAILED, source=LOAD + "!")
    assert actions(recorded, LOAD) == ["replays"]


def test_a_dead_step_stops_run_all(story):
    for _ in range(3):
        story.run().step("load", Status.RUNNING, source=LOAD)
    [row] = planned(story, LOAD).rows
    assert (str(row.action), row.why) == ("stops", "the kernel died 3 times in a row in it (KEEL-E032)")
    assert actions(story, "%%keel_step load --max-attempts 4\ndf = read()") == ["executes"]
    assert actions(story, LOAD + ".head()") == ["executes"]


def test_options_of_the_step_line_count(recorded):
    ttl = "%%keel_step load --ttl 1h\ndf = read()"
    assert actions(recorded, ttl, now=recorded.entries[1].ended_at + 3599) == ["replays"]
    assert actions(recorded, ttl, now=recorded.entries[1].ended_at + 3600) == ["executes"]
    assert actions(recorded, "%%keel_step load --always\ndf = read()", CLEAN) == ["executes", "replays"]
    [row] = planned(recorded, "%%keel_step load --on-divergence fail\nother()").rows
    assert (str(row.action), row.why) == ("stops", "code differs (--on-divergence fail, KEEL-E031)")
    [row] = planned(recorded, "%%keel_step load --nonsense\nother()").rows
    assert str(row.action) == "stops"
    assert "KEEL-E001" in row.why


def test_what_cannot_be_compared_executes(story):
    story.run().step("load", source=LOAD, reads={"stream": None})
    [row] = planned(story, LOAD).rows
    assert (str(row.action), row.why) == ("executes", "reads stream (int), which cannot be compared")


def test_an_older_record_counts_only_if_it_saw_nothing_of_the_world(story):
    story.run().step("load", source=LOAD, ambient={"saw": []})
    story.step("load", source=LOAD + ".head()", ambient={"saw": ["network"]})
    assert actions(story, LOAD) == ["replays"]
    story.step("load", source=LOAD)
    assert actions(story, LOAD + ".head()") == ["executes"]


def test_rejected_and_foreign_records_do_not_replay(recorded):
    load = recorded.entries[1]
    recorded.untrusted = frozenset({load.entry})
    assert actions(recorded, LOAD) == ["stops"]
    recorded.untrusted = frozenset()
    recorded.retire("load", RERUN, load)
    [row] = planned(recorded, LOAD).rows
    assert (str(row.action), row.why) == ("executes", "a rerun was asked for")
    recorded.retire("load", FORGET, load)
    assert actions(recorded, LOAD) == ["executes"]


def test_files_are_an_assumption(story):
    story.run().step("load", source=LOAD, files=(FileSeen("in.csv", "read", "f1"),))
    assert "files hold what they held when the steps were recorded" in planned(story, LOAD).assumptions


@pytest.mark.parametrize(
    ("told", "action", "why"),
    [
        (Told(""), "replays", "code and inputs are those of run 1"),
        (Told("in.csv changed since", sure=False), "may execute", "in.csv changed since"),
        (Told("in.csv is gone"), "executes", "in.csv is gone"),
        (None, "replays", "code and inputs are those of run 1"),
    ],
)
def test_a_glance_at_the_files_is_part_of_the_plan(story, told, action, why):
    story.run().step("load", source=LOAD, files=(FileSeen("in.csv", "read", "f1"),))
    found = plan(cells(LOAD), story.records, now=story.now, look=lambda _entry, _file: told)
    assert (str(found.rows[0].action), found.rows[0].why) == (action, why)
    assert bool(found.assumptions) == (told is None)


def test_a_pending_rerun_executes_and_a_pending_accept_replays(recorded):
    edits = edited(FIT, FIT + " + 1")
    wishes = Wishes(rerun={"load"}, accept={"fit"})
    found = plan(cells(*edits), recorded.records, now=recorded.now, wishes=wishes)
    rows = {row.step: (str(row.action), row.why) for row in found.rows if row.step}
    assert rows["load"] == ("executes", "a rerun was asked for")
    assert rows["clean"][0] == "may execute"
    assert rows["fit"] == ("replays", "the record of run 1 is accepted")


def test_a_pending_rerun_does_not_fire_what_must_not_happen_twice(story):
    pay = "%%keel_step pay --effect exactly_once\nsend()"
    story.run().step("pay", source=pay, effect=Effect.EXACTLY_ONCE)
    found = plan(cells(pay), story.records, now=story.now, wishes=Wishes(rerun={"pay"}))
    assert (str(found.rows[0].action), found.rows[0].why) == ("replays", "it was done, and does not happen again")


def test_what_a_glance_tells_of_each_kind_of_file(story, tmp_path):
    same, other = tmp_path / "same", tmp_path / "other"
    same.write_text("1")
    other.write_text("1")
    stamp, _ = stamp_in(str(same))
    seen = {
        ("same", "read", stamp): Told(""),
        ("same", "uses", stamp): Told(""),
        ("same", "journal", stamp): Told(""),
        ("other", "read", stamp): Told("other changed since", sure=False),
        ("other", "journal", stamp): Told("other changed since", sure=False),
        ("gone", "read", stamp): Told("gone is gone"),
        ("gone", "journal", stamp): Told("gone is gone"),
        ("same", "read", ()): None,
        ("same", "absent", ()): Told("same is there now"),
        ("gone", "absent", ()): Told(""),
        ("gone", "makes", ()): Told("gone is gone"),
        ("same", "makes", ()): Told(""),
        ("same", "list", stamp): None,
    }
    story.run().step("load", source=LOAD)
    for (path, role, known), told in seen.items():
        assert looker({}, str(tmp_path))(story.entries[0], FileSeen(path, role, "d", known)) == told, (path, role)
    wrote = [FileSeen("other", "read", "d", stamp), FileSeen("other", "write", "d", stamp)]
    story.step("log", source=LOAD, files=tuple(wrote))
    assert looker({}, str(tmp_path))(story.entries[1], wrote[0]) is None, "its own change is no news"


def test_without_the_file_the_journal_tells_the_cells(recorded):
    assert [cell.source for cell in recorded_cells(recorded.records)] == list(ALL)
    recorded.run(RunEnd.OPEN)
    recorded.plain("import pandas as pd")
    recorded.step("load", source=LOAD + ".head()", writes={"df": "d3"})
    found = recorded_cells(recorded.records)
    assert [cell.step for cell in found] == ["", "load", "clean", "", "fit", "plot"]
    assert found[1].source == LOAD + ".head()"


def test_the_cells_of_a_notebook_file():
    notebook = {
        "cells": [
            {"cell_type": "markdown", "source": "text"},
            {"cell_type": "code", "source": ["import os\n", "x = 1"], "id": "aa"},
            {"cell_type": "code", "source": LOAD, "id": "bb"},
            {"cell_type": "code", "source": "%%keel_step\ny = 1", "id": "cc"},
            {"cell_type": "code", "source": ""},
        ]
    }
    found = notebook_cells(notebook)
    assert [(cell.index, cell.step) for cell in found] == [(1, ""), (2, "load"), (3, "cc"), (4, "")]
    assert found[0].source == "import os\nx = 1"


def test_the_plan_is_json(recorded):
    found = json.loads(json.dumps(planned(recorded, *ALL, "").to_dict()))
    assert [cell["action"] for cell in found["cells"]][-2:] == ["replays", "empty"]
    assert found["execute_s"] == 0.0


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%load_ext keel_notebook\n%keel auto on", "a plain cell; it speaks to keel only"),
        ("!sleep 2", "is not saved"),
        ("found = !ls", "is not saved"),
        ("n = input('how many? ')", "is not saved"),
        ("%pip list", "is not saved"),
        ("%%bash\nls", "is not saved"),
        ("%cd data\nn = 3", "kept where it is slow"),
        ("n = 7 % 3", "kept where it is slow"),
    ],
)
def test_a_plain_cell_of_auto_mode_is_told_as_it_will_be_treated(recorded, cell, said):
    for auto in (True, False):
        (row,) = plan(cells(cell), recorded.records, now=recorded.now, run=ComingRun(auto=auto)).rows
        assert (said in row.why) is (auto or "keel only" in said), row.why
        assert row.why.count("saved") + row.why.count("kept") <= 1
        assert ("new or edited" in row.why) is ("keel only" not in said)
