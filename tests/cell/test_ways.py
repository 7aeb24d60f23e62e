"""Every way by which a step may see what a plain cell above it made: an edit there never leaves an old result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.shells import Zygote
from tests.support.lives import cases, life, truth

CASES = cases(Path(__file__).parent / "tables" / "ways.txt")
EXECUTES = {case.name for case in CASES if case.executes}


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


def test_an_edit_above_is_seen_and_nothing_else_makes_a_step_execute(zygote: Zygote, tmp_path: Path) -> None:
    for name in ("plain", "edited", "keel"):
        (tmp_path / name).mkdir()
    before = truth(zygote, tmp_path / "plain", CASES)
    after = truth(zygote, tmp_path / "edited", CASES, edited=True)
    assert {name for name in before if before[name] == after[name]} == set()

    assert life(zygote, tmp_path / "keel", CASES).printed == before
    again = life(zygote, tmp_path / "keel", CASES)
    assert again.printed == before
    assert {name for name, decision in again.decided.items() if decision == "executed"} == EXECUTES

    edited = life(zygote, tmp_path / "keel", CASES, edited=True)
    assert edited.printed == after
    assert set(edited.decided.values()) == {"executed"}
