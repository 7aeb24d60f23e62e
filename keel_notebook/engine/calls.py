"""Durable calls: one journaled call inside a step (DESIGN 3.2, 5).

The way of a call: ``claim`` (its place and the digests of its arguments, at the very entry) → ``begin`` (decide:
give the recorded result, refuse, or go ahead) → the function runs → ``finish`` or ``fail`` (written before the result
is released, K9). An idempotent call writes one entry, when it has ended: a kernel that dies in it runs it again,
which is what an entry ``running`` would say too. A guarded call writes its intent first, both synced (Z4).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, assert_never

from keel_notebook.core import calls as c
from keel_notebook.core.decide import Execute, Mode, Refuse, Replay
from keel_notebook.core.effects import Assume, Fire, OnAmbiguous, audit_text, idempotency_key
from keel_notebook.core.model import Effect, Entry, FlowId, Input, Kind, NotStored, Payload, Problem, Status, entry_id
from keel_notebook.core.ports import Ambient, Clock, Codec, Definitions, Digester, Journal
from keel_notebook.engine import callvalues, plain, scope
from keel_notebook.engine.arguments import ArgumentDigests, Arguments
from keel_notebook.engine.changes import Changes, Watched
from keel_notebook.engine.prints import Prints
from keel_notebook.engine.scope import StepScope
from keel_notebook.errors import (
    AmbiguousError,
    CannotStoreError,
    DivergenceError,
    KeelError,
    SettingsError,
    UntrustedError,
)


class Held(Protocol):
    """The lease that guarded calls need."""

    def take(self) -> None:
        """Have it, or raise LeaseError (E030)."""

    def give_back(self) -> None:
        """Not needed any more by this call."""

    def check(self) -> None:
        """Raise LeaseError (E030) if it was lost."""


@dataclass(frozen=True, slots=True)
class CallParts:
    """What durable calls work with."""

    journal: Journal
    codec: Codec
    digester: Digester
    definitions: Definitions
    clock: Clock
    namespace: dict[str, Any]
    """The notebook's names."""
    flow: FlowId
    flow_key: str = ""
    guard: Held | None = None
    """None: guarded calls are refused, because nobody told which notebook this is."""
    ambient: Ambient | None = None
    """For ``keel.loop``: random state goes on where it was."""
    sleep: Callable[[float], None] = lambda _: None
    chance: Callable[[], float] = lambda: 0.5
    """Numbers from 0 to 1, for jitter."""
    entropy: Callable[[int], bytes] = bytes
    mode: Mode = Mode.LIVE
    say: Callable[[str], None] = lambda _: None
    lock: AbstractContextManager[Any] = field(default_factory=threading.RLock)


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How one call is made. The defaults are those of DESIGN 3.2."""

    key: Any = None
    effect: Effect = Effect.IDEMPOTENT
    on_ambiguous: OnAmbiguous = OnAmbiguous.FAIL
    retries: int = 0
    timeout_s: float | None = None
    on_error: str = "raise"
    trust_key: bool = False


PLAIN_OPTIONS = CallOptions()


@dataclass(slots=True)
class Claim:
    """A call that was made: its place is taken, nothing has run."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    options: CallOptions
    scope: StepScope
    place: c.Place
    arguments: Arguments
    seq: int
    idempotency_key: str = ""

    @property
    def path(self) -> str:
        """Where calls that this call's function makes are placed."""
        return f"{self.place.call}[{self.place.key}#{self.place.occurrence}]"


@dataclass(frozen=True, slots=True)
class Given:
    """The call need not run: this is its value."""

    value: Any
    awaited: bool = False


@dataclass(slots=True)
class Going:
    """The call is to run now."""

    claim: Claim
    now: c.CallNow
    watched: Watched | None
    entry: Entry | None
    """The intent of a guarded call."""
    started: float
    began: float
    attempts: int = 1
    durable: bool = True
    awaited: bool = False
    unreplayable: tuple[NotStored, ...] = ()


