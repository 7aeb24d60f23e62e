"""Leads one cell through the parts: look, decide, run and record, or put back (DESIGN 4).

The way of a cell: ``decide`` (its module is about to be compiled: look, decide, and leave the body alone, swap it
for a replay, or refuse) → the body runs as an ordinary cell → ``end`` (record it, before the reply is sent).
``session`` imports this at the first step: a kernel that has loaded keel and uses no step pays for none of it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from contextvars import Token
from typing import Any, TypeVar

from msgspec.structs import replace

from keel_notebook.adopting import adopted
from keel_notebook.automatic import Automatic
from keel_notebook.calling import plain_scope, step_scope
from keel_notebook.capture.cell import RunningCell, call, finished
from keel_notebook.capture.slotnames import classes_left_alone
from keel_notebook.capture.trying import tried
from keel_notebook.cells import Analysis, analysis_of, outcome, policy, show_result
from keel_notebook.core import decide as d
from keel_notebook.core.auto import only_about_keel
from keel_notebook.core.ids import default_flow, text_digest
from keel_notebook.core.model import Digest, Effect, Entry, Input, NotStored, Status
from keel_notebook.core.options import StepOptions, parse_options, refuse_contradictions
from keel_notebook.core.parameters import choose_record
from keel_notebook.core.sources import body
from keel_notebook.core.undo import PREFIX
from keel_notebook.engine import scope
from keel_notebook.engine.attempt import StepNow
from keel_notebook.engine.calls import Calls
from keel_notebook.engine.guarded import key_of
from keel_notebook.engine.order import FlowKeeper, FlowRules
from keel_notebook.engine.plaincells import PlainAttempt
from keel_notebook.engine.restore import Restorer, RestoreReport
from keel_notebook.engine.scope import StepScope
from keel_notebook.engine.stepparts import NOTHING_SEEN, Assumed, Body, Look, Seen, StepCell, Swap, step_cell
from keel_notebook.engine.tries import tries_of
from keel_notebook.engine.undoing import Undos
from keel_notebook.errors import DuplicateStepError, KeelError, NotNowError, SettingsError, UndoFailedError
from keel_notebook.plainly import Plainly, PlainRan
from keel_notebook.recording import Recording
from keel_notebook.verifying import Verifier
from keel_notebook.wiring import Attached, Kernel, attach

T = TypeVar("T")


def _without_a_trace(method: Callable[..., T]) -> Callable[..., T]:
    """A method of ``Leader`` that looks at values and leaves the notebook's classes as they were."""

    @functools.wraps(method)
    def looking(self: Leader, *args: Any, **options: Any) -> T:
        with classes_left_alone(self.definitions.classes):
            return method(self, *args, **options)

    return looking


