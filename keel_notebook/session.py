"""keel in one kernel: registered with the shell, light until the first step (DESIGN 4, 10).

`%load_ext` must cost next to nothing, so this file imports little; ``leading`` and all that stands behind it come
with the first step. Until then plain cells are only kept in memory.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import functools
import os
import re
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from IPython.core.error import InputRejected

from keel_notebook.aside import write_aside
from keel_notebook.capture.cell import CellGate, RunningCell, finished
from keel_notebook.capture.mark import find_step
from keel_notebook.capture.seeds import SEEDS, unwatch_seeds, watch_seeds
from keel_notebook.capture.started import note_start
from keel_notebook.core.passes import Places
from keel_notebook.engine import host
from keel_notebook.engine.inside import run_inside
from keel_notebook.errors import DiskFullError, InternalError, JournalUnreachableError, KeelError, WrongFileError
from keel_notebook.glance import goes_on, remembers_auto

if TYPE_CHECKING:
    from keel_notebook.core.model import Entry
    from keel_notebook.core.verify import Verified
    from keel_notebook.engine.calls import Calls
    from keel_notebook.engine.ledger import Ledger
    from keel_notebook.engine.restore import RestoreReport
    from keel_notebook.engine.scope import StepScope
    from keel_notebook.leading import Leader
    from keel_notebook.wiring import Attached

_OFF, _REPLAY = "off", "replay"  # core.decide.Mode, without importing it


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
    strict: bool
    frozen: bool
    app_version: str
    trust: str
    verify: list[str]
    budget: str
    across_runs: str


class Session:
    """keel in one kernel."""

    def __init__(self, shell: Any, settings: Settings) -> None:
        self.shell = shell
        self.settings = settings
        self.clock = SystemClock()
        self.cwd = Path.cwd()
        self.on = True
        self.faults: list[str] = []
        """Where keel itself failed, for `%keel doctor`: places in the code, no values."""
        self._leader: Leader | None = None
        self._told = ""
        self._waiting: list[tuple[RunningCell, str, float]] = []
        self._gate = CellGate()
        self._cell: RunningCell | None = None
        self._calls_told = ""
        self._almost_told: set[str] = set()
        self._places = Places()
        self._again = self._replayed = False
        self._auto_sought = False

    def start(self) -> None:
        """Register with the shell: from now on every cell passes through here."""
        self._gate.install(
            self.shell, on_start=self._begins, decide=self._decide, on_end=self._ends, on_fault=self._fault
        )
        note_start()
        watch_seeds("\n".join(self.shell.user_ns.get("In", ())))
        host.install(self)
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._in_child)
        kernel = getattr(self.shell, "kernel", None)
        if kernel is not None:
            self._hear_shutdown(kernel)
        self._gate.join()

    def _hear_shutdown(self, kernel: Any) -> None:
        stop = kernel.do_shutdown

        @functools.wraps(stop)
        def do_shutdown(restart: bool) -> Any:
            if self._leader is not None:
                self._leader.attached.journal.request_shutdown()
            return stop(restart)

        kernel.do_shutdown = do_shutdown

    def _in_child(self) -> None:
        self.on = False  # a forked child runs no cells; its copy of the journal is inert by itself

    def close(self) -> None:
        """End the run in the journal. Safe to call twice."""
        leader, self._leader = self._leader, None
        if leader is not None:
            self._waiting += leader.unsettled()  # for the next one, where another flow or journal is used from now on
            leader.close()

    def stop(self) -> None:
        """Unregister from the shell and end the run."""
        self._gate.uninstall()
        unwatch_seeds()
        host.install(None)
        atexit.unregister(self.close)
        if self._leader is not None:
            self._leader.definitions.close()
        self.close()

    # ---- the journal -------------------------------------------------------------------------------------

    def leader(self) -> Leader:
        """What leads cells, with the journal open. Raises KeelError where the journal cannot be used at all."""
        if self._leader is None:
            from keel_notebook.cells import installed_modules  # noqa: PLC0415 as the next
            from keel_notebook.core.model import Status  # noqa: PLC0415 the first step pays, not %load_ext
            from keel_notebook.leading import Leader  # noqa: PLC0415
            from keel_notebook.wiring import kernel_of  # noqa: PLC0415

            kernel = kernel_of(self.shell, cwd=self.cwd, clock=self.clock, say=say, fault=self.note_fault)
            self._leader = leader = Leader(kernel, self.settings)
            kernel.ledger.origins.were_there(installed_modules(self.shell.user_ns, kernel.definitions.is_local))
            atexit.unregister(self.close)
            atexit.register(
                self.close
            )  # before the journal's own, which came just now: the end of a flow is written first
            waiting, self._waiting = self._waiting, []
            for number, (cell, status, at) in enumerate(waiting, 1):
                leader.plain(cell, Status(status), at, then=[later for later, _, _ in waiting[number:]])
            leader.begins()
        return self._leader

    def attached(self) -> Attached:
        """The open journal and what works on it."""
        return self.leader().attached

    @property
    def _attached(self) -> Attached | None:
        return self._leader.attached if self._leader is not None else None

    @property
    def ledger(self) -> Ledger:
        """What happened in this kernel so far."""
        return self.leader().ledger

    def move_to(self, folder: str) -> None:
        """Use another journal from now on (`%keel journal PATH`)."""
        self.close()
        self.settings.journal = folder
        self.leader()

    def name_flow(self, name: str, key: str) -> None:
        """Say which flow this notebook is (`%keel flow NAME`)."""
        self.close()
        self.settings.flow, self.settings.flow_key = name, key
        self.leader()

    def keep_flow(self, *, strict: bool, frozen: bool) -> None:
        """Keep the rules of the flow from now on (`%keel flow --strict --frozen`)."""
        self.close()
        self.settings.strict, self.settings.frozen = strict or self.settings.strict, frozen or self.settings.frozen
        self.leader()

    def begin_afresh(self) -> None:
        """Nothing of an older run is gone on with (`%keel flow --new`)."""
        leader = self.leader()
        leader.keeper.afresh(leader.attached.flow.id)

    def take_over(self) -> None:
        """Take the flow's lease over from a holder that is stopped or on another host (`%keel flow --take`)."""
        self.leader().take_over()

    def undo_cell(self, name: str, source: str) -> None:
        """Register the text of a cell as the undo of a step (`%%keel_undo NAME`)."""
        leader = self.leader()
        leader.undos.cell(leader.calls_of_flow(), name, source, leader.attached.kept_source(source))

    def undo(self, names: Sequence[str], by_hand: Sequence[str] = ()) -> tuple[str, ...]:
        """Undo the named steps, or all that were done here, last done first; the undos that ran (`%keel undo`).
        ``by_hand``: those that a person took back."""
        leader, run_cell = self.leader(), functools.partial(run_inside, self.shell)
        return leader.undos.undo(leader.calls_of_flow(), names, run_cell, by_hand=by_hand)

    def retire(self, name: str, key: str) -> None:
        """Write that the records of a step (``forget``) or its deaths (``revive``) no longer count."""
        self.leader().retire(name, key)

    def restore(self, names: Sequence[str] = (), *, run: bool = False) -> RestoreReport:
        """Put back what the newest run had, or the named names; ``run``: run the cells that are missing."""
        return self.leader().restore(names, run=run)

    @property
    def auto_s(self) -> float | None:
        """Auto mode: seconds from which on a cell is replayed. None while it is off."""
        return self._leader.auto.min_s if self._leader is not None else None

    def set_auto(self, min_s: float | None) -> None:
        """Auto mode on, for cells slower than ``min_s`` seconds, or off (None). Remembered with the flow."""
        self.leader().set_auto(min_s)

    def trust(self) -> int:
        """Count every record of this notebook as yours; how many another key had sealed (`%keel trust`)."""
        attached = self.attached()
        return attached.journal.trust(attached.flow.id)

    @property
    def verified(self) -> Sequence[Verified]:
        """What came of the steps that were executed again to be compared (KEEL_MODE=verify), in order."""
        return self._leader.verifier.found if self._leader is not None else ()

    def adopt(self, name: str) -> Entry:
        """Record what the last executed cell left, without executing it."""
        return self.leader().adopt(name)

    # ---- one cell ----------------------------------------------------------------------------------------

    def calls(self, *, needed: bool) -> Calls | None:
        """What carries out the durable calls of this kernel; None where nothing is recorded now."""
        if not self.on or self.settings.mode == _OFF or self._cell is None:
            return None
        try:
            return self.leader().calls(self._cell)
        except KeelError as error:
            if needed or self.settings.mode == "replay":
                raise
            if str(error) != self._calls_told:
                say(f"durable calls run, not durable: {error}")
            self._calls_told = str(error)
            return None

    def plain_scope(self) -> StepScope:
        """The implicit step of the plain cell that is running."""
        assert self._cell is not None
        return self.leader().plain_scope(self._cell)

    def _begins(self, cell: RunningCell) -> None:
        self._cell = cell
        self._again, self._replayed = self._places.again(cell.cell_id or cell.raw), False
        if _MAY_BE_A_MARK.search(cell.raw) and self.on and self.settings.mode != _OFF:
            self._say_almost(cell.raw)
        if self._leader is not None:
            self._leader.begins()

    def _say_almost(self, raw: str) -> None:
        """Tell of a line that is almost a mark, once for each cell: it runs plainly, and nobody would know why."""
        from keel_notebook.core.almost import almost  # noqa: PLC0415 only where a cell speaks of such things

        if (said := almost(raw)) and raw not in self._almost_told:
            self._almost_told.add(raw)
            say(f"not a step: {said}" if find_step(raw) is None else said)

    def _decide(self, cell: RunningCell, tree: ast.Module) -> ast.Module:
        if not self.on or self.settings.mode == _OFF:
            return tree
        automatic = cell.marker is None
        if automatic and not self._takes(cell):
            return self._plain(cell, tree)
        try:
            leader = self.leader()
        except KeelError as error:
            return self._without_journal(cell, error, tree)
        try:
            if not automatic:
                return leader.decide(cell, tree)
            module = leader.decide_auto(cell, tree, again=self._again)
            self._replayed = module is not tree
            return module
        except (DiskFullError, JournalUnreachableError) as error:
            leader.forget()
            return self._without_journal(cell, error, tree)
        except KeelError as error:
            raise rejected(error) from None

    def _takes(self, cell: RunningCell) -> bool:
        """Whether auto mode leads this cell. A flow that was in auto mode still is: that is looked up once."""
        if self._leader is None and not self._auto_sought:
            self._auto_sought = True
            if remembers_auto(self.settings.journal, self.cwd):
                with contextlib.suppress(KeelError):  # said by the first step, or by whoever asks
                    self.leader()
        return self._leader is not None and self._leader.auto.takes(cell)

    def _plain(self, cell: RunningCell, tree: ast.Module) -> ast.Module:
        if self._leader is not None and self._leader.ledger.missing:
            try:
                self._leader.refuse_without(cell)
            except KeelError as error:
                raise rejected(error) from None
        return tree

    def _without_journal(self, cell: RunningCell, error: KeelError, tree: ast.Module) -> ast.Module:
        """A journal that cannot be used never stops a cell, unless nothing may be executed or done twice (K41, K42)."""
        slip = isinstance(error, WrongFileError)  # of the key's name: the records are there, and stop cells like E050
        if slip or self.settings.mode == _REPLAY or self.settings.strict or _may_do_harm(cell):
            raise rejected(error)
        if str(error) != self._told:
            say(f"steps run, not durable: {error}")
        self._told = str(error)
        return tree

    def _ends(self, cell: RunningCell, result: Any) -> None:
        recording = self.on and self.settings.mode != _OFF
        if cell.marker is None and not self._replayed:
            SEEDS.cell_ran(cell.raw)
        if self._leader is not None:
            self._leader.ends(cell, result, recording=recording)
        elif recording and not (result is not None and result.error_before_exec is not None):
            self._waiting.append((cell, finished(result), self.clock.now()))
            if _CLOCKS.search(cell.raw) and goes_on(self.settings.journal, self.cwd):
                with contextlib.suppress(KeelError):  # said by the first step
                    self.leader()  # what they made may have to be put back before anything reads it

    def _fault(self, error: Exception) -> None:
        # Ordinary steps are idempotent: they run plainly, marked not recorded (DESIGN 4.4).
        self.note_fault(error)
        if self._leader is not None:
            self._leader.forget()
        problem = InternalError(doing="looked at a step", kind=type(error).__name__)
        if self._cell is not None and _may_do_harm(self._cell):
            raise rejected(problem)
        say(f"this cell runs plainly: {problem}")

    def note_fault(self, error: BaseException) -> None:
        """Keep where keel itself failed."""
        self.faults.append("".join(traceback.format_tb(error.__traceback__)) + type(error).__name__)


