"""One step cell, from its text to what is to be done with it (DESIGN 4.2 to 4.4).

``look`` finds out what the step is now, ``answer`` asks ``core.decide`` and carries the decision out up to the
point where the body would start: it is left alone, swapped for a replay that was read whole beforehand, or refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from msgspec.structs import replace

from keel_notebook.core import decide as d
from keel_notebook.core import journalfiles, lifecycle, sharing
from keel_notebook.core.done import EXECUTED, REFUSED, REPLAYED, SKIPPED, StepDone
from keel_notebook.core.fileholds import AHEAD, WRITTEN_ONLY, ahead_after, same
from keel_notebook.core.model import Entry, FlowId, Kind, Status
from keel_notebook.core.provenance import BY_ORIGIN, LEFT, of_data
from keel_notebook.core.states import same_code_as
from keel_notebook.core.units import duration
from keel_notebook.engine.attempt import Attempt, StepNow
from keel_notebook.engine.leftovers import State
from keel_notebook.engine.looking import Looking
from keel_notebook.engine.modes import IN_MODE
from keel_notebook.engine.stepparts import (
    Body,
    Look,
    Swap,
    not_held,
    not_rewound,
    now,
    refusal,
    said_briefly,
    too_far,
    would_run,
)
from keel_notebook.errors import CannotStoreError, DivergenceError, KeelError, UntrustedError


class Stepper(Looking):
    """Looks at steps and answers what to do with them."""

    def answer(self, look: Look, policy: d.Policy) -> Body | Swap:
        """Decide, and do all of it that comes before the body.

        Raises KeelError where the step is refused: DivergenceError, DeadError, UntrustedError.
        """
        began = self._senses.monotonic()
        decision = d.decide(look.facts, look.recorded, policy, now=self._senses.now())
        if would_run(decision):
            before, look = look, self.rewound(look)
            if look is not before:
                decision = d.decide(look.facts, look.recorded, policy, now=self._senses.now())
        if policy.on_divergence is d.Response.BRANCH:
            decision = self.lanes.settled(look.facts, look.records, decision, policy, self._senses.now())
        if look.step.name in self._ledger.accept and (right := _acceptable(look, decision)) is not None:
            decision = d.Replay(self._accept(look, right), "accepted")
        match decision:
            case d.Replay():
                try:
                    return self.swap(look, decision, began)
                except UntrustedError:
                    raise
                except Exception as error:  # noqa: BLE001 a record that cannot be read affects its own step only (C56)
                    return self._unreadable(look, policy, error)
            case d.Execute(attempt, why):
                return Body(self._begin(look, attempt, why), decision)
            case d.Diverged(_, differences, response, attempt):
                return self._diverged(look, decision, differences, response, attempt)
            case d.Refuse(code, why):
                raise self.refused(look, self.refusal(look, code, why, completed=policy.completed), why, ())
            case d.Skip(why):
                raise AssertionError("only guarded steps are skipped: " + why)
            case _:
                assert_never(decision)

    def swap(self, look: Look, decision: d.Replay, began: float) -> Swap:
        """A record read whole, to be put back. Raises as ``Runner.prepare`` does."""
        entry = decision.entry
        sure = {item.name: item.digest for item in look.step.inputs.values()}
        prepared, ahead = self._runner.prepare(entry, sure=sure), ahead_after(look.facts.files, entry)
        return Swap(look.step, prepared, decision, began, ahead, self._kept(look, entry))

    @staticmethod
    def _kept(look: Look, entry: Entry) -> frozenset[str]:
        left = {item.name: item.digest for item in entry.writes} | entry.ambient.get(LEFT, {})
        return frozenset(n for n in look.facts.applied if same(left.get(n), look.step.inputs[n].digest))

    def held(self, look: Look) -> dict[str, State]:
        """The inputs of a step that hold its own change."""
        state, name = self._ledger.leftovers.state, look.step.name
        own = (item for item in look.step.inputs.values() if not (item.digest or "").startswith(BY_ORIGIN))  # clients
        found = {item.name: state(name, item.name, item.digest) for item in own}
        return {n: held for n, held in found.items() if held is not State.FREE}

    def rewound(self, look: Look) -> Look:
        """The step with its inputs as they were before it first changed them (DESIGN 5, Rewind).

        The same look where none of them holds its own change, or a person wants them as they are. Raises
        DivergenceError (E031) where they are not kept, or where something else changed them since.
        """
        held = {} if look.step.name in self._ledger.as_is else self.held(look)
        if not held:
            return look
        step, leftovers = look.step, self._ledger.leftovers
        sources = {}
        for name, state in held.items():
            before, tied = leftovers.before(step.name, name), self._senses.tied(name)
            source = None if state is State.MIXED or tied else lifecycle.holding(look.records, name, before)
            if source is None:
                made_by = self._ledger.producers.get(name, "")
                error = not_rewound(step.name, name, state, tied, made_by)
                raise self.refused(look, error, f"{name} holds its own change", ())
            sources[name] = source
        for name, source in sources.items():
            self._runner.put_back(name, source)
        later = leftovers.undone(step.name, held)
        if later:
            self._senses.say(
                f"{step.name} starts from {', '.join(held)} as before; run again: {', '.join(sorted(later))}"
            )
        return self.look(step.flow, look.cell, root=step.root)

    def as_before(self, look: Look, step: StepNow) -> str:
        """Put the inputs back as they were before a try that failed; why that cannot be done, or ""."""
        if acted := journalfiles.went_on(step.files, self._senses.files_now):
            return f"its own journal {acted} went on (KEEL-E033)"
        wanted = {name: item.digest for name, item in step.inputs.items() if of_data(item.digest)}
        held = self.inputs(wanted, look.cell.parsed)
        changed = [name for name in wanted if name in held and not same(held[name].digest, wanted[name])]
        records = self._records(step.flow) if changed else None
        for name in changed:
            source = lifecycle.holding(records, name, wanted[name]) if records is not None else None
            if source is None or self._senses.tied(name):
                return f"it changed {name}, and what that held before is not kept"
            self._runner.put_back(name, source)
        return ""

    def refuse_without(self, names: Iterable[str]) -> None:
        """Refuse a cell that reads what a replayed record could not hold. Raises CannotStoreError (E020).

        The step that makes the value executes next time, in this kernel and in the next.
        """
        if wanted := sorted(set(names) & self._ledger.missing.keys()):
            self._ledger.wanted.update(wanted)
            raise not_held(*self._ledger.missing[wanted[0]])

    def complete(self, look: Look) -> None:
        """Refuse a step that is to run on what is not as the steps above leave it: an object that lacks a replayed
        step's change (E020), a file that holds a later step's (E031). Raises KeelError."""
        try:
            self.refuse_without(look.step.inputs.keys() & self._ledger.left.keys())
        except CannotStoreError as error:
            raise self.refused(look, error, "it reads what could not be stored", ()) from None
        for path, (_, made_by) in sorted(self._ledger.ahead.items()):
            if path in look.facts.files.ahead and not look.step.as_is and self._would_read(look, path, made_by):
                refusal = too_far(look.step.name, path, made_by)
                further = d.Difference(d.Part.FILE, path, detail=AHEAD)
                raise self.refused(look, refusal, f"{path} is further on", (further,))

    def _would_read(self, look: Look, path: str, made_by: str) -> bool:
        newest = lifecycle.newest_ok(look.records, look.step.name)
        if newest is not None and any(seen.path == path and seen.role not in WRITTEN_ONLY for seen in newest.files):
            return True
        known = newest is not None and newest.code == look.step.code
        return not known and made_by != look.step.name and self._senses.names_file(look.cell.parsed.names, path)

    def ready(self, look: Look) -> None:
        """Write what must be there before a body runs: a wished retirement, and copies of what it may change."""
        self._ledger.begun(look.step.name)
        if look.facts.rerun:
            self.retire(look.step, lifecycle.RERUN)
            self._ledger.rerun.discard(look.step.name)
        suspects = self._about_to_change(look)
        if suspects:
            self._runner.copy(look.step, suspects)

    def _begin(self, look: Look, attempt: int, why: str) -> Attempt:
        self.complete(look)
        why = self._under_another_name(look) or why
        try:
            self.ready(look)
            return self._runner.begin(look.step, attempt=attempt, why=why)
        except KeelError as error:
            self._senses.say(f"{look.step.called} runs, not durable: {error}")
            return self._runner.begin_unrecorded(look.step, attempt=attempt, why=why)

    def _under_another_name(self, look: Look) -> str:
        """Say that a step executes whose code is recorded under another name, and give that as its reason; or ""."""
        step = look.step
        if look.recorded.entries or look.recorded.tries or look.recorded.rejected or not look.cell.options.name:
            return ""
        other = same_code_as(look.records, step.code, without={step.name, *self._ledger.done})
        if not other:
            return ""
        why = f"there is no record of it; the same code is recorded as {other}"
        self._senses.say(f"{step.called} executes: {why}, and replays under that name")
        return why

    def _about_to_change(self, look: Look) -> list[str]:
        """Inputs that the body may change and that no record holds: to be kept before the first attempt."""
        names = look.cell.parsed.names
        suspects = (names.mutation_suspects | names.stores | names.maybe_stores) & look.step.inputs.keys()
        return sorted(
            name
            for name in suspects
            if self._senses.copyable(name)
            and of_data(look.step.inputs[name].digest)
            and lifecycle.holding(look.records, name, look.step.inputs[name].digest) is None
        )

    def _diverged(
        self, look: Look, decision: d.Diverged, differences: Sequence[d.Difference], response: d.Response, attempt: int
    ) -> Body:
        if response is d.Response.FAIL:
            raise self.stopped(look, differences)
        said = self.tell(look, decision)
        return Body(self._begin(look, attempt, said), decision)

    def tell(self, look: Look, decision: d.Diverged) -> str:
        """Say that a step executes because it differs from its record; the differences in words.

        With ``--on-divergence branch`` the lane is left first, where that is due.
        """
        volatile = self._senses.volatile(item.name for item in decision.differences if item.part is d.Part.INPUT)
        said, took, where = said_briefly(decision.differences, volatile), decision.entry.took_s, ""
        if decision.response is d.Response.BRANCH:
            where = " in " + self.lanes.leave(look.step.name, said, decision.entry, look.records)
        last = f"; last took {duration(took)}" if took is not None and took >= 1 else ""
        self._senses.say(f"{look.step.called} executes{where}: {said}{last}")
        return said

    def stopped(self, look: Look, differences: Sequence[d.Difference], *, way_out: str = "") -> KeelError:
        """The error of a difference that stops (``--on-divergence fail``); ``way_out``: its own next step."""
        said = said_briefly(differences)
        error = DivergenceError(step=look.step.name, detail=said, next=way_out)
        return self.refused(look, error, said, tuple(differences))

    def _unreadable(self, look: Look, policy: d.Policy, error: Exception) -> Body:
        reason = str(error) if isinstance(error, KeelError) else type(error).__name__
        why = f"its record cannot be read ({reason})"
        if policy.mode is d.Mode.REPLAY or policy.on_divergence is d.Response.FAIL:
            case = IN_MODE.get(policy.mode, "unreadable")
            raise self.refused(look, DivergenceError(step=look.step.name, detail=why, case=case), why, ())
        self._senses.say(f"{look.step.called} executes: {why}")
        attempt = look.recorded.tries + 1
        return Body(self._begin(look, attempt, why), d.Execute(attempt, why))

    def refusal(self, look: Look, code: str, why: str, *, completed: bool = False) -> KeelError:
        """The error behind a refusal."""
        return refusal(look, code, why, journal=self._ledger.journal_id, completed=completed)

    def refused(self, look: Look, error: KeelError, why: str, differences: tuple[d.Difference, ...]) -> KeelError:
        """Note that a step was refused, and give the error."""
        done = replace(now(look.step, REFUSED), why=why, differs=differences, refusal=error.code)
        self._write_down(done, look.step.flow)
        return error

    def _write_down(self, done: StepDone, flow: FlowId) -> None:
        self._ledger.note(done)
        self._runner.decided(done, flow)

    def executed(self, body: Body, entry: Entry) -> None:
        """Keep what a body that ran has come to."""
        decision = body.decision
        done = replace(
            now(body.attempt.step, EXECUTED),
            entry=entry.entry if entry.status is Status.OK and body.attempt.recorded else None,
            why=entry.why,
            differs=decision.differences if isinstance(decision, d.Diverged) else (),
            took_s=entry.took_s,
        )
        if done.differs:  # an executed step is in its own entry; only its differences are not
            self._write_down(done, body.attempt.step.flow)
        else:
            self._ledger.note(done)
        if done.entry is not None:
            self._senses.stands(done.step, entry.files)
            self._ledger.went(done.step, dict.fromkeys(seen.path for seen in entry.files))

    def unrecorded(self, body: Body, why: str) -> None:
        """Keep that a body ran and nothing of it could be recorded."""
        took = self._senses.monotonic() - body.attempt.began
        self._ledger.note(replace(now(body.attempt.step, EXECUTED), why=why, took_s=took))

    def skipped(self, look: Look, why: str) -> None:
        """Keep that a guarded step was taken as done: its body does not run and there are no values."""
        self._write_down(replace(now(look.step, SKIPPED), why=why), look.step.flow)

    def replayed(self, swap: Swap) -> None:
        """Keep that a record was put back."""
        step, entry = swap.step, swap.prepared.entry
        took = self._senses.monotonic() - swap.began
        done = replace(
            now(step, REPLAYED), entry=entry.entry, why=swap.decision.why, replay_s=took, took_s=entry.took_s
        )
        self._write_down(done, step.flow)
        self._senses.stands(step.name, entry.files)
        self._ledger.went(step.name, swap.ahead)

    def retire(self, step: StepNow, key: str) -> None:
        """Write that earlier records of the step are rejected (``rerun``, ``forget``) or its deaths are."""
        self._runner.note(Kind.RETIRE, step, key=key, why=f"asked for by %keel {key}")

    def _accept(self, look: Look, entry: Entry) -> Entry:
        self._ledger.accept.discard(look.step.name)
        kept = sharing.accepted(entry.ambient, look.facts.objects.get(entry.entry))
        kept.pop(d.FAILED_CALLS, None)  # a person says that they are right as they are
        return self._runner.accept(look.step, replace(entry, ambient=kept))


def _acceptable(look: Look, decision: d.Decision) -> Entry | None:
    """The record that a person may declare right: the one that differs, or one that is equal and was not enough."""
    if isinstance(decision, d.Diverged):
        return decision.entry
    newest = next((entry for entry in look.recorded.entries if entry.status is Status.OK), None)
    if not isinstance(decision, d.Execute) or look.facts.rerun or look.facts.always or newest is None:
        return None
    return None if d.lacking(newest, look.facts.needed) else newest
