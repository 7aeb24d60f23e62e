"""The cell that is running, and the gate that every cell passes (DESIGN 4.1, 4.4; traps 6; feasibility D).

The body of a step is never run from here. An AST transformer leaves the module as it is or swaps it for a call
back into keel, so that ``await``, magics, debugger and traceback lines are those of an ordinary cell.
"""

from __future__ import annotations

import ast
import builtins
import sys
import threading
import weakref
from asyncio.exceptions import CancelledError
from collections.abc import Callable
from typing import Any

from IPython.core.error import InputRejected
from msgspec import Struct

from keel_notebook.capture.aswritten import Tracebacks
from keel_notebook.capture.loads import unwatch_loads, watch_loads
from keel_notebook.capture.mark import find_step, mark
from keel_notebook.capture.truebuiltins import TrueBuiltins
from keel_notebook.capture.written import WRITTEN
from keel_notebook.core.options import Marker
from keel_notebook.core.units import ran_as

__all__ = ["CellGate", "RunningCell", "call", "finished", "mark"]


class RunningCell(Struct, frozen=True):
    """A cell on its way: as the person wrote it, and as IPython compiles it."""

    raw: str
    transformed: str
    marker: Marker | None
    """Its step line, or None for a plain cell."""
    cell_id: str
    """The front end's id of the cell, or ``""`` where it has none (nbclient, papermill)."""
    execution_count: int


