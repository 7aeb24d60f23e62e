"""Every way by which a step may see what a plain cell above it made: an edit there never leaves an old result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.shells import Zygote
from tests.support.lives import cases, lives_before_and_after_the_edit

CASES = cases(Path(__file__).parent / "tables" / "ways.txt")


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


def test_an_edit_above_is_seen_and_nothing_else_makes_a_step_execute(zygote: Zygote, tmp_path: Path) -> None:
    edited = lives_before_and_after_the_edit(zygote, tmp_path, CASES)
    assert set(edited.decided.values()) == {"executed"}
