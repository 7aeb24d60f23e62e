"""The gate in a real kernel: every cell is asked about exactly once, and nothing gets in the user's way (traps 6)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cell.cell_kernel import Kernel, started

pytestmark = pytest.mark.kernel

PROBE = r"""
import ast as _ast
from IPython.core.error import InputRejected as _Rejected
from keel_notebook.capture.cell import CellGate as _Gate, call as _call, finished as _finished
class _Probe:
    def __init__(self):
        self.log, self.answer, self.fault = [], None, None
    def starts(self, cell):
        self.log.append(("start", cell.raw))
    def decide(self, cell, tree):
        self.cell = cell
        self.log.append(("decide", cell.raw))
        return self.answer(tree) if self.answer else tree
    def ends(self, cell, result):
        self.log.append(("end", cell.raw, _finished(result)))
    def faulted(self, error):
        self.log.append(("fault", type(error).__name__))
        if self.fault:
            raise self.fault
    def take(self):
        log, self.log, self.answer, self.fault = self.log, [], None, None
        return log
    def install(self):
        _gate.install(
            get_ipython(), on_start=self.starts, decide=self.decide, on_end=self.ends, on_fault=self.faulted
        )
probe, _gate = _Probe(), _Gate()
probe.install()
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with started(str(tmp_path_factory.mktemp("gate"))) as kernel:
        assert kernel.run(PROBE, silent=True).status == "ok"
        yield kernel


@pytest.fixture(autouse=True)
def fresh(kernel: Kernel) -> Iterator[None]:
    kernel.value("probe.take()")
    yield
    registered = kernel.value("[_gate in get_ipython().ast_transformers, get_ipython().ast_transformers[0] is _gate]")
    assert registered == [True, True], "IPython unregistered the transformer"


def log(kernel: Kernel) -> list[Any]:
    return list(kernel.value("probe.take()"))


def whole(raw: str, outcome: str = "ok") -> list[Any]:
    return [("start", raw), ("decide", raw), ("end", raw, outcome)]


@pytest.mark.parametrize(
    "cell",
    [
        "x = 1",
        "%%keel_step a\nx = 1",
        "%time x = sum(range(3))",
        "%timeit -n 1 -r 1 sum(range(3))",
        "%%time\nx = 1\nx",
        "%%keel_step b\n%%time\nx = 1\nx",
        "%%time\n%%keel_step b\nx = 1",
        "%%capture out\n# keel: step b\nx = 1",
        "%%capture out\nx = 1",
        "get_ipython().run_cell('y = 1; y')",
        "get_ipython().run_cell('y = 1', silent=True)",
        "!echo hello",
        "import asyncio\nawait asyncio.sleep(0)",
        "%%keel_step c\nimport asyncio\nx = await asyncio.sleep(0, 5)",
        "%load_ext autoreload\n%autoreload 2",
        "from __future__ import annotations\nz: nonsense = 1",
    ],
)
def test_a_cell_is_asked_about_exactly_once(kernel: Kernel, cell: str) -> None:
    assert kernel.run(cell).status == "ok"
    assert log(kernel) == whole(cell)


def test_a_notebook_run_by_run_magic_is_part_of_its_cell(kernel: Kernel, tmp_path: Path) -> None:
    import nbformat

    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("inside = 1"), nbformat.v4.new_code_cell("%time 1")]),
        tmp_path / "inner.ipynb",
    )
    cell = f"%run {tmp_path / 'inner.ipynb'}"
    assert kernel.run(cell).status == "ok"
    assert log(kernel) == whole(cell)
    assert kernel.value("inside") == 1


def test_silent_requests_and_completeness_checks_are_not_cells(kernel: Kernel) -> None:
    assert kernel.run("q = 1", silent=True).status == "ok"
    msg_id = kernel.client.is_complete("%%keel_step s\nfor i in x:")
    reply = kernel.client.get_shell_msg(timeout=30)
    assert reply["parent_header"]["msg_id"] == msg_id
    assert reply["content"]["status"] == "incomplete"
    assert log(kernel) == []


