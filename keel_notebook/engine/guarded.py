"""Steps that must not happen twice: intent before, result after, both synced, under the lease (Z4, Z15, Z19-Z23).

A record that holds is put back like any other, without the lease (K26). For everything else the lease is taken
first, the journal is read again (its last holder may have written), and only then it is decided: fire, take as done,
or refuse. ``Runner.finish`` gives the lease back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.core import decide as d
from keel_notebook.core import effects as e
from keel_notebook.core.model import Effect, Entry, FlowId, Input, Kind, Status, entry_id
from keel_notebook.core.ports import Clock, FlowRecords, Journal
from keel_notebook.engine.attempt import StepNow
from keel_notebook.engine.callparts import Held
from keel_notebook.engine.runner import Runner
from keel_notebook.engine.stepparts import Assumed, Body, Look, Swap
from keel_notebook.engine.stepper import Stepper
from keel_notebook.errors import AmbiguousError, DamagedError, DivergenceError, KeelError, LeaseError, NotNowError


def _anew(step: str) -> str:
    """What helps where neither a rerun nor accepting does: the effect must not happen twice under its key."""
    return (
        f"`%keel why {step}` shows what differs. `%keel rerun {step} --new-key` does it again; "
        f"with its cell as it was, its record comes back."
    )


class Key(Struct, frozen=True):
    """Who a step is for the other side: its identity, and the idempotency key made of it (Z23)."""

    identity: str
    idempotency_key: str


class EffectParts(Struct, frozen=True):
    """What guarded steps work with."""

    journal: Journal
    runner: Runner
    clock: Clock
    guard: Held | None
    """None: nobody told which notebook this is, so nothing guarded may start."""
    flow_key: str
    copies: Callable[[], Iterable[FlowId]]
    """Other flows that are known by their notebook's path only, where this one is too: it may be their copy."""
    say: Callable[[str], None]


def key_of(step: StepNow, look: Look, flow_key: str) -> Key:
    """The key of a step: equal in every attempt. ``step``: the look's, or with its inputs as before (Rewind)."""
    identity = e.step_identity(look.cell.options.key, step.code, step.inputs, look.recorded.generation)
    key = e.idempotency_key(flow=step.flow, flow_key=flow_key, step=step.name, identity=identity)
    return Key(identity, key)