class Leader:
    """Leads the cells of one kernel, from the first step on."""

    def __init__(self, kernel: Kernel, settings: Any) -> None:
        self._kernel = kernel
        self._settings = settings
        self.ledger, self.definitions = kernel.ledger, kernel.definitions
        self.attached: Attached = attach(kernel, settings)
        self.auto = Automatic(kernel, self.attached.flow.auto_s)
        self.verifier = Verifier(settings.verify, read=self.attached.journal.read, say=kernel.say)
        self._recording = Recording(kernel, self.auto, self._tell_degraded)
        self._plainly = Plainly(kernel, self._tell_degraded)
        self.last: RunningCell | None = None
        self._early: list[tuple[RunningCell, Status, float]] = []
        self._root: str | None = None
        self._live: Body | Swap | Assumed | PlainAttempt | None = None
        self._look: Look | None = None
        self._told: str = ""
        self._calls: Calls | None = None
        self._scope: Token[StepScope | None] | None = None
        self._plain_scope: StepScope | None = None
        self.undos = Undos(kernel.ledger)
        rules = FlowRules(strict=bool(settings.strict), frozen=bool(settings.frozen), version=str(settings.app_version))
        journal, title = self.attached.journal, lambda: self.attached.flow.title
        self.keeper = FlowKeeper(rules, journal=journal, clock=kernel.clock, say=kernel.say, title=title)

    def close(self) -> None:
        """End the run in the journal. Safe to call twice."""
        self.keeper.end()
        if self._calls is not None and self._calls.parts.guard is not None:
            self._calls.parts.guard.close()
        self.attached.close()

    def unsettled(self) -> list[tuple[RunningCell, str, float]]:
        """Plain cells that ran before it came out which flow this is."""
        return [(cell, str(status), at) for cell, status, at in self._early]

    def begins(self) -> None:
        """A cell begins."""
        self._live = self._look = self._plain_scope = None
        self.ledger.cell_starts(self._kernel.clock.monotonic())

    def forget(self) -> None:
        """What was begun for the running cell does not count: it runs plainly, or not at all."""
        if isinstance(self._live, Body):
            self._live.attempt.release()
        self._live = self._look = None

    # ---- a step ------------------------------------------------------------------------------------------

    @_without_a_trace
    def decide(self, cell: RunningCell, tree: ast.Module) -> ast.Module:
        """The module to run for a step. Raises KeelError where the step is refused."""
        assert cell.marker is not None
        options = parse_options(cell.marker.line)
        refuse_contradictions(options)
        self.refuse_without(cell)
        analysis = self._analysis(cell)
        if options.name.startswith(PREFIX):
            raise SettingsError(where=options.name, detail=f"names that begin with {PREFIX} are those of undos")
        name = options.name or self._unnamed(cell, analysis)
        if self.ledger.clashes(name, cell_id=cell.cell_id, source=cell.raw, in_file=self.attached.file.named):
            raise DuplicateStepError(step=name)
        return self._lead(cell, step_cell(options, name, cell, self.attached.kept_source(cell.raw), analysis), tree)

    @_without_a_trace
    def decide_auto(self, cell: RunningCell, tree: ast.Module, *, again: bool) -> ast.Module:
        """The module to run for a cell without a step line in auto mode, or KeelError; ``again``: run once more."""
        self.refuse_without(cell)
        analysis = self._analysis(cell)
        if choose_record(cell.raw):
            self.ledger.parameters = analysis.code or ""
        self._settle(analysis.code)
        try:
            self._live = self.auto.cheap(cell, analysis, self.attached)
        except KeelError:
            self._tell_degraded()
            return tree
        if self._live is not None:
            return tree
        name = self._unnamed(cell, analysis)
        if again and self._settings.mode == d.Mode.LIVE:
            self.ledger.again.add(name)
            self.ledger.as_is.add(name)
        step = step_cell(StepOptions(), name, cell, self.attached.kept_source(cell.raw), analysis)
        return self._lead(cell, step, tree, self.auto.seen)

    def _unnamed(self, cell: RunningCell, analysis: Analysis) -> str:
        return cell.cell_id or self.ledger.unnamed(analysis.code or "?")

    def _lead(self, cell: RunningCell, step: StepCell, tree: ast.Module, seen: Seen = NOTHING_SEEN) -> ast.Module:
        self._look = self._look_at(step, seen)
        self._tell_degraded()
        admitted = self._admitted(cell, self._look)
        if self.keeper.behind:
            self._look = self._look_at(step, seen)
        self._live = self._answer_or_undo(cell, self._look, admitted)
        if isinstance(self._live, Swap):
            return call(self._put_back)
        if isinstance(self._live, Assumed):
            return call(self._take_as_done)
        key = key_of(self._live.attempt.step, self._look, self.attached.flow.key)
        here = step_scope(step.name, key, self._live.attempt.entry.entry, step.parsed.parsed)
        self._scope = scope.enter(here)
        if step.options.retries or step.options.timeout_s is not None:
            say = self._kernel.say
            return tried(tree, tries_of(self._look, self._live.attempt, here, stepper=self.attached.stepper, say=say))
        return tree

    def _admitted(self, cell: RunningCell, look: Look) -> d.Policy:
        """How the step's differences are answered, where its flow lets it in at all."""
        options, keeper = look.cell.options, self.keeper
        asked = policy(self._settings.mode, options)
        if self._settings.mode == d.Mode.VERIFY:
            return self.verifier.policy(asked, options, look.step.name)
        guard, told = self.calls(cell).parts.guard if keeper.rules.any else None, bool(options.on_divergence)
        try:
            return keeper.admit(look.step.name, look.records, guard, asked, told=told, most=self._settings.most_steps)
        except KeelError as error:
            raise self.attached.stepper.refused(look, error, error.reason, ()) from None

    def _answer_or_undo(self, cell: RunningCell, look: Look, policy: d.Policy) -> Body | Swap | Assumed:
        if not self.undos.going(look.records):
            return self._answer(cell, look, policy)
        try:  # O28: what is recorded comes back, so that it can be undone; nothing else happens
            return self._answer(cell, look, replace(policy, mode=d.Mode.REPLAY))
        except KeelError:
            detail = "steps are being undone: `%keel undo` goes on; until then nothing is executed"
            raise UndoFailedError(step=look.step.name, error=detail) from None

    def _answer(self, cell: RunningCell, look: Look, policy: d.Policy) -> Body | Swap | Assumed:
        attached = self.attached
        if look.cell.options.effect is Effect.IDEMPOTENT:
            return attached.stepper.answer(look, policy)
        guarded = attached.guarded_on(self.calls(cell))  # steps and calls of a kernel hold one lease
        return guarded.answer(attached.stepper, look, policy)

    def _take_as_done(self) -> None:
        """An ambiguous step is taken as done (skip): nothing runs, and nothing older stands in for what it makes."""
        assumed, ledger = self._live, self.ledger
        assert isinstance(assumed, Assumed)
        step, names = assumed.look.step.name, assumed.look.cell.parsed.names
        for name in names.stores | names.maybe_stores:
            self._kernel.shell.user_ns.pop(name, None)
            ledger.missing[name] = (step, NotStored(name, "unknown", "its step was taken as done (skip)"))
        self._kernel.say(f"{step}: {assumed.why}; nothing ran")
        self.attached.stepper.skipped(assumed.look, assumed.why)

    # ---- durable calls -----------------------------------------------------------------------------------

    def calls(self, cell: RunningCell) -> Calls:
        """What carries out durable calls, on the flow that this notebook turns out to be."""
        if self._root is None:  # every durable call asks here
            self._settle(self._analysis(cell).code)
        return self.calls_of_flow()

    def calls_of_flow(self) -> Calls:
        """The same as the flow is known now, without a cell that says which one it is."""
        if self._calls is None or self._calls.parts.flow != self.attached.flow.id:
            self._calls = self.attached.calls_on(self.attached.flow)
        return self._calls

    def take_over(self) -> None:
        """Take the flow's lease from a holder that is stopped or gone (`%keel flow --take`). Raises LeaseError."""
        guard = self.calls_of_flow().parts.guard
        if guard is None:
            raise NotNowError(where="%keel flow --take", detail="this notebook has no flow of its own", case="unnamed")
        guard.take_over()

    def plain_scope(self, cell: RunningCell) -> StepScope:
        """The implicit step of a plain cell that makes a durable call."""
        if self._plain_scope is None:
            analysis, attached = self._analysis(cell), self.attached
            self._plain_scope = plain_scope(
                cell.cell_id or self.ledger.unnamed(analysis.code or "?"),
                analysis.parsed,
                inputs=attached.stepper.inputs(analysis.names.reads - analysis.names.stores, analysis),
                went_on=attached.went_on(attached.journal.records(attached.flow.id), self._root or ""),
                unrecorded=cell.marker is not None,
            )
        return self._plain_scope

    def _analysis(self, cell: RunningCell) -> Analysis:
        return analysis_of(cell.transformed, self._kernel.shell.transform_cell)

    def _look_at(self, step: StepCell, seen: Seen = NOTHING_SEEN) -> Look:
        root = self._settle(step.parsed.code)
        return self.attached.stepper.look(self.attached.flow.id, step, root=root, seen=seen)

    def inputs_of(self, source: str) -> tuple[Input, ...]:
        """What a step with this text would read if it ran now. Nothing is executed."""
        transform = self._kernel.shell.transform_cell
        try:
            parsed = analysis_of(transform(body(source)), transform)
        except SyntaxError:
            return ()  # it cannot run either
        return tuple(self.attached.stepper.inputs(parsed.reads, parsed).values())

    def _settle(self, code: Digest | None) -> str:
        if self._root is None:
            self._root = self._first_step(code)
            early, self._early = self._early, []
            self._plainly.settle(self.attached, self._root)
            for cell, status, at in early:
                self._plainly.keep(self.attached, PlainRan(self._analysis(cell), cell, status, at, early=True))
        return self._root

    def _first_step(self, code: Digest | None) -> str:
        """Settle which flow this is, now that its first step is known; the root where nobody tells."""
        if self.attached.flow.id == default_flow():
            return text_digest("root", code or "?")[:16]
        self.attached, renamed = self.attached.with_first_step(code)
        if renamed:
            self._kernel.say("this notebook was renamed: its records are those of the notebook that is gone")
        return ""

    def refuse_without(self, cell: RunningCell) -> None:
        """Refuse a cell that reads what a replayed record could not hold, before it runs. Raises CannotStoreError.

        A step whose object is there but lacks a change is asked later: it may replay.
        """
        names, space, left = self._analysis(cell).names, self._kernel.shell.user_ns, self.ledger.left
        lost = {n for n in names.reads if n not in space}
        if left and cell.marker is None:
            lost |= self.attached.reach(names.reads, names) & left.keys()
        try:
            self.attached.stepper.refuse_without(lost)
        except KeelError:
            self.plain(cell, Status.FAILED, self._kernel.clock.now())
            raise

    def _tell_degraded(self) -> None:
        problem = self.attached.journal.problem
        told = str(problem) if problem is not None else ""
        if told and told not in (self._told, self._recording.told):
            self._kernel.say(f"not durable: {told}")
        self._told = self._recording.told = told

    def _put_back(self) -> None:
        swap = self._live
        assert isinstance(swap, Swap)
        lost = self.attached.runner.replay(
            swap.prepared, show=functools.partial(show_result, self._kernel.shell), keep=swap.keep
        )
        if lost:
            self._kernel.say(f"{swap.step.called}: not put back: {'; '.join(lost)}")
        self.attached.stepper.replayed(swap)

    # ---- the end of a cell -------------------------------------------------------------------------------

    @_without_a_trace
    def ends(self, cell: RunningCell, result: Any, *, recording: bool) -> None:
        """A cell ended; ``result`` is IPython's, None where it was cancelled. Plain cells are kept if ``recording``."""
        live, look = self._live, self._look
        if look is not None:
            self.keeper.last = Status(finished(result))
        self._live = self._look = None
        here = scope.current()
        if self._scope is not None:
            scope.leave(self._scope)
            self._scope = None
        try:
            if isinstance(live, Body):
                ended = outcome(Status(finished(result)), result, len(here.failed) if here is not None else 0)
                entry = self._recording.step(self.attached, live, ended, durable=here is not None and here.called)
                if entry is not None and look is not None:
                    self._recording.slips(look, entry)
                    if self._settings.mode == d.Mode.VERIFY:
                        self.verifier.compare(look, entry, now=self._kernel.clock.now())
                elif cell.marker is None and finished(result) == Status.OK:  # a cheap cell of auto mode after all
                    self._made(cell)
            elif isinstance(live, PlainAttempt):
                self.last = cell
                if finished(result) == Status.OK:
                    self._made(cell)
                self._recording.plain(self.attached, live, outcome(Status(finished(result)), result))
            elif isinstance(live, Swap):
                if not live.keep:  # else the values hold this step's change already
                    self.ledger.ran(replace(live.prepared.entry, step=live.step.name))
                self.ledger.lacks(live.prepared.entry, keep=live.keep)
            elif look is None and recording and not (result is not None and result.error_before_exec is not None):
                self.plain(cell, Status(finished(result)), self._kernel.clock.now())
            self._tell_degraded()
        finally:
            self.ledger.cell_ended(self._kernel.clock.monotonic())

    def plain(self, cell: RunningCell, status: Status, at: float, *, then: Sequence[RunningCell] = ()) -> None:
        """Keep that a plain cell ran: its text, what it may have read and bound. ``at`` is wall time; ``then``: cells
        that ran after it and that nobody looked at yet, so that names may hold something else by now."""
        if only_about_keel(cell.raw):
            return
        if status is Status.OK and choose_record(cell.raw):
            self.ledger.parameters = self._analysis(cell).code or ""
        self.last = cell
        if status is Status.OK:
            self._made(cell, then)
        if self._root is None:  # which flow this is comes out with the first step
            self._early.append((cell, status, at))
            return
        self._plainly.keep(self.attached, PlainRan(self._analysis(cell), cell, status, at))

    def _made(self, cell: RunningCell, then: Sequence[RunningCell] = ()) -> None:
        """A plain cell ran well: what clocks and entropy made in it is put back as it was, where this run goes on."""
        self._plainly.made(self.attached, self._analysis(cell), [self._analysis(each).names for each in then])
        self._plainly.settle(self.attached, self._root)

    # ---- what a person asks for --------------------------------------------------------------------------

    def set_auto(self, min_s: float | None) -> None:
        """Auto mode on, for cells slower than ``min_s`` seconds, or off (None). Remembered with the flow."""
        self.auto.min_s = min_s
        self.attached = self.attached.with_auto(min_s)

    def retire(self, name: str, key: str) -> None:
        """Write that the records of a step (``forget``) or its deaths (``revive``) no longer count."""
        step = StepNow(flow=self.attached.flow.id, name=name, source="", code=None, inputs={}, cell=None)
        self.attached.stepper.retire(step, key)

    def restore(self, names: Sequence[str] = (), *, run: bool = False) -> RestoreReport:
        """Put names back; with ``run``, run the cells that no record holds. Raises UntrustedError (E050)."""
        attached = self.attached
        restorer = Restorer(
            runner=attached.runner,
            ledger=self.ledger,
            shell=self._kernel.shell,
            in_file=attached.file.has,
            written=attached.file.source_of,
        )
        return restorer.restore(attached.journal.records(attached.flow.id), names, run=run)

    def adopt(self, name: str) -> Entry:
        """Record what the last executed cell left, without executing it. NotNowError (E006): it bound no name."""
        if self.last is None:
            raise NotNowError(where="%keel adopt", detail="no cell ran before this one", case="adopt")
        cell, analysis = self.last, self._analysis(self.last)
        look = self._look_at(StepCell(StepOptions(name=name), name, self.attached.kept_source(cell.raw), analysis))
        return adopted(look, analysis, self._kernel, self.attached)