def test_a_cell_without_history_counts_and_empty_cells_do_not(kernel: Kernel) -> None:
    kernel.run("   ")
    assert log(kernel) == []
    kernel.run("u = 1", store_history=False)
    assert log(kernel) == whole("u = 1")


def test_a_syntax_error_ends_the_cell_without_a_decision(kernel: Kernel) -> None:
    cell = "%%keel_step s\nx = = 1"
    assert kernel.run(cell).status == "error"
    assert log(kernel) == [("start", cell), ("end", cell, "failed")]
    kernel.run("x = 2")
    assert log(kernel) == whole("x = 2")


def test_an_error_of_the_body_is_a_failure(kernel: Kernel) -> None:
    reply = kernel.run("%%keel_step e\n\n1 / 0")
    assert log(kernel) == whole("%%keel_step e\n\n1 / 0", "failed")
    assert "1 / 0" in reply.traceback


@pytest.mark.parametrize("cell", ["%%capture\n1/0", "%%keel_step e\n%%capture\n1/0", "get_ipython().run_cell('1/0')"])
def test_a_failure_that_the_outer_cell_swallows_is_still_a_failure(kernel: Kernel, cell: str) -> None:
    assert kernel.run(cell).status == "ok"
    assert log(kernel) == whole(cell, "failed")


def test_a_value_that_cannot_be_shown_is_a_failure(kernel: Kernel) -> None:
    bad = "raise ValueError"
    cell = f"class Bad:\n    def _repr_mimebundle_(self, **k): {bad}\n    def __repr__(self): {bad}\nBad()"
    reply = kernel.run(cell)
    assert log(kernel)[-1] == ("end", cell, "failed" if reply.status == "error" else "ok")


@pytest.mark.parametrize(
    "cell",
    [
        "%%keel_step i\nimport time\nprint('now', flush=True)\ntime.sleep(30)",
        "%%keel_step i\nimport asyncio\nprint('now', flush=True)\nfor _ in range(300): await asyncio.sleep(0.1)",
    ],
)
def test_an_interrupt_is_no_failure_and_the_next_cell_is_asked_about(kernel: Kernel, cell: str) -> None:
    assert kernel.run(cell, interrupt_on="now").status == "error"
    assert log(kernel) == whole(cell, "interrupted")
    kernel.run("x = 3")
    assert log(kernel) == whole("x = 3")


def test_an_interrupt_in_the_transformer_runs_nothing_and_keeps_it(kernel: Kernel) -> None:
    kernel.run("def _stop(tree): raise KeyboardInterrupt\nprobe.answer, ran = _stop, False", silent=True)
    assert kernel.run("ran = True").status == "error"
    assert log(kernel) == whole("ran = True", "interrupted")
    assert kernel.value("ran") is False


def test_a_refusal_does_not_run_the_body(kernel: Kernel) -> None:
    kernel.run("def _no(tree): raise _Rejected('not today')\nprobe.answer, ran = _no, False", silent=True)
    reply = kernel.run("ran = True")
    assert reply.status == "error"
    assert "not today" in reply.traceback
    assert log(kernel) == whole("ran = True", "failed")
    assert kernel.value("ran") is False


@pytest.mark.parametrize(
    ("fault", "runs"), [("None", True), ("_Rejected('unsure')", False), ("ValueError('worse')", False)]
)
def test_a_fault_of_keel_runs_the_cell_plainly_or_refuses_it(kernel: Kernel, fault: str, runs: bool) -> None:
    kernel.run(f"def _bug(tree): raise OSError\nprobe.answer, probe.fault, ran = _bug, {fault}, False", silent=True)
    assert kernel.run("ran = True").status == ("ok" if runs else "error")
    assert ("fault", "OSError") in log(kernel)
    assert kernel.value("ran") is runs