class Guarded:
    """Decides about guarded steps of one flow, and begins them."""

    def __init__(self, parts: EffectParts) -> None:
        self._parts = parts

    def answer(self, stepper: Stepper, look: Look, policy: d.Policy) -> Body | Swap | Assumed:
        """Decide, and do all of it that comes before the body.

        Raises KeelError where the step is refused: AmbiguousError (E060), LeaseError (E030), DivergenceError (E031),
        DeadError (E032), and what the journal raises where the intent cannot be written. Then nothing has happened.
        """
        ordinary, answer = self._decided(look, policy)
        if isinstance(answer, d.Replay):
            return self._swap(stepper, look, ordinary, answer)
        if isinstance(answer, d.Refuse) and answer.code != "E060":
            raise self._refused(stepper, look, answer, policy)
        if isinstance(answer, d.Diverged):
            raise self._stopped(stepper, look, answer)
        try:
            self._take(look)
        except LeaseError as error:
            raise stepper.refused(look, error, "another kernel holds this flow", ()) from None
        try:
            return self._under_the_lease(stepper, stepper.look(look.step.flow, look.cell, root=look.step.root), policy)
        except BaseException:
            self._give_back()
            raise

    def _under_the_lease(self, stepper: Stepper, look: Look, policy: d.Policy) -> Body | Swap | Assumed:
        ordinary, answer = self._decided(look, policy)
        if isinstance(answer, e.Fire):  # the inputs that it fires with are those that its key is made of
            before, look = look, stepper.rewound(look)
            if look is not before:
                ordinary, answer = self._decided(look, policy)
        match answer:
            case d.Replay():
                self._give_back()
                return self._swap(stepper, look, ordinary, answer)
            case e.Fire():
                return self._fire(stepper, look, ordinary, answer)
            case e.Assume():
                self._assume(look, answer)
                self._give_back()
                return Assumed(look, answer.why)
            case d.Refuse():
                raise self._refused(stepper, look, answer, policy)
            case d.Diverged():
                raise self._stopped(stepper, look, answer)
            case d.Execute() | d.Skip():
                raise AssertionError("a guarded step is fired, not executed")
            case _:
                assert_never(answer)

    def _decided(self, look: Look, policy: d.Policy) -> tuple[d.Decision, e.StepDecision]:
        options, records = look.cell.options, look.records
        facts, effect = look.facts, options.effect
        if effect is Effect.EXACTLY_ONCE:  # no wish, and no lost value, makes it happen again (Z15)
            facts = replace(facts, rerun=False, needed=frozenset())
        ordinary = d.decide(facts, look.recorded, policy, now=self._parts.clock.now())
        key = key_of(look.step, look, self._parts.flow_key).idempotency_key
        history = e.step_history(records.entries, look.step.name, key)
        anew = look.recorded.generation > 0
        if effect is Effect.EXACTLY_ONCE and not history.under_key and not anew:
            history = replace(history, copies=self._in_copies(look.step.name))
        word = e.OnAmbiguous(options.on_ambiguous or e.OnAmbiguous.FAIL)
        answer = e.decide_step(
            ordinary, effect=effect, facts=facts, history=history, on_ambiguous=word, anew=anew,
            untrusted=records.untrusted,
        )  # fmt: skip
        return ordinary, answer

    def _in_copies(self, step: str) -> Sequence[Entry]:
        found: list[Entry] = []
        for flow in self._parts.copies():
            records: FlowRecords = self._parts.journal.records(flow)
            found += [x for x in records.entries if x.step == step and x.status is Status.OK and x.idempotency_key]
        return found

    def _take(self, look: Look) -> None:
        guard = self._parts.guard
        if guard is None:
            detail = f"{look.cell.options.effect} needs a notebook that is known: `%keel flow NAME` first"
            raise NotNowError(where=f"step {look.step.name}", detail=detail, case="unnamed")
        guard.take()

    def _give_back(self) -> None:
        assert self._parts.guard is not None
        self._parts.guard.give_back()

    def _fire(self, stepper: Stepper, look: Look, ordinary: d.Decision, fire: e.Fire) -> Body:
        """Write what must be there before the body starts. ``Runner.finish`` gives the lease back."""
        assert self._parts.guard is not None
        assert isinstance(ordinary, d.Execute | d.Diverged)
        why = stepper.tell(look, ordinary) if isinstance(ordinary, d.Diverged) else fire.why
        stepper.complete(look)
        stepper.ready(look)
        step = self.named(look)
        if fire.ambiguous is not None:
            self._audit(step, fire.ambiguous, e.OnAmbiguous.RERUN)
        attempt = self._parts.runner.begin_guarded(
            step, self._parts.guard, attempt=fire.attempt, why=why, intent=fire.intent
        )
        return Body(attempt, ordinary)

    def _swap(self, stepper: Stepper, look: Look, ordinary: d.Decision, answer: d.Replay) -> Swap:
        try:
            swap = stepper.swap(look, answer, self._parts.clock.monotonic())
        except Exception as error:  # noqa: BLE001 whatever a record's own classes raise: it is never done again for that
            problem = error if isinstance(error, KeelError) else DamagedError(
                what="the record", step=look.step.name, detail=type(error).__name__
            )  # fmt: skip
            raise stepper.refused(look, problem, "its record cannot be read", ()) from None
        if not isinstance(ordinary, d.Replay):
            self._parts.say(f"{look.step.name} does not happen again: {answer.why}")
        elif look.facts.rerun:
            self._parts.say(f"{look.step.name} is done: only `%keel rerun {look.step.name} --new-key` does it again")
        return swap

    @staticmethod
    def _stopped(stepper: Stepper, look: Look, answer: d.Diverged) -> KeelError:
        name = look.step.name
        again = f"`%keel why {name}` shows what differs. `%keel rerun {name}` runs it."
        way_out = _anew(name) if look.cell.options.effect is Effect.EXACTLY_ONCE else again
        return stepper.stopped(look, answer.differences, way_out=way_out)

    def _refused(self, stepper: Stepper, look: Look, answer: d.Refuse, policy: d.Policy) -> KeelError:
        if answer.code == "E031" and policy.mode is not d.Mode.REPLAY:
            error = DivergenceError(step=look.step.name, detail=answer.why, case="once")
            return stepper.refused(look, error, answer.why, ())
        if answer.code != "E060":
            return stepper.refused(
                look, stepper.refusal(look, answer.code, answer.why, completed=policy.completed), answer.why, ()
            )
        begun = [x for x in look.records.entries if x.step == look.step.name and x.status is Status.INTENT]
        detail = f"begun in run {begun[-1].run}, and its outcome is not recorded" if begun else answer.why
        case = "copy" if answer.why == e.DONE_IN_COPY else ""
        return stepper.refused(look, AmbiguousError(step=look.step.name, detail=detail, case=case), detail, ())

    def _assume(self, look: Look, answer: e.Assume) -> None:
        """Write, once, that a person's word takes an intent as done (Z21, Z22)."""
        if not answer.first:
            return
        step, journal, now = self.named(look), self._parts.journal, self._parts.clock.now()
        self._audit(step, answer.entry, e.OnAmbiguous.SKIP)
        seq = journal.next_seq()
        skipped = replace(
            answer.entry, entry=entry_id(journal.run, seq), run=journal.run, seq=seq, status=Status.SKIPPED,
            ended_at=now, fence=journal.fence, why=answer.why,
        )  # fmt: skip
        journal.append(skipped, synced=True)

    def named(self, look: Look) -> StepNow:
        """The step with its effect and idempotency key, for its entries."""
        options = look.cell.options
        key = key_of(look.step, look, self._parts.flow_key).idempotency_key
        return replace(look.step, effect=options.effect, idempotency_key=key, effect_kind=options.kind)

    def _audit(self, step: StepNow, intent: Entry, word: e.OnAmbiguous) -> None:
        # Digests of the inputs without their previews: an audit holds no value, and still counts as an attempt.
        journal, now = self._parts.journal, self._parts.clock.now()
        seq = journal.next_seq()
        inputs = tuple(Input(item.name, item.digest) for item in step.inputs.values())
        audit = Entry(
            entry=entry_id(journal.run, seq), flow=step.flow, run=journal.run, seq=seq, step=step.name, kind=Kind.AUDIT,
            status=Status.OK, effect=intent.effect, code=step.code, inputs=inputs, fence=journal.fence,
            ambient=e.audit_text(intent, word), started_at=now, ended_at=now, why=f"ambiguous: {word}",
        )  # fmt: skip
        journal.append(audit, synced=True)  # Z22
