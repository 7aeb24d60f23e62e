"""The stories of this repository, and the handed ones where their folder is beside the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from keel_notebook.journal.disk import open_journal
from keel_notebook.journal.memory import MemoryFolder, MemoryJournal
from tests.conformance.interpreter import SEAL, read, stories, subset, tell

OWN = Path(__file__).parent / "stories"
HANDED = Path(__file__).resolve().parents[2].parent / "shared" / "conformance" / "scenarios"
FILES = [*stories(OWN), *(stories(HANDED) if HANDED.is_dir() else [])]


@pytest.fixture(params=["memory", "disk"])
def journal_of(request, tmp_path):
    """Opens journals on one folder, one for each kernel."""
    if request.param == "memory":
        folder = MemoryFolder()
        return lambda clock: MemoryJournal(folder, clock=clock, seal=SEAL)
    return lambda clock: open_journal(tmp_path / ".keel", clock=clock, seal=SEAL, notebook="", cwd="", rest_s=None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_story_comes_out_as_it_is_told(path, journal_of, tmp_path):
    assert tell(read(path), folder=tmp_path / "leases", journal_of=journal_of) == []


def test_there_are_stories_of_our_own():
    assert len(stories(OWN)) >= 20


@pytest.mark.parametrize(
    ("actual", "expected", "wrong"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, 0),
        ({"a": 1}, {"a": 2}, 1),
        ({"a": 1}, {"b": 1}, 1),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, 1),
        ([1, 2], [1], 1),
        (True, 1, 1),
        (None, None, 0),
        (None, "k", 1),
    ],
)
def test_the_comparison_of_the_stories_can_fail(actual, expected, wrong):
    assert len(list(subset(actual, expected))) == wrong


@pytest.mark.parametrize("change", ["payload", "calls", "journal"])
def test_a_story_that_is_told_wrongly_is_found_out(change, journal_of, tmp_path):
    story = read(OWN / "k10-unfinished-is-executed-again.json")
    run = story["runs"][1]
    if change == "payload":
        run["steps"][0]["expect"]["payload"] = {"other": 1}
    elif change == "calls":
        run["expect_effect_calls"] += 1
    else:
        story["runs"][0]["expect_journal"][1]["status"] = "ok"
    assert len(tell(story, folder=tmp_path / "leases", journal_of=journal_of)) == 1
