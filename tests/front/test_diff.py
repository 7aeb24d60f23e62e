"""``diff``: a step's record beside what it is now, inputs with types and previews, the code as a diff."""

from __future__ import annotations

import pytest

from keel_notebook.core.compare import AsItStands, compare
from keel_notebook.core.decide import Difference, Part
from keel_notebook.core.done import StepDone
from keel_notebook.core.model import Input
from keel_notebook.core.ports import RunEnd
from keel_notebook.errors import UnknownNameError
from keel_notebook.front.difference import DiffTable
from tests.support.notebook import Notebook

NOWHERE = AsItStands(None)


def test_a_step_that_executed_stands_beside_its_record_with_both_values(story):
    story.run().step("fit", source="%%keel_step fit\nb = a", reads={"a": "d7"})
    new = story.run(RunEnd.OPEN).step("fit", source="%%keel_step fit\nb = a + 1", reads={"a": "d9"})
    current = (Input("a", "d9", type="int", preview="9", producer="cell 2"),)
    differs = (Difference(Part.CODE, detail="changed"), Difference(Part.INPUT, "a", "7", "9"))
    done = {"fit": StepDone("fit", "executed", new.entry, differs=differs, source=new.source, current_inputs=current)}
    found = compare("fit", story.records, done, NOWHERE)
    (pair,) = found.inputs
    assert (pair.recorded.preview, pair.current.type, pair.current.preview) == ("a was d7", "int", "9")
    assert (pair.same, pair.producer) == (False, "cell In[2]")
    assert ("-b = a" in found.diff, "+b = a + 1" in found.diff, found.equal) == (True, True, False)
    assert found.to_dict()["inputs"][0]["current"] == {"type": "int", "preview": "9"}
    page = DiffTable(found)
    assert "executed in this run" in str(page)
    assert "b = a + 1" in page._repr_html_()


def test_a_step_that_has_not_run_is_compared_as_it_stands(story):
    story.run().step("fit", source="%%keel_step fit\nb = a", reads={"a": "d7"})
    story.run(RunEnd.OPEN).step("other")
    now = AsItStands("%%keel_step fit --ttl 1h\nb = a  # same", lambda _: [Input("a", "d7", preview="7")])
    found = compare("fit", story.records, {}, now)
    assert (found.equal, found.format_only, found.current) == (True, True, "as it stands, not run yet")
    now = AsItStands("%%keel_step fit\nb = a * 2", lambda _: [Input("a", None, type="Client")])
    found = compare("fit", story.records, {}, now)
    assert found.inputs[0].same is None, "unknown is never equal"
    assert not found.equal
    assert "not known" in str(DiffTable(found))


def test_a_step_without_a_record_has_nothing_to_compare_with(story):
    new = story.run(RunEnd.OPEN).step("fit")
    done = {"fit": StepDone("fit", "executed", new.entry, why="there is no record of it", source=new.source)}
    assert "nothing to compare with" in str(DiffTable(compare("fit", story.records, done, NOWHERE)))
    with pytest.raises(UnknownNameError):
        compare("nope", story.records, done, NOWHERE)


CELLS = """
rate = 2
# ---
def scale(v):
    return v * rate
# ---
%%keel_step fit
b = scale(3)
"""


@pytest.mark.kernel
def test_diff_before_and_after_the_step_runs_in_a_real_kernel(tmp_path):
    book = Notebook(tmp_path, CELLS)
    try:
        book.run_all()
        assert "nothing to compare with" in book.execute("%keel diff fit").text, "its only record is its own"
        book.rerun()
        assert "code and inputs are equal" in book.execute("%keel diff fit").text
        book.kill()
        book.edit(0, "rate = 2", "rate = 5")
        book.edit(2, "scale(3)", "scale(4)")
        book.start()
        for at in (-2, -1, 0, 1):
            book.run(at)
        said = book.execute("%keel diff fit").text
        assert "as it stands, not run yet" in said
        assert "+b = scale(4)" in said
        row = next(line for line in said.splitlines() if line.startswith("rate"))
        assert row.split()[:6] == ["rate", "int", "2", "int", "5", "differs"]
        book.run(2)
        assert "executed in this run" in book.execute("%keel diff fit").text
    finally:
        book.close()
