"""``why``: one sentence first, then everything that stands behind it."""

import json

import pytest
from msgspec.structs import replace

from keel_notebook.core.decide import Difference, Part
from keel_notebook.core.done import StepDone
from keel_notebook.core.model import Input, Kind, NotStored, Status
from keel_notebook.core.ports import RunEnd
from keel_notebook.core.why import why
from keel_notebook.errors import UnknownNameError

from .conftest import T0


def clock(at):
    return f"{at - T0:.0f} s"


def ask(story, step="fit", done=None, **more):
    return why(step, story.records, {d.step: d for d in done or ()}, when=clock, **more)


SEVEN = Difference(Part.INPUT, "a", "7", "9")


def executed(entry, *differs, **facts):
    return StepDone(entry.step, "executed", entry.entry, differs=differs, took_s=1.0, source=entry.source, **facts)


def test_a_changed_input_is_named_with_both_values_and_its_maker(story):
    story.run().step("fit", reads={"a": "d7"})
    new = story.run(RunEnd.OPEN).step("fit", reads={"a": "d9"})
    current = (Input("a", "d9", preview="9", producer="cell 2"),)
    found = ask(story, done=[executed(new, SEVEN, current_inputs=current)])
    assert found.sentence == "fit executed: input a 7 -> 9 (made by cell In[2])"
    [part] = found.differs
    assert (part.part, part.name, part.recorded, part.current, part.producer) == ("input", "a", "7", "9", "cell In[2]")
    [pair] = found.inputs
    assert (pair.recorded, pair.current, pair.same, pair.producer) == ("a was d7", "9", False, "cell In[2]")
    assert found.record == story.entries[0].entry


def test_a_replay_names_its_run_and_time(three_steps):
    found = ask(three_steps, "load")
    assert found.sentence == "load replayed: code and inputs are those of run 1, 620 s"
    assert found.decision == "replayed"
    assert "it took 10 min when it was executed and 20 ms to put back" in found.notes


def test_the_first_time_there_was_nothing_to_replay(story):
    new = story.run(RunEnd.OPEN).step("fit", why="there is no record of it")
    assert ask(story).sentence == "fit executed: there is no record of it"
    assert ask(story, done=[executed(new, why="there is no record of it")]).sentence.endswith("no record of it")


def test_an_edit_shows_the_diff_of_the_cell(story):
    story.run().step("fit", source="%%keel_step fit\na = 1\nb = 2")
    new = story.run(RunEnd.OPEN).step("fit", source="%%keel_step fit\na = 1\nb = 3")
    found = ask(story, done=[executed(new, Difference(Part.CODE, detail="changed"))])
    assert found.sentence == "fit executed: code changed"
    assert {"-b = 2", "+b = 3"} <= set(found.diff)
    assert not found.format_only


@pytest.mark.parametrize("current", ["# said\na=1 ;  b = (2)", "a = 1\n\nb = 2  # same"])
def test_c27_only_formatting_differs_and_that_is_said(story, current):
    old = story.run().step("fit", source="%%keel_step fit\na = 1\nb = 2")
    story.run(RunEnd.OPEN)
    done = StepDone("fit", "replayed", old.entry, source="%%keel_step fit --ttl 2h\n" + current)
    found = ask(story, done=[done])
    assert found.diff
    assert found.format_only


@pytest.mark.parametrize("current", ["a = 1.0", "a = True", "a = 1;", "%time a = 1", "a = '1'"])
def test_c27_what_is_not_the_same_code_is_not_called_formatting(story, current):
    old = story.run().step("fit", source="a = 1")
    done = StepDone("fit", "replayed", old.entry, source=current)
    assert not ask(story, done=[done]).format_only


def test_a_refusal_names_its_code_and_compares_what_is_there_now(story):
    story.run().step("fit", reads={"a": "d7"})
    story.run(RunEnd.OPEN)
    current = (Input("a", "d9", preview="9"),)
    story.decided("fit", "refused", refusal="E031", differs=(SEVEN,), current_inputs=current, source="fit(2)")
    found = ask(story)  # from the marker: what the command line sees
    assert found.sentence == "fit was refused: input a 7 -> 9 (KEEL-E031)"
    assert found.inputs[0].same is False
    assert "+fit(2)" in found.diff


@pytest.mark.parametrize(
    ("status", "end", "said"),
    [
        (Status.FAILED, "failed", "fit executed and failed with ValueError: it failed"),
        (Status.INTERRUPTED, "interrupted", "fit executed and was interrupted: it failed"),
        (Status.RUNNING, "running", "fit executes: it failed"),
    ],
)
def test_how_an_attempt_of_this_run_ended_is_in_the_sentence(story, status, end, said):
    story.run(RunEnd.OPEN).step("fit", status, why="it failed")
    found = ask(story)
    assert found.sentence == said
    assert found.attempts[0].end == end


def test_a_step_that_has_not_run_yet_says_where_its_record_is(story):
    story.run().step("fit")
    story.run(RunEnd.OPEN)
    assert ask(story).sentence == "fit has not run in run 2; its record is of run 1, 70 s"


@pytest.mark.parametrize(
    ("end", "said"), [(RunEnd.DIED, "died"), (RunEnd.VANISHED, "vanished"), (RunEnd.ASKED, "stopped")]
)
def test_attempts_that_never_ended_say_how_their_kernel_did(story, end, said):
    story.run(end, rss=16 * 10**9).step("fit", Status.RUNNING)
    story.run(RunEnd.OPEN)
    found = ask(story)
    assert found.attempts[0].end == said
    assert found.sentence == "fit did not end: its kernel went away"
    assert found.deaths == (1 if end == RunEnd.DIED else 0)
    assert any("memory last seen 16 GB" in note for note in found.notes) == (end == RunEnd.DIED)


def test_c58_what_was_not_stored_is_said_with_its_reason(story):
    lost = NotStored("conn", "sqlite3.Connection", "lives in one process")
    story.run(RunEnd.OPEN).step("fit", not_stored=(lost,))
    assert ask(story).not_stored == (lost,)


def test_weak_inputs_and_outside_reach_are_said(story):
    weak = Input("client", "d", weak=True, type="openai.Client")
    made = story.run().step("fit", ambient={"saw": ["network"]})
    story.entries[-1] = replace(made, inputs=(weak,))
    found = ask(story)
    assert found.inputs[0].weak
    assert any("network" in note for note in found.notes)


def test_a_record_by_a_persons_word_is_marked_so(story):
    story.run(RunEnd.OPEN).step("fit", kind=Kind.ACCEPT)
    assert any("accepted by a person" in note for note in ask(story).notes)
    assert ask(story).attempts[0].end == "accept"


def test_an_unknown_step_says_what_may_have_been_meant(three_steps):
    with pytest.raises(UnknownNameError, match=r"KEEL-E002: step fitt is not known here; did you mean fit\?"):
        ask(three_steps, "fitt")
    with pytest.raises(UnknownNameError, match="known: fit, load, plot"):
        ask(three_steps, "zzz")


def test_the_whole_report_is_json(three_steps):
    found = json.loads(json.dumps(ask(three_steps, "fit").to_dict()))
    assert found["step"] == "fit"
    assert isinstance(found["inputs"][0], dict)
    assert [pair["name"] for pair in found["inputs"]] == ["cutoff", "df"]
