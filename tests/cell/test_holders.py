"""What a step changes in place shows under every name that holds it, live and after a replay (DESIGN 6, Writes)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keel_notebook.capture.aliases import held_elsewhere, sharing
from tests.crash.shells import Zygote
from tests.support.lives import cases, life, truth

CASES = cases(Path(__file__).parent / "tables" / "holders.txt")


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


def test_what_a_replay_brings_back_shows_under_every_name(zygote: Zygote, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "keel").mkdir()
    expected = truth(zygote, tmp_path / "plain", CASES)
    assert life(zygote, tmp_path / "keel", CASES).printed == expected
    again = life(zygote, tmp_path / "keel", CASES)
    assert again.printed == expected
    assert {name for name, decision in again.decided.items() if decision == "executed"} == {
        case.name for case in CASES if case.executes
    }


class Held:
    pass


def held() -> dict[str, Any]:
    shared = [1]
    return {"a": shared, "b": {"k": (shared,)}, "c": [2], "d": {"k": [shared.append]}}


def test_holders_are_found_by_what_they_refer_to() -> None:
    names = held()
    assert sharing([names["a"]], names, without=()).names == {"a", "b", "d"}
    assert sharing([names["c"]], names, without=()).names == {"c"}


@pytest.mark.parametrize(("name", "elsewhere"), [("a", True), ("b", True), ("c", False), ("d", True)])
def test_references_tell_whether_there_is_another_holder(name: str, elsewhere: bool) -> None:
    names = held()
    assert held_elsewhere(names, name, 1, without=()) is elsewhere


def test_a_count_errs_to_the_safe_side() -> None:
    names: dict[str, Any] = {"large": [[] for _ in range(6000)], "own": Held()}
    names["own"].parts = [{"x": [1]}, {1, 2}]
    assert held_elsewhere(names, "large", 1, without=())
    assert not held_elsewhere(names, "own", 1, without=())
    outside = names["own"].parts[0]["x"]
    assert held_elsewhere(names, "own", 1, without=())
    assert outside == [1]