def _may_do_harm(cell: RunningCell) -> bool:
    """Whether the body must not run unrecorded: its step is not idempotent, or nobody can tell."""
    if cell.marker is None:
        return False
    from keel_notebook.core.options import parse_options  # noqa: PLC0415 only where something went wrong
    from keel_notebook.core.words import Effect  # noqa: PLC0415

    try:
        return parse_options(cell.marker.line).effect is not Effect.IDEMPOTENT
    except KeelError:
        return True


_MAY_BE_A_MARK = re.compile("keel|step", re.IGNORECASE)
_CLOCKS = re.compile(r"time|now|today|uuid|urandom|secrets|random|rng|clock|Generator", re.IGNORECASE)
"""What a cell says that may read a clock or entropy (``core.clocks`` has the list)."""


def say(line: str) -> None:
    """One line on stderr, complete before anything else of the cell."""
    if sys.stderr is not None:
        write_aside(sys.stderr, f"keel: {line}\n")


def say_nested(line: str) -> None:
    """Tell that a step inside another cell is not recorded."""
    say(f"%%keel_step {line.strip()} stands inside another cell: its body runs, nothing is recorded")


def rejected(error: KeelError) -> KeelError:
    """The same error as IPython's own refusal of a cell: the body is not run, and Run All stops."""
    kind = type(error)
    refusal = type(kind.__name__, (kind, InputRejected), {"__module__": kind.__module__})(**error.facts)
    assert isinstance(refusal, KeelError)
    return refusal
