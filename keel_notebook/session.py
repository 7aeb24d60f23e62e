"""Wires the parts of one kernel together, and leads one cell through them (DESIGN 4).

The way of a cell: ``decide`` (its module is about to be compiled: look, decide, and leave the body alone, swap it
for a replay, or refuse) → the body runs as an ordinary cell → ``end`` (record it, before the reply is sent).
"""

from __future__ import annotations

import ast
import atexit
import functools
import os
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from IPython.core.error import InputRejected

from keel_notebook.capture.cell import CellGate, RunningCell, call, finished
from keel_notebook.core import decide as d
from keel_notebook.core.cellcode import parse_cell
from keel_notebook.core.fingerprint import code_digest
from keel_notebook.core.ids import default_flow, text_digest
from keel_notebook.core.model import Digest, Entry, Input, Kind, Status, Write, entry_id
from keel_notebook.core.options import StepOptions, parse_options, refuse_later
from keel_notebook.core.reads import CellNames, analyse
from keel_notebook.engine.ledger import Ledger
from keel_notebook.engine.runner import Outcome, StepNow
from keel_notebook.engine.stepper import Body, Look, StepCell, Swap
from keel_notebook.errors import DuplicateStepError, InternalError, KeelError, NotYetError, SettingsError
from keel_notebook.wiring import Attached, attach


