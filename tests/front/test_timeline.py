"""The timeline of the panel: what ran when, and when a kernel died."""

import pytest

from keel_notebook.core.model import Status
from keel_notebook.core.ports import RunEnd
from keel_notebook.front.lineage import death_before, timeline_view

from .conftest import T0, Story


@pytest.mark.parametrize(
    ("seen_after", "at", "until"),
    [(3600.0, T0 + 3600, T0 + 3700), (0.0, T0 + 10, T0 + 3700)],
    ids=["it looked at itself while the step ran", "it was never seen but by what it wrote"],
)
def test_a_death_is_where_the_kernel_was_last_seen_and_the_next_one_bounds_it(seen_after, at, until):
    story = Story().run(RunEnd.DIED, seen_at=T0 + seen_after if seen_after else 0.0)
    story.step("fit", Status.RUNNING)
    assert timeline_view(story.records, most=9, now=T0 + 3650)["deaths"] == [{"run": 1, "at": at, "until": None}]
    story.now = T0 + 3700
    story.run(RunEnd.OPEN).step("fit")
    line = timeline_view(story.records, most=9, now=T0 + 9000)
    assert line["deaths"] == [{"run": 1, "at": at, "until": until}]
    assert [(one["end"], one["until"]) for one in line["attempts"]] == [("died", at), ("ok", None)]
    assert death_before(story.records, 2)["ended_at"] == at