def test_a_swapped_cell_calls_back_whatever_names_the_notebook_has(kernel: Kernel) -> None:
    kernel.run("seen = []\ndef _swap(tree): return _call(lambda: seen.append(1) or 7)", silent=True)
    kernel.run("probe.answer = _swap", silent=True)
    cell = "%%keel_step s\nprint = get_ipython = __import__ = seen2 = None\n1/0"
    reply = kernel.run(cell)
    assert (reply.status, reply.result) == ("ok", None)
    kernel.run("probe.answer = _swap\nimport builtins as _b\nprint = __import__ = len = None", silent=True)
    assert kernel.run("await nothing\n2").status == "ok"
    kernel.run("del print, __import__, len", silent=True)
    assert kernel.value("seen") == [1, 1]


def test_what_a_running_cell_is_known_by(kernel: Kernel) -> None:
    raw = "# load\n\n%%keel_step 'my load' --ttl 2h\ndef where(): pass\nx = where"
    kernel.run(raw, cell_id="cell-7")
    known = kernel.value(
        "(probe.cell.raw, probe.cell.cell_id, probe.cell.marker.line, probe.cell.transformed, "
        "get_ipython().execution_count - probe.cell.execution_count)"
    )
    assert known[:3] == (raw, "cell-7", "'my load' --ttl 2h")
    assert known[3] == "# load\n\n# keel: step 'my load' --ttl 2h\ndef where(): pass\nx = where\n"
    assert known[4:] == (1,)


@pytest.mark.parametrize("above", ["%%time", "%%capture out", "%%prun -q"])
def test_a_step_below_a_magic_is_a_step(kernel: Kernel, above: str) -> None:
    assert kernel.run(f"{above}\n%%keel_step below\nmade_below = 1").status == "ok"
    assert kernel.value("(probe.cell.marker.line, made_below)") == ("below", 1)
    kernel.run("del made_below", silent=True)


def test_a_traceback_names_the_line_that_the_person_sees(kernel: Kernel) -> None:
    reply = kernel.run("# why\n%%keel_step t\nx = 1\ny = x / 0")
    assert "----> 4 y = x / 0" in reply.traceback


def test_a_cell_inside_a_callback_of_another_extension_is_not_taken_for_the_cell(kernel: Kernel) -> None:
    kernel.run(
        "def _other(info): get_ipython().run_cell('hidden = 1', silent=True)\n"
        "get_ipython().events.register('pre_run_cell', _other)",
        silent=True,
    )
    kernel.run("visible = 1")
    kernel.run("get_ipython().events.unregister('pre_run_cell', _other)", silent=True)
    assert log(kernel) == whole("visible = 1")


def test_another_transformer_that_fails_does_not_make_ipython_skip_the_gate(kernel: Kernel) -> None:
    kernel.run(
        "class _Bad:\n    def visit(self, node): raise ValueError\nget_ipython().ast_transformers.append(_Bad())",
        silent=True,
    )
    kernel.run("get_ipython().ast_transformers.append(_Bad())", silent=True)
    kernel.run("v = 1")
    assert log(kernel) == whole("v = 1")


def test_a_cell_whose_end_was_never_told_does_not_stand_in_the_way(kernel: Kernel) -> None:
    kernel.run("get_ipython().events.unregister('post_run_cell', _gate._ended)", silent=True)
    kernel.run("lost = 1")
    kernel.run("get_ipython().events.register('post_run_cell', _gate._ended)", silent=True)
    kernel.run("after = 1")
    assert log(kernel) == whole("lost = 1", "interrupted") + whole("after = 1")


def test_a_cell_of_another_thread_passes_through(kernel: Kernel) -> None:
    cell = (
        "import threading\nt = threading.Thread(target=lambda: get_ipython().run_cell('inside = 1/0'))\n"
        "t.start(); t.join()"
    )
    assert kernel.run(cell).status == "ok"
    assert log(kernel) == whole(cell)


def test_the_shell_is_as_before_when_the_gate_is_gone(kernel: Kernel) -> None:
    kernel.run("_gate.uninstall(); _gate.uninstall()", silent=True)
    kernel.run("w = 1")
    assert log(kernel) == []
    assert kernel.run("# keel: step still_python\nw").result == "1"
    kernel.run("probe.install()", silent=True)
