"""The gate in a shell without a kernel."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from typing import Any

import pytest
from IPython.core.error import InputRejected
from IPython.core.interactiveshell import InteractiveShell

from keel_notebook.capture.cell import CellGate, RunningCell, call, finished
from tests.cell.shells import shell


class Probe:
    def __init__(self) -> None:
        self.log: list[Any] = []
        self.answer: Any = lambda tree: tree

    def decide(self, cell: RunningCell, tree: ast.Module) -> ast.Module:
        self.log.append(cell)
        module: ast.Module = self.answer(tree)
        return module


Gated = tuple[InteractiveShell, Probe]


@pytest.fixture
def gated() -> Iterator[Gated]:
    probe, gate = Probe(), CellGate()
    with shell() as made:
        gate.install(
            made,
            on_start=lambda cell: None,
            decide=probe.decide,
            on_end=lambda cell, result: probe.log.append(finished(result)),
            on_fault=probe.log.append,
        )
        yield made, probe
        gate.uninstall()
        assert gate not in made.ast_transformers
        assert SourceFileLoader.path_stats.__module__ != "keel_notebook.capture.loads"


def test_cells_are_asked_about_and_ended(gated: Gated) -> None:
    made, probe = gated
    made.run_cell("%%keel_step a\nx = 1", store_history=True)
    cell, end = probe.log
    assert (cell.marker.line, cell.cell_id, end, made.user_ns["x"]) == ("a", "", "ok", 1)
    assert cell.execution_count == made.execution_count - 1


def test_awaiting_cells_work(gated: Gated) -> None:
    made, probe = gated
    made.run_cell("%%keel_step a\nimport asyncio\nx = await asyncio.sleep(0, 5)")
    assert (probe.log[1], made.user_ns["x"]) == ("ok", 5)


def test_a_cell_can_be_swapped_or_refused(gated: Gated, capsys: pytest.CaptureFixture[str]) -> None:
    made, probe = gated
    probe.answer = lambda tree: call(lambda: made.user_ns.update(x="put back"))
    assert made.run_cell("x = 1\nx").result is None
    assert made.user_ns["x"] == "put back"

    def refuse(_tree: ast.Module) -> ast.Module:
        raise InputRejected("no")

    probe.answer = refuse
    assert not made.run_cell("x = 2").success
    assert made.user_ns["x"] == "put back"


def test_what_is_no_module_is_a_fault(gated: Gated) -> None:
    made, probe = gated
    probe.answer = lambda tree: None
    assert made.run_cell("x = 3").success
    assert [type(item) for item in probe.log] == [RunningCell, TypeError, str]
    assert made.user_ns["x"] == 3


@pytest.mark.parametrize(
    ("cell", "end"), [("1/0", "failed"), ("x = = 1", "failed"), ("raise KeyboardInterrupt", "interrupted")]
)
def test_how_cells_end(gated: Gated, cell: str, end: str, capsys: Any) -> None:
    made, probe = gated
    made.run_cell(cell)
    assert probe.log[-1] == end
