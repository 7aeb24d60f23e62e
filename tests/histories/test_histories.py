"""Never stale, nothing for nothing: random histories of random notebooks against the truth (DESIGN 4-6).

After each Run All in a new process, names, values, shared objects, prints and files are those of the same notebook run
without keel; and a notebook that was run to the end before executes no step. ``KEEL_SOAK=2000`` plays that many, new
ones each time; without it a few, always the same.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from tests.histories.kernels import Warm
from tests.histories.player import History, histories, play

SOAK = int(os.environ.get("KEEL_SOAK", "0"))
_number = itertools.count(1)


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    made = Warm(tmp_path_factory.mktemp("warm"))
    yield made
    made.close()


@settings(
    max_examples=SOAK or 20,
    derandomize=not SOAK,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(history=histories)
def test_every_run_all_is_the_truth(history: History, warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> None:
    play(history, warm, tmp_path_factory.getbasetemp() / f"history-{next(_number)}")