class Calls:
    """Carries out the durable calls of one kernel on one flow."""

    def __init__(self, parts: CallParts) -> None:
        self.parts = parts
        self.prints = Prints(digester=parts.digester, definitions=parts.definitions, namespace=parts.namespace)
        self._arguments = ArgumentDigests(digester=parts.digester, prints=self.prints, salt=parts.journal.salt)
        self._changes = Changes(self._arguments)
        self._undurable = False
        self._run = parts.journal.run

    # ---- one call

    def claim(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], options: CallOptions
    ) -> Claim:
        """Take the place of a call: at its very entry, so that order is the order of calling (K4, Z1, Z2)."""
        parts = self.parts
        with parts.lock:
            here = self._scope()
            arguments = self._arguments.of(args, kwargs)
            name = getattr(function, "__name__", None) or type(function).__name__
            outer = scope.inside()
            if outer is not None:
                name = f"{outer.path}/{name}"
            key = options.key
            text = (arguments.digest or "?")[:16] if key is None else str(key)
            return Claim(
                function, args, kwargs, options, here, here.place(name, text), arguments, parts.journal.next_seq()
            )

    def begin(self, claim: Claim) -> Given | Going:
        """Decide about a call, and do all that comes before its function runs.

        Raises DivergenceError (E031) in replay mode, UntrustedError (E050), AmbiguousError (E060), LeaseError (E030),
        and what the journal raises where a guarded call cannot be recorded.
        """
        with self.parts.lock:
            now, records = self._now(claim), self._records(claim.scope)
            decision: c.CallDecision
            if records is None:
                decision = self._unread(claim, now)
            else:
                found, untrusted = records
                decision = c.decide_call(now, found.candidates(now), mode=self.parts.mode, untrusted=untrusted)
            match decision:
                case Replay(entry, why):
                    return self._replay(claim, now, entry, why)
                case Execute(attempt, _):
                    return self._go(claim, now, attempt)
                case Fire():
                    return self._fire(claim, now, decision)
                case Assume(entry, first, _):
                    if first:
                        self._audit(claim, entry, Status.SKIPPED)
                    return Given(None)
                case Refuse(code, why):
                    raise self._refusal(claim, code, why)
                case _:
                    assert_never(decision)

    def finish(self, going: Going, value: Any) -> Any:
        """Record the result, then release it (K9). Returns the value; raises CannotStoreError (E020)."""
        with self.parts.lock:
            return self._finish(going, value)

    def fail(self, going: Going, error: BaseException, attempts: int = 1) -> None:
        """Record that the call failed: for the history; it is never replayed as a success (last table)."""
        with self.parts.lock:
            self._give_back(going)
            if not isinstance(error, Exception):
                return  # an interrupt: nobody knows how far it came, and an intent stays an intent
            if going.entry is not None and isinstance(error, TimeoutError | KeelError) and _timed_out(error):
                return  # it may still be running: ambiguous, not failed
            going.attempts = attempts
            code = error.code if isinstance(error, KeelError) else ""
            entry = replace(self._ended(going), status=Status.FAILED, error=Problem(type(error).__qualname__, code))
            self._append(going, entry)

    # ---- what a call is

    def _scope(self) -> StepScope:
        here = scope.current()
        if here is None:
            here = StepScope(step="", identity="", implicit=True)
            scope.enter(here)
        return here

    def _now(self, claim: Claim) -> c.CallNow:
        options = claim.options
        found = self.prints.of(claim.function)
        if found.digest is None and not options.trust_key:
            self._once(claim, f"{claim.place.call} runs every time: {found.unknown} cannot be compared")
        elif claim.arguments.unknown and not options.trust_key:
            self._once(claim, f"{claim.place.call} runs every time: {claim.arguments.unknown} cannot be compared")
        if options.effect is not Effect.IDEMPOTENT:
            claim.idempotency_key = self.key_of(claim)
        return c.CallNow(
            claim.place,
            found.digest,
            claim.arguments.digest,
            claim.idempotency_key,
            options.effect,
            options.on_ambiguous,
            options.trust_key,
        )

    def key_of(self, claim: Claim) -> str:
        """The idempotency key of a call: equal in every attempt (Z23, K40)."""
        return idempotency_key(
            flow=self.parts.flow,
            flow_key=self.parts.flow_key,
            step=claim.scope.step,
            identity=claim.scope.identity,
            call=claim.place.call,
            key=claim.place.key,
            occurrence=claim.place.occurrence,
        )

    def step_key(self, here: StepScope) -> str:
        """The idempotency key of the step itself."""
        parts = self.parts
        return idempotency_key(flow=parts.flow, flow_key=parts.flow_key, step=here.step, identity=here.identity)

    def _records(self, here: StepScope) -> tuple[c.StepCalls, frozenset[Any]] | None:
        if here.records is None:
            self.prints.forget()
            try:
                records = self.parts.journal.records(self.parts.flow)
            except KeelError as error:
                self._not_durable(error)
                return None
            resumed = here.resumed if here.implicit else None
            here.records = c.calls_in(records.entries, here.step, resumed=resumed)
            here.untrusted = records.untrusted
        return here.records, here.untrusted

    def records(self) -> tuple[StepScope, c.StepCalls]:
        """The scope of the caller and what is recorded in it, for value steps, waits and loops."""
        with self.parts.lock:
            here = self._scope()
            found = self._records(here)
            return here, c.StepCalls() if found is None else found[0]

    def _unread(self, claim: Claim, now: c.CallNow) -> c.CallDecision:
        # K41: unread is not absent. Idempotent calls may run again at no harm; nothing else may.
        if now.effect is Effect.IDEMPOTENT and self.parts.mode is not Mode.REPLAY:
            return Execute(1, "the journal cannot be read")
        return Refuse("E054", "the journal cannot be read")

    # ---- going ahead

    def _go(self, claim: Claim, now: c.CallNow, attempt: int) -> Going:
        clock = self.parts.clock
        watched = self._changes.watch(claim, self.prints) if now.code and now.args else None
        return Going(claim, now, watched, None, clock.now(), clock.monotonic(), attempt)

    def _fire(self, claim: Claim, now: c.CallNow, decision: Fire) -> Going:
        guard = self.parts.guard
        if guard is None:
            detail = f"{now.effect} needs a flow with a name: `%keel flow NAME` first"
            raise SettingsError(where=f"keel.call {claim.place.call}", detail=detail)
        guard.take()
        try:
            if decision.ambiguous is not None:
                self._audit(claim, decision.ambiguous, Status.OK)
            going = self._go(claim, now, decision.attempt)
            going.entry = replace(self._entry(going), status=Status.INTENT, attempt=decision.attempt)
            if decision.intent:
                self.parts.journal.append(going.entry, synced=True)  # Z4: acknowledged before the body
                self._note(going.entry, claim.scope)
            # Z21: else the intent that is there stands for this firing too.
        except BaseException:
            guard.give_back()
            raise
        return going

    def _give_back(self, going: Going) -> None:
        if going.entry is not None and self.parts.guard is not None:
            self.parts.guard.give_back()

    # ---- the record

    def _entry(self, going: Going) -> Entry:
        claim, now = going.claim, going.now
        return Entry(
            entry=entry_id(self._run, claim.seq),
            flow=self.parts.flow,
            run=self._run,
            seq=claim.seq,
            step=claim.scope.step,
            kind=Kind.CALL,
            status=Status.OK,
            occurrence=claim.place.occurrence,
            call=claim.place.call,
            key=claim.place.key,
            attempt=going.attempts,
            effect=now.effect,
            idempotency_key=claim.idempotency_key,
            code=now.code,
            inputs=(Input(c.ARGS, now.args),),
            started_at=going.started,
        )

    def _ended(self, going: Going) -> Entry:
        clock = self.parts.clock
        took = clock.monotonic() - going.began
        base = going.entry if going.entry is not None else self._entry(going)
        return replace(base, attempt=going.attempts, ended_at=going.started + took, took_s=took)

    def _finish(self, going: Going, value: Any) -> Any:
        changed = going.watched.changed() if going.watched is not None else None
        guarded = going.entry is not None
        try:
            if guarded and self.parts.guard is not None:
                self.parts.guard.check()  # O14: who lost the lease records nothing
            ambient: dict[str, Any] = {"awaited": True} if going.awaited else {}
            raw = plain.envelope(value) if not changed else None
            entry: Entry
            if raw is not None and not guarded and not ambient and not going.unreplayable:
                entry = self._fast(going, raw)
            else:
                payload, ambient, missing = callvalues.packed(self.parts, value, raw, changed, ambient)
                entry = replace(
                    self._ended(going),
                    status=Status.OK,
                    payload=payload,
                    ambient=ambient,
                    not_stored=missing + going.unreplayable,
                )
            self._append(going, entry)
        finally:
            self._give_back(going)
        self._tell_not_stored(going, entry, refused=changed is not None and bool(changed.refused))
        return value

    def _fast(self, going: Going, raw: bytes) -> Entry:
        # One entry, built once: this is the way of nearly every call (DESIGN 10).
        claim, now, run = going.claim, going.now, self._run
        took = self.parts.clock.monotonic() - going.began
        return Entry(
            entry=entry_id(run, claim.seq),
            flow=self.parts.flow,
            run=run,
            seq=claim.seq,
            step=claim.scope.step,
            kind=Kind.CALL,
            status=Status.OK,
            occurrence=claim.place.occurrence,
            call=claim.place.call,
            key=claim.place.key,
            attempt=going.attempts,
            code=now.code,
            inputs=(Input(c.ARGS, now.args),),
            payload=Payload(self.parts.journal.blob(raw), (), (), len(raw)),
            started_at=going.started,
            ended_at=going.started + took,
            took_s=took,
        )

    def _append(self, going: Going, entry: Entry) -> None:
        guarded = going.entry is not None
        try:
            self.parts.journal.append(entry, synced=guarded)
        except KeelError as error:
            if guarded:
                name = going.claim.place.call
                self.parts.say(f"{name} happened and its result is not recorded: {error}")
                return  # its intent stands: the next run asks a person
            self._not_durable(error)  # K42
            return
        self._note(entry, going.claim.scope)

    def _note(self, entry: Entry, here: StepScope) -> None:
        if here.records is not None:
            here.records.add(entry)

    def write(self, entry: Entry, here: StepScope, *, synced: bool = False) -> bool:
        """Append an entry of a value step, a loop or a wait; False (and said once) where that failed (K42)."""
        with self.parts.lock:
            try:
                self.parts.journal.append(entry, synced=synced)
            except KeelError as error:
                self._not_durable(error)
                return False
            self._note(entry, here)
            return True

    def _audit(self, claim: Claim, intent: Entry, status: Status) -> None:
        journal = self.parts.journal
        now = self.parts.clock.now()
        seq = journal.next_seq()
        word = claim.options.on_ambiguous
        audit = Entry(
            entry=entry_id(self._run, seq), flow=self.parts.flow, run=self._run, seq=seq, step=claim.scope.step,
            kind=Kind.AUDIT, status=Status.OK, call=claim.place.call, key=claim.place.key, effect=intent.effect,
            ambient=audit_text(intent, word), started_at=now, ended_at=now, why=f"ambiguous: {word}",
        )  # fmt: skip
        journal.append(audit, synced=True)  # Z22
        if status is Status.SKIPPED:
            assumed = replace(
                intent, entry=entry_id(self._run, claim.seq), run=self._run, seq=claim.seq, status=Status.SKIPPED,
                ended_at=now, why="taken as done",
            )  # fmt: skip
            journal.append(assumed, synced=True)
            self._note(assumed, claim.scope)

    # ---- replay

    def _replay(self, claim: Claim, now: c.CallNow, entry: Entry, why: str) -> Given | Going:
        try:
            value = callvalues.unpacked(self.parts, entry)
            if recipes := entry.ambient.get("changed"):
                value = self._changes.put_back(claim, self.prints, recipes, value)
        except UntrustedError:
            raise
        except Exception as error:
            if now.effect is not Effect.IDEMPOTENT or self.parts.mode is Mode.REPLAY:
                raise
            reason = error if isinstance(error, KeelError) else type(error).__name__
            self.parts.say(f"{claim.place.call} {claim.place.key} runs again: its record cannot be read ({reason})")
            return self._go(claim, now, 1)
        if why.startswith("it was committed"):
            self.parts.say(f"{claim.place.call} {claim.place.key} does not fire again: {why}")
        return Given(value, bool(entry.ambient.get("awaited")))

    # ---- telling

    def _refusal(self, claim: Claim, code: str, why: str) -> KeelError:
        name = f"{claim.scope.step or 'this cell'}, call {claim.place.call} {claim.place.key}"
        match code:
            case "E060":
                intents = claim.scope.records.candidates(self._now(claim)) if claim.scope.records else ()
                return AmbiguousError(step=name, run=intents[0].run if intents else "?")
            case "E050":
                return UntrustedError(journal="", step=name)
            case _:
                return DivergenceError(step=name, detail=why)

    def _tell_not_stored(self, going: Going, entry: Entry, *, refused: bool) -> None:
        if not entry.not_stored:
            return
        first, name = entry.not_stored[0], going.claim.place.call
        if refused:
            raise CannotStoreError(name=first.name, type=first.type, step=name, reason="return it instead")
        self._once(going.claim, f"{name} will run again: {first.name} ({first.type}) is not stored: {first.reason}")

    def _once(self, claim: Claim, line: str) -> None:
        if line not in claim.scope.said:
            claim.scope.said.add(line)
            self.parts.say(line)

    def _not_durable(self, error: KeelError) -> None:
        if not self._undurable:
            self._undurable = True
            self.parts.say(f"durable calls run, not durable: {error}")


def _timed_out(error: BaseException) -> bool:
    return isinstance(error, TimeoutError) or getattr(error, "code", "") == "E011"
