"""Durable calls: one journaled call inside a step (DESIGN 3.2, 5).

The way of a call: ``claim`` (its place and the digests of its arguments, at the very entry) → ``begin`` (decide:
give the recorded result, refuse, or go ahead) → the function runs → ``finish`` or ``fail`` (written before the result
is released, K9). An idempotent call writes one entry, when it has ended: a kernel that dies in it runs it again,
which is what an entry ``running`` would say too. A guarded call writes its intent first, both synced (Z4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, assert_never

from msgspec.structs import replace

from keel_notebook.core import calls as c
from keel_notebook.core.decide import Execute, Mode, Refuse, Replay
from keel_notebook.core.effects import Assume, Fire, idempotency_key
from keel_notebook.core.model import Effect, Entry, Input, Kind, NotStored, Payload, Problem, Status, entry_id
from keel_notebook.core.quiet import quiet_gc
from keel_notebook.engine import callvalues, plain, scope
from keel_notebook.engine.arguments import ArgumentDigests, Arguments, shown
from keel_notebook.engine.callparts import PLAIN_OPTIONS, CallOptions, CallParts, Claim, Given, Going
from keel_notebook.engine.changes import Changed, Changes
from keel_notebook.engine.counting import Counting
from keel_notebook.engine.effects import Effects
from keel_notebook.engine.failure import Failure
from keel_notebook.engine.host import installed
from keel_notebook.engine.prints import Prints
from keel_notebook.engine.scope import StepScope
from keel_notebook.errors import CannotStoreError, KeelError, UntrustedError

_NOTHING: Final = object()


def _named(function: Callable[..., Any], arguments: Arguments, key: Any) -> tuple[str, str]:
    """What finds a call's records: its function, below the call inside which it is made, and its key."""
    name = getattr(function, "__name__", None) or type(function).__name__
    outer = scope.inside()
    if outer is not None:
        name = f"{outer.path}/{name}"
    return name, (arguments.digest or "?")[:16] if key is None else callvalues.key_text(key)


