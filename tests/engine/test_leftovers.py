"""A step's own change is never its input (C09, C31): what a name holds, seen from a step."""

import pytest

from keel_notebook.engine.leftovers import Leftovers, State


@pytest.fixture
def leftovers():
    return Leftovers()


def step(leftovers, name, before, after):
    leftovers.recorded(name, read={"x": before}, wrote={"x": after})


def test_c31_what_a_step_just_left_is_already_applied(leftovers):
    step(leftovers, "s", "1", "2")
    assert leftovers.state("s", "x", "2") is State.APPLIED


def test_a_value_of_equal_content_that_was_bound_by_another_cell_is_no_leftover(leftovers):
    step(leftovers, "s", "10", "20")
    leftovers.bound(["x"])
    assert leftovers.state("s", "x", "20") is State.FREE


def test_another_step_sees_nothing_of_its_own(leftovers):
    step(leftovers, "s", "1", "2")
    assert leftovers.state("t", "x", "2") is State.FREE


def test_later_steps_alone_can_be_taken_back(leftovers):
    step(leftovers, "s", "1", "2")
    step(leftovers, "t", "2", "3")
    assert leftovers.state("s", "x", "3") is State.BURIED
    assert leftovers.before("s", "x") == "1"
    assert leftovers.undone("s", ["x"]) == {"t"}
    assert leftovers.state("s", "x", "1") is State.FREE
    assert leftovers.state("t", "x", "1") is State.FREE


@pytest.mark.parametrize("now", ["9", None])
def test_what_no_step_did_cannot_be_told_apart(leftovers, now):
    step(leftovers, "s", "1", "2")
    assert leftovers.state("s", "x", now) is State.MIXED


def test_unknown_digests_are_never_taken_for_already_applied(leftovers):
    step(leftovers, "s", "1", None)
    assert leftovers.state("s", "x", None) is State.MIXED


def test_a_step_that_binds_without_reading_leaves_nothing_of_others(leftovers):
    step(leftovers, "s", "1", "2")
    leftovers.recorded("load", read={}, wrote={"x": "7"})
    assert leftovers.state("s", "x", "7") is State.FREE


def test_a_failed_attempt_in_the_middle_starts_from_the_first_value(leftovers):
    step(leftovers, "s", "1", "2")
    step(leftovers, "s", "2", "3")
    assert leftovers.before("s", "x") == "1"
    assert leftovers.undone("s", ["x"]) == set()
