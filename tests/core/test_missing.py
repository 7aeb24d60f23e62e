"""Which cells have to run to bring back what no record holds, and from which values (`%keel restore --run`)."""

import pytest
from msgspec.structs import replace

from keel_notebook.core.auto import AUTO
from keel_notebook.core.missing import to_run
from keel_notebook.core.model import (
    Blob,
    Digest,
    Effect,
    Entry,
    FlowId,
    Input,
    Kind,
    NotStored,
    Payload,
    Status,
    Write,
    entry_id,
)
from keel_notebook.core.redact import HIDDEN

HELD = Payload(Blob(1, b"x"))


class Story:
    """Entries of one flow, written cell by cell."""

    def __init__(self):
        self.entries = []

    def cell(self, reads="", holds="", lost="", *, step="", source="pass", auto=True):
        seq = len(self.entries) + 1
        entry = Entry(
            entry_id(1, seq),
            FlowId("f"),
            1,
            seq,
            step,
            Kind.STEP if step else Kind.PLAIN,
            Status.OK,
            occurrence=seq,
            source=source,
            inputs=tuple(Input(name, Digest("0a") if step else None) for name in reads.split()),
            writes=tuple(Write(name, None, "", 0) for name in holds.split()),
            not_stored=tuple(NotStored(name, "", "large") for name in lost.split()),
            payload=HELD if holds and (step or auto) else None,
            ambient={AUTO: {}} if auto and not step else {},
        )
        self.entries.append(entry)
        return entry

    def to_run(self, *lost):
        return [
            (cell.cell, {name: e.seq for name, e in cell.start.items()})
            for cell in to_run(self.entries, self.entries, lost)
        ]


def test_a_cell_starts_from_the_values_that_it_had():
    story = Story()
    story.cell(holds="n")
    story.cell("n", lost="frame")
    story.cell("n", holds="n")
    assert story.to_run("frame") == [("cell In[2]", {"n": 1})]


def test_a_chain_of_large_values_runs_from_where_it_starts_and_in_order():
    story = Story()
    story.cell(holds="n", step="load")
    story.cell("n", lost="frame")
    story.cell("frame", lost="frame")
    story.cell("frame", holds="total", step="sum")
    assert story.to_run("frame") == [("cell In[2]", {"n": 1}), ("cell In[3]", {})]


def test_cells_that_nothing_missing_needs_do_not_run():
    story = Story()
    story.cell(holds="a", step="a")
    story.cell(lost="con")
    story.cell("a", lost="other")
    assert story.to_run("con") == [("cell In[2]", {})]
    assert story.to_run() == []
    assert story.to_run("nobody") == []


def test_plain_cells_without_a_record_run_and_what_they_only_define_need_not():
    story = Story()
    story.cell(holds="np f", source="import numpy as np\ndef f(): pass", auto=False)
    story.cell(holds="n", source="n = 3", auto=False)
    story.cell("np f n", holds="x", source="x = f(n)", auto=False)
    assert story.to_run("x") == [("cell In[2]", {}), ("cell In[3]", {})]


def by_hand(story, name):
    return [cell.by_hand for cell in to_run(story.entries, story.entries, [name])]


def test_a_text_that_was_not_kept_whole_is_not_run():
    story = Story()
    story.cell(lost="con", source=f"con = connect(password={HIDDEN})")
    assert by_hand(story, "con") == ["holds a secret, and its text was not kept whole"]


def test_what_must_not_happen_twice_is_left_to_a_person():
    story = Story()
    sent = story.cell(lost="con", step="send")
    story.entries[0] = replace(sent, effect=Effect.EXACTLY_ONCE)
    assert by_hand(story, "con") == ["has an effect that must not happen twice"]


@pytest.mark.parametrize("step", ["cell-1", "abcdefabcdef#2"])
def test_a_cell_that_makes_durable_calls_is_left_to_a_person(step):
    story = Story()
    made = story.cell(lost="con")
    story.entries[0] = replace(made, key="cell-1", code=Digest("abcdefabcdef0123"))
    assert by_hand(story, "con") == [""]
    story.entries.append(
        replace(made, entry=entry_id(1, 9), seq=9, step=step, kind=Kind.CALL, not_stored=(), ambient={})
    )
    assert by_hand(story, "con") == ["makes durable calls"]


@pytest.mark.parametrize(
    ("read", "runs"),
    [
        (Input("gen", None, producer="step mk"), True),
        (Input("gen", Digest("origin:1"), True, producer="step mk"), True),
        (Input("gen", Digest("origin:1"), True, producer="cell In[1]"), False),
        (Input("gen", Digest("0a"), True, producer="step mk"), False),
        (Input("n", Digest("0a")), False),
    ],
)
def test_what_may_have_changed_a_thing_that_is_made_anew_runs_below_it(read, runs):
    story = Story()
    story.cell(lost="gen", step="mk")
    story.cell(holds="n", step="other")
    used = story.cell(holds="first", step="use")
    story.entries[-1] = replace(used, inputs=(read,))
    assert [cell for cell, _ in story.to_run("gen")] == ["step mk", *(["step use"] if runs else [])]


def test_what_reads_a_later_thing_of_the_same_name_does_not_run():
    story = Story()
    story.cell(lost="gen other", step="mk")
    used = story.cell("gen", holds="first", step="use")
    story.entries[-1] = replace(used, inputs=(Input("gen", None),))
    story.cell(holds="gen", step="bound")
    later = story.cell("gen", holds="last", step="later")
    story.entries[-1] = replace(later, inputs=(Input("gen", None),))
    assert [cell for cell, _ in story.to_run("other")] == ["step mk", "step use"]
