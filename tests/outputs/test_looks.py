"""How often a step looks at the state that has no name: libraries keep hundreds of settings (DESIGN 10)."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from keel_notebook.capture.ambient import AmbientWatch
from keel_notebook.capture.ambient_inputs import AmbientInputs
from keel_notebook.capture.ambient_part import Lost
from keel_notebook.capture.definitions import NotebookDefinitions
from keel_notebook.capture.sources import Sources
from keel_notebook.core.ambient_ports import StepRan


class Counted:
    """Stands for the locale: counts who looks at it."""

    name = "locale"

    def __init__(self) -> None:
        self.looks, self.value = 0, "C"

    def look(self) -> Any:
        self.looks += 1
        return self.value

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        return after

    def put(self, change: Any, lost: Lost) -> None:
        self.value = change


@pytest.fixture
def made() -> tuple[Counted, AmbientWatch, AmbientInputs]:
    part, namespace = Counted(), {}
    definitions = NotebookDefinitions(InteractiveShell.instance())
    inputs = AmbientInputs(
        [part],
        start="/",
        key=b"k" * 32,
        today=lambda: "",
        namespace=namespace,
        sources=Sources(namespace, definitions),
        digest=lambda _: None,
    )
    return part, AmbientWatch(parts=[part]), inputs


def test_a_step_that_runs_looks_once_before_and_once_after(made: Any) -> None:
    part, watch, inputs = made
    before = watch.before()
    running = inputs.open(before)
    part.value = "de"
    inputs.close(running, "x = 1")
    left = watch.before()
    inputs.of(running, StepRan("s", "x = 1", (), ast.parse("x = 1"), False, False), left)
    assert watch.after(before, left) == {"locale": "de"}
    assert part.looks == 2


@pytest.mark.parametrize(("kept", "looks"), [({}, 0), ({"locale": "de"}, 2)])
def test_a_replay_looks_only_where_it_puts_such_state_back(made: Any, kept: dict[str, Any], looks: int) -> None:
    part, watch, inputs = made
    changes = watch.touches(kept)
    before = inputs.before_replay("s", changes=changes)
    watch.apply(kept)
    inputs.drawn(before, "s")
    assert (part.looks, part.value) == (looks, kept.get("locale", "C"))