class CellGate:
    """Stands at the entrance of every cell: asks ``decide`` once for each cell that a person runs.

    Silent requests, cells run by cells (``%%capture``, ``run_cell``), the code inside ``%time`` and ``%run``, and
    cells of other threads than the one that installed it (subshells) pass through untouched.
    """

    def __init__(self) -> None:
        self._shell: Any = None
        self._stack: list[Any] = []
        self._cell: RunningCell | None = None
        self._armed = False
        self._thread = threading.get_ident()
        self._parent = ""
        self._problem: Exception | None = None
        self._display_failed = False
        self._tracebacks = Tracebacks()

    def install(
        self,
        shell: Any,
        *,
        on_start: Callable[[RunningCell], None],
        decide: Callable[[RunningCell, ast.Module], ast.Module],
        on_end: Callable[[RunningCell, Any], None],
        on_fault: Callable[[Exception], object],
    ) -> None:
        """Register with a shell (with or without a kernel).

        Args:
            shell: the InteractiveShell.
            on_start: called before a cell is compiled. What it raises is a fault, see ``on_fault``.
            decide: given the cell and its module, gives the module to run. It may raise ``InputRejected``: then
                the body is not run, and the error is the cell's.
            on_end: called with the cell and IPython's result (None where the cell was cancelled) before the reply.
            on_fault: called with whatever else ``decide`` raises. Where it returns, the cell runs plainly; it may
                raise ``InputRejected`` to refuse. Nothing else leaves the transformer, because IPython would run
                the body unrecorded and unregister it.
        """
        self._shell, self._thread = shell, threading.get_ident()
        self._on_start, self._decide, self._on_end, self._on_fault = on_start, decide, on_end, on_fault
        shell.events.register("pre_run_cell", self._starts)
        shell.events.register("post_run_cell", self._ended)
        self._register()
        self._tracebacks.install(shell)
        WRITTEN.start(ran_before=shell.execution_count > 2)
        watch_loads()  # what a module was when it was loaded can be seen at no other time

    def join(self) -> None:
        """Take the cell that is running as begun: the one with ``%load_ext``, where it does more than that.

        It runs plainly, like those before it; its end is told like that of others.
        """
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code.co_name != "run_cell_async":
            frame = frame.f_back
        info = None if frame is None or frame.f_locals.get("self") is not self._shell else frame.f_locals.get("info")
        if info is not None and not info.silent and _does_more(info.raw_cell):
            WRITTEN.start(ran_before=True)
            self._started(info)
            self._armed = False

    def uninstall(self) -> None:
        """Leave the shell as it was. Safe to call twice."""
        shell, self._shell = self._shell, None
        if shell is None:
            return
        shell.events.unregister("pre_run_cell", self._starts)
        shell.events.unregister("post_run_cell", self._ended)
        for registered, mine in ((shell.ast_transformers, self), (shell.input_transformers_cleanup, mark)):
            if mine in registered:
                registered.remove(mine)
        self._tracebacks.uninstall()
        unwatch_loads()
        WRITTEN.stop()
        self._forget()

    def _register(self) -> None:
        # First in both lists: an AST transformer that fails makes IPython skip the one behind it.
        for registered, mine in ((self._shell.ast_transformers, self), (self._shell.input_transformers_cleanup, mark)):
            if mine not in registered:
                registered.insert(0, mine)

    def _forget(self) -> None:
        self._stack, self._cell, self._armed, self._problem = [], None, False, None

    def _starts(self, info: Any) -> None:
        if threading.get_ident() != self._thread:
            return
        with TrueBuiltins() as replaced:
            if replaced:  # whatever it is, it runs plainly
                self._stack.append(info)
            else:
                self._started(info)

    def _started(self, info: Any) -> None:
        if self._stack and not self._left_over():
            self._stack.append(info)
            return
        if (left := self._cell) is not None:
            self._forget()
            self._on_end(left, None)
            WRITTEN.ends()
        self._stack, self._armed = [info], True
        self._parent = self._request()
        self._display_failed = getattr(self._shell, "_last_traceback_during_displayhook", False)
        self._register()
        self._cell = cell = self._describe(info)
        WRITTEN.begins(ran_as(cell.execution_count))
        try:
            self._on_start(cell)
        except Exception as error:  # noqa: BLE001 kept for on_fault, who may refuse the cell
            self._problem = error

    def _left_over(self) -> bool:
        """Whether the cell on the stack is one whose end was never told: another request is running."""
        return self._request() != self._parent

    def _request(self) -> str:
        header = getattr(self._shell, "parent_header", None) or {}
        return str(header.get("header", header).get("msg_id", ""))

    def _describe(self, info: Any) -> RunningCell:
        shell, raw = self._shell, info.raw_cell
        transformed = getattr(info, "transformed_cell", None)
        if transformed is None:
            transformed = shell.transform_cell(raw)
        count = shell.execution_count - 1 if info.store_history else shell.execution_count
        return RunningCell(
            raw=raw,
            transformed=transformed,
            marker=find_step(raw),
            cell_id=getattr(info, "cell_id", None) or self._cell_id_of_request(),
            execution_count=count,
        )

    def _cell_id_of_request(self) -> str:
        get_parent = getattr(self._shell, "get_parent", None)
        metadata = (get_parent() or {}).get("metadata", {}) if get_parent is not None else {}
        return str(metadata.get("cellId") or "")

    def visit(self, node: ast.Module) -> ast.Module:
        """IPython's call: the module to run in place of ``node``."""
        cell = self._cell
        if cell is None or not self._armed or len(self._stack) != 1 or not self._is_compiling(self._stack[0]):
            return node
        self._armed = False
        try:
            if self._problem is not None:
                raise self._problem
            module = self._decide(cell, node)
            if not isinstance(module, ast.Module):
                raise TypeError("decide gave no module")
            return module
        except InputRejected:
            raise
        except Exception as error:  # noqa: BLE001 see install: no exception may leave here
            return self._faulted(node, error)

    def _faulted(self, node: ast.Module, error: Exception) -> ast.Module:
        try:
            self._on_fault(error)
        except InputRejected:
            raise
        except Exception as worse:
            raise InputRejected(f"keel failed ({type(worse).__name__}); the cell was not run") from worse
        return node

    def _is_compiling(self, info: Any) -> bool:
        """Whether it is the outermost cell that is compiled. IPython hands a transformer the tree alone; a callback
        of somebody else may run code before the cell itself is compiled."""
        if threading.get_ident() != self._thread:
            return False
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_name != "run_cell_async":
            frame = frame.f_back  # type: ignore[assignment]
        return frame is None or frame.f_locals.get("info") is info

    def _ended(self, result: Any) -> None:
        if threading.get_ident() != self._thread:
            return
        with TrueBuiltins() as replaced:
            self._end(result, recorded=not replaced)

    def _end(self, result: Any, *, recorded: bool) -> None:
        """A cell that left other built-ins counts as one that did not end: nobody could put them back."""
        at = self._place(getattr(result, "info", None))
        if at is None:
            return  # an empty cell: it ends without having started
        del self._stack[at:]
        if at > 0:
            if not result.success:
                _FAILED_INSIDE.add(self._stack[0])  # `%%capture` ends well all the same
            return
        cell, info = self._cell, getattr(result, "info", None)
        if getattr(self._shell, "_last_traceback_during_displayhook", False) and not self._display_failed:
            _FAILED_INSIDE.add(info)
        self._forget()
        if cell is not None:
            self._on_end(cell, result if recorded else None)
        WRITTEN.ends()

    def _place(self, info: Any) -> int | None:
        if info is None:
            return 0 if self._stack else None  # cancelled before it had a result
        for at in reversed(range(len(self._stack))):
            # An interrupted transformer leaves with a new info for the same cell.
            if self._stack[at] is info or self._stack[at].raw_cell == info.raw_cell:
                if info is not self._stack[at] and self._stack[at] in _FAILED_INSIDE:
                    _FAILED_INSIDE.add(info)
                return at
        return None


def _does_more(raw: str) -> bool:
    """Whether a cell does anything beside switching keel on."""
    return any(line.strip() and not line.lstrip().startswith(("%load_ext", "%keel", "#")) for line in raw.splitlines())


_FAILED_INSIDE: weakref.WeakSet[Any] = weakref.WeakSet()
"""Infos of cells in which something failed although the cell itself ends well."""


def finished(result: Any) -> str:
    """How a cell ended: ``"ok"``, ``"failed"`` or ``"interrupted"``.

    Args:
        result: IPython's ExecutionResult, or None for a cell that was cancelled.
    """
    if result is None:
        return "interrupted"
    error = result.error_before_exec if result.error_before_exec is not None else result.error_in_exec
    if error is None:
        return "failed" if result.info in _FAILED_INSIDE else "ok"
    # An interrupt reaches a cell that awaits as a cancellation (C62).
    return "interrupted" if isinstance(error, KeyboardInterrupt | CancelledError) else "failed"


_BACK = "__keel__"


def call(function: Callable[[], object]) -> ast.Module:
    """A module whose one statement calls ``function`` and shows nothing.

    It reaches keel through the built-ins, so that no name of the notebook stands in its way.
    """

    def back() -> None:
        function()

    setattr(builtins, _BACK, back)  # one cell runs at a time
    return ast.parse(f"{_BACK}()")