class SystemClock:
    """The real clock: the only one outside the tests."""

    def now(self) -> float:
        """Wall time, seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return time.monotonic()


class Settings(Protocol):
    """What a person can set (`%config Keel`, KEEL_… variables)."""

    mode: str
    journal: str
    key_file: str
    flow: str
    flow_key: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """A cell, read without running it."""

    code: Digest | None
    reads: frozenset[str]
    names: CellNames


class Session:
    """keel in one kernel."""

    def __init__(self, shell: Any, settings: Settings) -> None:
        self.shell = shell
        self.settings = settings
        self.clock = SystemClock()
        self.ledger = Ledger()
        self.on = True
        self.cwd = Path.cwd()
        self._attached: Attached | None = None
        self._problem: KeelError | None = None
        self._root = ""
        self._live: Body | Swap | None = None
        self._look: Look | None = None
        self._waiting: list[tuple[RunningCell, Analysis, Status, float]] = []
        self.last: tuple[RunningCell, Analysis] | None = None
        self._gate = CellGate()

    def start(self) -> None:
        """Register with the shell: from now on every cell passes through here."""
        self._gate.install(
            self.shell, on_start=self._begins, decide=self._decide, on_end=self._ends, on_fault=self._fault
        )
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._in_child)
        kernel = getattr(self.shell, "kernel", None)
        if kernel is not None:
            self._hear_shutdown(kernel)

    def _hear_shutdown(self, kernel: Any) -> None:
        stop = kernel.do_shutdown

        @functools.wraps(stop)
        def do_shutdown(restart: bool) -> Any:
            if self._attached is not None:
                self._attached.journal.request_shutdown()
            return stop(restart)

        kernel.do_shutdown = do_shutdown

    def _in_child(self) -> None:
        self.on = False  # a forked child runs no cells; its copy of the journal is inert by itself

    def close(self) -> None:
        """End the run in the journal. Safe to call twice."""
        if self._attached is not None:
            self._attached.journal.close(clean=True)
            self._attached = None

    def stop(self) -> None:
        """Unregister from the shell and end the run."""
        self._gate.uninstall()
        atexit.unregister(self.close)
        self.close()

    # ---- the journal -------------------------------------------------------------------------------------

    def attached(self) -> Attached:
        """The journal and what works on it, opened at the first step. Raises KeelError where that fails."""
        if self._attached is None:
            self._attached = attach(
                self.shell, self.settings, clock=self.clock, ledger=self.ledger, cwd=self.cwd, say=say
            )
            waiting, self._waiting = self._waiting, []
            for cell, analysis, status, at in waiting:
                self._keep_plain(cell, analysis, status, at)
        return self._attached

    def move_to(self, folder: str) -> None:
        """Use another journal from now on (`%keel journal PATH`)."""
        self.close()
        self.settings.journal = folder
        self._problem = None
        self.attached()

    def name_flow(self, name: str, key: str) -> None:
        """Say which flow this notebook is (`%keel flow NAME`)."""
        self.close()
        self.settings.flow, self.settings.flow_key = name, key
        self.attached()

    def retire(self, name: str, key: str) -> None:
        """Write that the records of a step (``forget``) or its deaths (``revive``) no longer count."""
        attached = self.attached()
        step = StepNow(flow=attached.flow.id, name=name, source="", code=None, inputs={}, cell=None)
        attached.stepper.retire(step, key)

    def adopt(self, name: str) -> Entry:
        """Record what the last executed cell left, without executing it.

        What it read counts as it is now; a name that it both read and wrote has an unknown past. Raises
        SettingsError where no cell ran before.
        """
        if self.last is None:
            raise SettingsError(where="%keel adopt", detail="no cell ran before this one")
        cell, analysis = self.last
        attached = self.attached()
        parsed = StepCell(StepOptions(name=name), name, attached.kept_source(cell.raw), analysis)
        look = attached.stepper.look(attached.flow.id, parsed, root=self._root_of(attached, analysis))
        bound = analysis.names.stores | analysis.names.maybe_stores | analysis.names.mutation_suspects
        lost = {n: replace(i, digest=None) for n, i in look.step.inputs.items() if n in bound}
        step = replace(look.step, inputs={**look.step.inputs, **lost})
        made = sorted(n for n in bound if n in self.shell.user_ns)
        entry = attached.runner.adopt(step, made)
        self.ledger.made(made, f"step {name}")
        return entry

    # ---- one cell ----------------------------------------------------------------------------------------

    def _begins(self, _cell: RunningCell) -> None:
        self._live = self._look = None
        self.ledger.cell_starts(self.clock.monotonic())

    def analyse(self, cell: RunningCell) -> Analysis:
        """What a cell's text says about it."""
        return analysis_of(cell.transformed, self.shell.transform_cell)

    def _decide(self, cell: RunningCell, tree: ast.Module) -> ast.Module:
        if cell.marker is None or not self.on or self.settings.mode == d.Mode.OFF:
            return tree
        try:
            return self._decide_step(cell, tree)
        except KeelError as error:
            raise rejected(error) from None

    def _decide_step(self, cell: RunningCell, tree: ast.Module) -> ast.Module:
        assert cell.marker is not None
        options = parse_options(cell.marker.line)
        refuse_later(options)
        if self.settings.mode == d.Mode.VERIFY:
            raise NotYetError(what="KEEL_MODE=verify", topic="headless runs")
        attached = self._attached_or_said()
        if attached is None:
            return tree
        analysis = self.analyse(cell)
        step = StepCell(options, self._name(options, cell, analysis), attached.kept_source(cell.raw), analysis)
        if self.ledger.clashes(step.name, cell_id=cell.cell_id, source=cell.raw):
            raise DuplicateStepError(step=step.name)
        self._look = attached.stepper.look(attached.flow.id, step, root=self._root_of(attached, analysis))
        self._live = attached.stepper.answer(self._look, policy(self.settings.mode, options))
        if isinstance(self._live, Swap):
            return call(self._put_back)
        return tree

    def _attached_or_said(self) -> Attached | None:
        try:
            return self.attached()
        except KeelError as error:
            if self.settings.mode == d.Mode.REPLAY:
                raise
            if self._problem is None:
                say(f"steps run, not durable: {error}")
            self._problem = error
            return None

    def _name(self, options: StepOptions, cell: RunningCell, analysis: Analysis) -> str:
        return options.name or cell.cell_id or self.ledger.unnamed(analysis.code or "?")

    def _root_of(self, attached: Attached, analysis: Analysis) -> str:
        if attached.flow.id == default_flow() and not self._root:
            self._root = text_digest("root", analysis.code or "?")[:16]
        return self._root

    def _put_back(self) -> None:
        swap, look, attached = self._live, self._look, self._attached
        assert isinstance(swap, Swap)
        assert look is not None
        assert attached is not None
        attached.runner.replay(swap.prepared, show=self._show_result)
        attached.stepper.replayed(look.step, swap)

    def _show_result(self, value: Any) -> None:
        hook = self.shell.displayhook
        hook.update_user_ns(value)
        if getattr(hook, "exec_result", None) is not None:
            hook.exec_result.result = value

    def _ends(self, cell: RunningCell, result: Any) -> None:
        live, look = self._live, self._look
        self._live = self._look = None
        try:
            if isinstance(live, Body):
                self._record(live, result)
            elif isinstance(live, Swap) and look is not None:
                entry = live.prepared.entry
                self.ledger.made((w.name for w in entry.writes), f"step {entry.step}")
            elif look is None:
                self._plain(cell, result)
        finally:
            self.ledger.cell_ended(self.clock.monotonic())

    def _record(self, body: Body, result: Any) -> None:
        step = body.attempt.step
        attached = self._attached
        assert attached is not None
        status = Status(finished(result))
        try:
            entry = attached.runner.finish(body.attempt, outcome(status, result))
        except KeyboardInterrupt:
            say(f"{step.name}: interrupted while it was recorded; it is not saved")
            return
        except KeelError as problem:
            say(f"{step.name}: not recorded: {problem}")
            return
        except Exception as fault:  # noqa: BLE001 a fault of keel's own never replaces the cell's result
            say(f"{step.name}: not recorded: {InternalError(doing='recorded a step', kind=type(fault).__name__)}")
            return
        attached.stepper.executed(body, entry)
        made = [w.name for w in entry.writes] + [n.name for n in entry.not_stored]
        self.ledger.made(made, f"step {step.name}", resource=(step.name, str(step.code)) if step.always else None)
        if entry.not_stored and status is Status.OK and not step.always:
            listed = "; ".join(f"{item.name} ({item.type}): {item.reason}" for item in entry.not_stored)
            say(f"{step.name}: not stored: {listed}")

    def _plain(self, cell: RunningCell, result: Any) -> None:
        if not self.on or (result is not None and result.error_before_exec is not None):
            return
        analysis = self.analyse(cell)
        self.last = (cell, analysis)
        bound = analysis.names.stores | analysis.names.maybe_stores
        self.ledger.made(bound, f"cell {cell.execution_count}")
        status, at = Status(finished(result)), self.clock.now()
        if self._attached is None:
            self._waiting.append((cell, analysis, status, at))
        else:
            self._keep_plain(cell, analysis, status, at)

    def _keep_plain(self, cell: RunningCell, analysis: Analysis, status: Status, at: float) -> None:
        attached = self._attached
        assert attached is not None
        journal = attached.journal
        seq = journal.next_seq()
        names = analysis.names
        entry = Entry(
            entry=entry_id(journal.run, seq),
            flow=attached.flow.id,
            run=journal.run,
            seq=seq,
            step="",
            kind=Kind.PLAIN,
            status=status,
            occurrence=cell.execution_count or 0,
            key=cell.cell_id,
            code=analysis.code,
            source=attached.kept_source(cell.raw),
            inputs=tuple(Input(name, None) for name in sorted(names.reads)),
            writes=tuple(Write(name, None, "", 0) for name in sorted(names.stores | names.maybe_stores)),
            deleted=tuple(sorted(names.deletes)),
            started_at=at,
            ended_at=at,
        )
        try:
            journal.append(entry)
        except KeelError as problem:
            if self._problem is None:
                say(f"not durable: {problem}")
            self._problem = problem

    def _fault(self, error: Exception) -> None:
        # Ordinary steps are idempotent: they run plainly, marked not recorded (DESIGN 4.4).
        say(f"this cell runs plainly: {InternalError(doing='looked at a step', kind=type(error).__name__)}")
        self._live = self._look = None