class Calls:
    """Carries out the durable calls of one kernel on one flow. Any thread: every method takes the parts' lock."""

    def __init__(self, parts: CallParts) -> None:
        self.parts = parts
        counting = Counting(
            compared=parts.digester, definitions=parts.definitions, vouch=parts.vouch, namespace=parts.namespace
        )
        self.prints = Prints(counting=counting, definitions=parts.definitions, namespace=parts.namespace)
        self._arguments = ArgumentDigests(counting=counting, prints=self.prints, salt=parts.journal.salt)
        self._changes = Changes(self._arguments)
        self._effects = Effects(self)
        self._undurable = False
        # Under the lock that we share with it, a shared journal needs no lock of its own: twice is slow.
        same_lock = getattr(parts.journal, "lock", None) is parts.lock
        self.journal: Any = parts.journal.inner if same_lock else parts.journal  # type: ignore[attr-defined]
        self.run: int = parts.journal.run

    # ---- one call

    def claim(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], options: CallOptions,
        key: Any = None,
    ) -> Claim:  # fmt: skip
        """Take the place of a call: at its very entry, so that order is the order of calling (K4, Z1, Z2)."""
        with self.parts.lock:
            here = self.scope()
            arguments = self._arguments.of(args, kwargs)
            place = here.place(*_named(function, arguments, key))
            seq = self.journal.next_seq()
            return Claim(function, args, kwargs, options, key is not None, here, place, arguments, seq)

    def enter(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], options: CallOptions,
        key: Any = None,
    ) -> Given | Going:  # fmt: skip
        """``claim`` and ``begin`` in one, for a call that runs at once; the short way of nearly every replay.

        Where the newest record that holds (``StepCalls.holding``) is a plain one, nothing is left to decide, and
        nothing to write: no claim is made. Raises as ``begin`` does.
        """
        with self.parts.lock:
            here = self.scope()
            arguments = self._arguments.of(args, kwargs)
            place = here.next_place(*_named(function, arguments, key))
            recorded = here.records
            if recorded is not None and place in recorded.calls and options is PLAIN_OPTIONS:
                found = self.prints.of(function)
                entry = recorded.holding(place, found.digest, arguments.digest)
                value = _NOTHING if entry is None else self._plain_value(entry, here)
                if value is not _NOTHING:
                    here.take(place)
                    here.failed.discard(place[:2])
                    return Given(value)
            here.take(place)
            seq = self.journal.next_seq()
            claim = Claim(function, args, kwargs, options, key is not None, here, place, arguments, seq)
            return self.begin(claim)

    def _plain_value(self, entry: Entry, here: StepScope) -> Any:
        """What a record holds that is nothing but a plain value of our own; ``_NOTHING`` for every other."""
        raw = None if entry.payload is None else entry.payload.head.inline
        if raw is None or entry.ambient or entry.entry in here.untrusted:
            return _NOTHING
        try:
            return plain.opened(raw)
        except KeelError:
            return _NOTHING  # ``begin`` finds it again, and says what is wrong with it

    def begin(self, claim: Claim) -> Given | Going:
        """Decide about a call, and do all that comes before its function runs.

        Raises DivergenceError (E031) in replay mode, UntrustedError (E050), AmbiguousError (E060), LeaseError (E030),
        and what the journal raises where a guarded call cannot be recorded.
        """
        with self.parts.lock:
            now, here = self._now(claim), claim.scope
            decision: c.CallDecision
            found = here.records or self._read(here)
            if found is None:
                decision = self._unread(now)
            else:
                decision = c.decide_call(now, found.candidates(now), mode=self.parts.mode, untrusted=here.untrusted)
            if isinstance(decision, Fire | Assume) and self.parts.guard is not None:
                with self._effects.leased() as others:
                    if others and (found := self._read(here)) is not None:  # what the last holder wrote is there now
                        mode, untrusted = self.parts.mode, here.untrusted
                        decision = c.decide_call(now, found.candidates(now), mode=mode, untrusted=untrusted)
                    return self._carry_out(claim, now, decision)
            return self._carry_out(claim, now, decision)

    def _carry_out(self, claim: Claim, now: c.CallNow, decision: c.CallDecision) -> Given | Going:
        match decision:
            case Execute(attempt, _):
                return self.go(claim, now, attempt)
            case Replay(entry, why):
                return self._replay(claim, now, entry, why)
            case Fire():
                return self._effects.fire(claim, now, decision)
            case Assume(entry, first, _):
                return self._effects.assume(claim, entry, first=first)
            case Refuse(code, why):
                raise self._effects.refusal(claim, now, code, why)
            case _:
                assert_never(decision)

    def finish(self, going: Going, value: Any) -> Any:
        """Record the result, then release it (K9). Returns the value; raises CannotStoreError (E020)."""
        with self.parts.lock:
            changed = self._changed(going)
            if changed is None and going.entry is None and not going.awaited and not self._unfinished(going):
                raw = callvalues.open_form(going.claim.place.call, value)
                if raw is not None:
                    # One entry, built once: this is the way of nearly every call (DESIGN 10).
                    payload = Payload(self.journal.blob(raw), (), (), len(raw))
                    self.keep(self._entry(going, payload=payload), going.claim.scope)
                    return value
            self._finish(going, value, changed)
            return value

    def _changed(self, going: Going) -> Changed | None:
        """What the call changed that its record holds, or has to; what a client changed in itself is only told."""
        found = None if going.watched is None else going.watched.changed()
        for name, kind in () if found is None else found.used:
            what = f"what it changes in {name} ({kind}) itself does not come back in a replay"
            self.once(going.claim.scope, f"{going.claim.place.call}: {what}")
        return found if found is not None and (found.recipes or found.refused) else None

    def _finish(self, going: Going, value: Any, changed: Changed | None) -> None:
        try:
            if going.entry is not None:
                self._effects.still_held()  # O14: who lost the lease records nothing
            kept = callvalues.packed(self.parts, going.claim.place.call, value, changed)
            missing = kept.missing + self._unfinished(going)
            ambient = kept.ambient | ({"awaited": True} if going.awaited else {})
            entry = replace(self._entry(going, payload=kept.payload), ambient=ambient, not_stored=missing)
            self._record(going, entry)
        finally:
            self._effects.give_back(going)
        if missing:
            self._tell_missing(going, entry, refused=changed is not None and bool(changed.refused))

    @staticmethod
    def _unfinished(going: Going) -> tuple[NotStored, ...]:
        # What must not happen twice is never made again for the sake of a call inside it.
        inner = going.claim.owing if going.now.effect is Effect.IDEMPOTENT else ""
        return going.unreplayable + ((NotStored(f"a result of {inner}", "", "it failed"),) if inner else ())

    def kept(self, going: Going, error: Exception) -> Failure:
        """What stands in the place of a result that could not be had; the step, and a call around it, owe that."""
        with self.parts.lock:
            place, outer = going.claim.place, scope.inside()
            going.claim.scope.failed.add((place.call, place.key))
            if outer is not None:
                outer.owing = place.call.rpartition("/")[2]
            return Failure.of(error, going.claim)

    def fail(self, going: Going, error: BaseException) -> None:
        """Record that the call failed: for the history; it is never replayed as a success (last table)."""
        with self.parts.lock:
            self._effects.give_back(going)
            if not isinstance(error, Exception):
                return  # an interrupt: nobody knows how far it came, and an intent stays an intent
            if going.entry is not None and getattr(error, "code", "") == "E011":
                return  # it may still be running: ambiguous, not failed
            code = error.code if isinstance(error, KeelError) else ""
            problem = Problem(type(error).__qualname__, code)
            self._record(going, replace(self._entry(going, payload=None), status=Status.FAILED, error=problem))

    # ---- what a call is

    def scope(self) -> StepScope:
        """The scope of the caller: of the step whose body runs, else the implicit one of the plain cell."""
        here = scope.current()
        if here is None:
            host = installed()
            here = StepScope("", "", implicit=True) if host is None else host.plain_scope()
        return here

    def _now(self, claim: Claim) -> c.CallNow:
        options = claim.options
        found = claim.print = self.prints.of(claim.function)
        claim.arguments = self._arguments.unless_written(claim.arguments, claim.function)
        if (found.unknown or claim.arguments.unknown) and not options.trust_key:
            guilty = found.unknown or claim.arguments.unknown
            self.once(claim.scope, f"{claim.place.call} runs every time: {guilty} cannot be compared")
        if options.effect is not Effect.IDEMPOTENT:
            claim.idempotency_key = self.key_of(claim)
        return c.CallNow(
            claim.place, found.digest, claim.arguments.digest, claim.idempotency_key, options.effect,
            options.on_ambiguous, options.trust_key,
        )  # fmt: skip

    def key_of(self, claim: Claim) -> str:
        """The idempotency key of a call: equal in every attempt (Z23, K40)."""
        place, here = claim.place, claim.scope
        return idempotency_key(
            flow=self.parts.flow, flow_key=self.parts.flow_key, step=here.step, identity=here.identity,
            call=place.call, key=place.key, occurrence=place.occurrence,
        )  # fmt: skip

    def step_key(self, here: StepScope) -> str:
        """The idempotency key of the step itself."""
        parts = self.parts
        return idempotency_key(flow=parts.flow, flow_key=parts.flow_key, step=here.step, identity=here.identity)

    def _read(self, here: StepScope) -> c.StepCalls | None:
        self.prints.forget()
        try:
            records = self.journal.records(self.parts.flow)
        except KeelError as error:
            self._not_durable(error)
            return None
        with quiet_gc():
            here.records = c.calls_in(records.entries, here.step, resumed=here.resumed if here.implicit else None)
        here.untrusted = records.untrusted
        return here.records

    def records(self) -> tuple[StepScope, c.StepCalls]:
        """The scope of the caller and what is recorded in it, for value steps, waits and loops."""
        with self.parts.lock:
            here = self.scope()
            return here, here.records or self._read(here) or c.StepCalls()

    def _unread(self, now: c.CallNow) -> c.CallDecision:
        # K41: unread is not absent. Idempotent calls may run again at no harm; nothing else may.
        if now.effect is Effect.IDEMPOTENT and self.parts.mode is not Mode.REPLAY:
            return Execute(1, "the journal cannot be read")
        return Refuse("E054", "the journal cannot be read")

    def go(self, claim: Claim, now: c.CallNow, attempt: int) -> Going:
        """The call runs next: look at what it may change."""
        clock, found = self.parts.clock, claim.print
        assert found is not None
        claim.shown = shown(claim.function, claim.args, claim.kwargs, self.parts.preview)
        watched = None
        if (claim.arguments.mutable or found.changing) and now.code is not None and now.args is not None:
            watched = self._changes.watch(claim, found)
        return Going(claim, now, watched, clock.now(), clock.monotonic(), attempts=attempt)

    # ---- the record

    def _entry(self, going: Going, *, payload: Payload | None) -> Entry:
        claim, now, run = going.claim, going.now, self.run
        took = self.parts.clock.monotonic() - going.began
        return Entry(
            entry=entry_id(run, claim.seq) if going.entry is None else going.entry.entry,
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
            effect=now.effect,
            idempotency_key=claim.idempotency_key,
            code=now.code,
            inputs=(Input(c.ARGS, now.args, preview=claim.shown),),
            payload=payload,
            started_at=going.started,
            ended_at=going.started + took,
            took_s=took,
            fence=0 if going.entry is None else going.entry.fence,
        )

    def intent_of(self, going: Going) -> Entry:
        """The entry that says that a guarded call begins."""
        begun = self._entry(going, payload=None)
        return replace(begun, status=Status.INTENT, ended_at=None, took_s=None, fence=self.journal.fence)

    def _record(self, going: Going, entry: Entry) -> None:
        if going.entry is None:
            self.keep(entry, going.claim.scope)
            return
        try:
            self.journal.append(entry, synced=True)
        except KeelError as error:
            # Its intent stands: the next run asks a person.
            self.parts.say(f"{going.claim.place.call} happened, and that is not recorded: {error}")
            return
        self.note(entry, going.claim.scope)

    def keep(self, entry: Entry, here: StepScope, *, synced: bool = False) -> bool:
        """Append an entry; False, and said once, where that failed: idempotent work goes on (K42)."""
        with self.parts.lock:
            try:
                self.journal.append(entry, synced=synced)
            except KeelError as error:
                self._not_durable(error)
                return False
            self.note(entry, here)
            return True

    @staticmethod
    def note(entry: Entry, here: StepScope) -> None:
        """Let the later calls of the step find an entry."""
        if entry.status is Status.OK:
            here.failed.discard((entry.call, entry.key))
        if here.records is not None:
            here.records.add(entry)

    # ---- replay

    def _replay(self, claim: Claim, now: c.CallNow, entry: Entry, why: str) -> Given | Going:
        try:
            value = callvalues.unpacked(self.parts, entry)
            if entry.ambient and (recipes := entry.ambient.get("changed")):
                assert claim.print is not None
                value = self._changes.put_back(claim, claim.print, recipes, value)
        except UntrustedError:
            raise
        except Exception as error:
            if now.effect is not Effect.IDEMPOTENT or self.parts.mode is Mode.REPLAY:
                raise
            reason = error if isinstance(error, KeelError) else type(error).__name__
            self.parts.say(f"{claim.place.call} {claim.place.key} runs again: its record cannot be read ({reason})")
            return self.go(claim, now, 1)
        if now.effect is Effect.EXACTLY_ONCE and not c.holds(entry, now):
            self.parts.say(f"{claim.place.call} {claim.place.key} does not fire again: {why}")
        claim.scope.failed.discard((claim.place.call, claim.place.key))
        return Given(value, "awaited" in entry.ambient)

    # ---- telling

    def _tell_missing(self, going: Going, entry: Entry, *, refused: bool) -> None:
        first, name = entry.not_stored[0], going.claim.place.call
        if refused and entry.effect is not Effect.IDEMPOTENT:
            raise CannotStoreError(name=first.name, type=first.type, step=name, reason="return it instead", case="call")
        hint = "; return it instead" if refused else ""
        what = f"{first.name} ({first.type})" if first.type else first.name
        self.once(going.claim.scope, f"{name} will run again: {what} is not stored: {first.reason}{hint}")

    def once(self, here: StepScope, line: str) -> None:
        """Tell a person something, once for each run of the cell."""
        if line not in here.said:
            here.said.add(line)
            self.parts.say(line)

    def _not_durable(self, error: KeelError) -> None:
        if not self._undurable:
            self._undurable = True
            self.parts.say(f"durable calls run, not durable: {error}")
