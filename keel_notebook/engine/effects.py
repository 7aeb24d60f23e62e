"""Guarded calls: intent before, result after, both synced, under the lease (Z4, Z15, Z19-Z22, O14)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from keel_notebook.core.calls import CallNow
from keel_notebook.core.effects import Fire, audit_text
from keel_notebook.core.ids import journal_id
from keel_notebook.core.model import Entry, Kind, Status, entry_id
from keel_notebook.engine.callparts import Claim, Given, Going
from keel_notebook.engine.intents import announce
from keel_notebook.engine.modes import IN_MODE
from keel_notebook.errors import (
    AmbiguousError,
    DivergenceError,
    JournalUnreachableError,
    KeelError,
    NotNowError,
    UntrustedError,
)

if TYPE_CHECKING:
    from keel_notebook.engine.calls import Calls


class Effects:
    """What a call needs beside an ordinary one when it must not happen twice."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @contextmanager
    def leased(self) -> Iterator[bool]:
        """Have the lease while it is decided; whether another held it since. ``fire`` holds it on."""
        guard = self._calls.parts.guard
        assert guard is not None
        others = guard.take()
        try:
            yield others
        finally:
            guard.give_back()

    def fire(self, claim: Claim, now: CallNow, decision: Fire) -> Going:
        """Take the lease and write the intent; the function runs next. Raises KeelError: then nothing happened."""
        calls, guard = self._calls, self._calls.parts.guard
        if guard is None:
            detail = f"{now.effect} needs a flow with a name: `%keel flow NAME` first"
            raise NotNowError(where=f"keel.call {claim.place.call}", detail=detail, case="unnamed")
        guard.take()
        try:
            if decision.ambiguous is not None:
                self._audit(claim, decision.ambiguous)
            going = calls.go(claim, now, decision.attempt)
            going.entry = calls.intent_of(going)
            if decision.intent:  # Z21: else the intent that is there stands for this firing too
                announce(going.entry, calls.journal, calls.parts.clock)  # Z4: acknowledged before the body
                calls.note(going.entry, claim.scope)
        except BaseException:
            guard.give_back()
            raise
        return going

    def assume(self, claim: Claim, intent: Entry, *, first: bool) -> Given:
        """Go on as if it had happened: no value, and marked so. Raises what the journal raises."""
        if first:
            self._audit(claim, intent)
            calls, now = self._calls, self._calls.parts.clock.now()
            entry = entry_id(calls.run, claim.seq)
            why = "taken as done (skip)"
            skipped = replace(
                intent, entry=entry, run=calls.run, seq=claim.seq, status=Status.SKIPPED, ended_at=now, why=why,
                fence=calls.journal.fence,
            )  # fmt: skip
            calls.journal.append(skipped, synced=True)
            calls.note(skipped, claim.scope)
        return Given(None)

    def still_held(self) -> None:
        """Raise LeaseError (E030) if the lease was lost while the function ran (O14)."""
        if self._calls.parts.guard is not None:
            self._calls.parts.guard.check()

    def give_back(self, going: Going) -> None:
        """The guarded call has ended."""
        if going.entry is not None and self._calls.parts.guard is not None:
            self._calls.parts.guard.give_back()

    def refusal(self, claim: Claim, now: CallNow, code: str, why: str) -> KeelError:
        """The error behind a refusal."""
        name = f"{claim.scope.step or 'this cell'}, call {claim.place.call} {claim.place.key}"
        match code:
            case "E060":
                records = claim.scope.records
                intents = records.candidates(now) if records is not None else ()
                begun = f"begun in run {intents[0].run}, and its outcome is not recorded" if intents else why
                return AmbiguousError(step=name, detail=begun, case="call")
            case "E050":
                return UntrustedError(what=f"the record of {name}", id=journal_id(self._calls.journal.salt))
            case "E054":
                return JournalUnreachableError(
                    journal="of this notebook", detail=f"{name} needs it: {why}", case="heads"
                )
            case _:
                case = IN_MODE.get(self._calls.parts.mode, "once")
                return DivergenceError(
                    step=claim.scope.step or name, detail=f"call {claim.place.call}: {why}", case=case
                )

    def _audit(self, claim: Claim, intent: Entry) -> None:
        calls = self._calls
        now, seq = calls.parts.clock.now(), calls.journal.next_seq()
        word = claim.options.on_ambiguous
        audit = Entry(
            entry=entry_id(calls.run, seq), flow=calls.parts.flow, run=calls.run, seq=seq, step=claim.scope.step,
            kind=Kind.AUDIT, status=Status.OK, call=claim.place.call, key=claim.place.key, effect=intent.effect,
            ambient=audit_text(intent, word), started_at=now, ended_at=now, why=f"ambiguous: {word}",
        )  # fmt: skip
        calls.journal.append(audit, synced=True)  # Z22