@functools.lru_cache(maxsize=512)
def _analysis(transformed: str, transform: Any) -> Analysis:
    parsed = parse_cell(transformed, transform=transform)
    names = analyse(parsed)
    return Analysis(code_digest(parsed), names.reads, names)


def analysis_of(transformed: str, transform: Any) -> Analysis:
    """What a cell's text says about it, remembered by the text."""
    return _analysis(transformed, transform)


def outcome(status: Status, result: Any) -> Outcome:
    """How a body ended, from IPython's result (None where the cell was cancelled)."""
    if result is None:
        return Outcome(status)
    error = result.error_in_exec or result.error_before_exec
    return Outcome(status, error, (result.result,) if result.result is not None else None)


def policy(mode: str, options: StepOptions) -> d.Policy:
    """How a step's differences are answered."""
    response = d.Response(options.on_divergence) if options.on_divergence else d.Response.WARN
    return d.Policy(d.Mode(mode), response, options.max_attempts)


def say_nested(line: str) -> None:
    """Tell that a step inside another cell is not recorded."""
    say(f"%%keel_step {line.strip()} stands inside another cell: its body runs, nothing is recorded")


def say(line: str) -> None:
    """One line on stderr, complete before anything else of the cell."""
    print(f"keel: {line}", file=sys.stderr)  # noqa: T201 this is how the kernel speaks to a person
    sys.stderr.flush()


def rejected(error: KeelError) -> KeelError:
    """The same error as IPython's own refusal of a cell: the body is not run, and Run All stops."""
    kind = type(error)
    mixed = type(kind.__name__, (kind, InputRejected), {"__module__": kind.__module__})
    refusal = mixed(**error.facts)
    assert isinstance(refusal, KeelError)
    return refusal
