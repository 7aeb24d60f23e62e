"""Durable calls of an ordinary notebook: how a record is found, and when it holds (DESIGN 5, Durable calls).

*Found* by (step, call, key, occurrence of that key) over all attempts and code versions of the step, so that a
prompt inserted at the head of a thousand costs one. *Valid* only if the function's fingerprint and the arguments'
digests are equal, so that an edited MODEL costs all. ``key=`` names; it does not vouch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from keel_notebook.core.decide import Execute, Mode, Refuse, Replay
from keel_notebook.core.effects import EffectDecision, OnAmbiguous, decide_effect
from keel_notebook.core.fileholds import same
from keel_notebook.core.lifecycle import FORGET, NEW_KEY, RERUN, REVIVE
from keel_notebook.core.model import Digest, Effect, Entry, EntryId, Kind, Status

ARGS = "args"
"""The name of the one input of a call: all of its arguments."""


class Place(NamedTuple):
    """Where a call stands in its step: what finds its records."""

    call: str
    key: str
    occurrence: int


class CallNow(NamedTuple):
    """A call as it stands now."""

    place: Place
    code: Digest | None
    args: Digest | None
    idempotency_key: str = ""
    effect: Effect = Effect.IDEMPOTENT
    on_ambiguous: OnAmbiguous = OnAmbiguous.FAIL
    trust_key: bool = False


CallDecision = EffectDecision | Execute


def holds(entry: Entry, now: CallNow) -> bool:
    """Whether a record is one of this very call. Unknown is never equal; a kept failure never holds."""
    if entry.status is not Status.OK or entry.not_stored:
        return False
    if now.trust_key:
        return True
    return same(entry.code, now.code) and same(entry.inputs[0].digest if entry.inputs else None, now.args)


def decide_call(
    now: CallNow, candidates: Sequence[Entry], *, mode: Mode = Mode.LIVE, untrusted: frozenset[EntryId] = frozenset()
) -> CallDecision:
    """What to do with a call. Total; pure.

    Args:
        now: the call as it stands.
        candidates: the records at its place, newest first (for guarded ones also those under its idempotency key).
        mode: KEEL_MODE.
        untrusted: records that the owner's key did not seal (E050).
    """
    valid = None
    for entry in candidates:
        if holds(entry, now):
            valid = entry
            break
    if valid is not None and valid.entry in untrusted:
        return Refuse("E050", "its record was written by somebody else")
    if now.effect is Effect.IDEMPOTENT:
        if valid is not None:
            return Replay(valid, "function and arguments are those of the record")
        if mode is Mode.REPLAY:
            return Refuse("E031", differs(now, candidates))
        return Execute(1, differs(now, candidates))
    keyed = [entry for entry in candidates if entry.idempotency_key == now.idempotency_key]
    decision = decide_effect(now.effect, keyed, valid=valid, on_ambiguous=now.on_ambiguous)
    if isinstance(decision, Replay) and decision.entry.entry in untrusted:
        return Refuse("E050", "its record was written by somebody else")
    if mode in {Mode.REPLAY, Mode.VERIFY} and not isinstance(decision, Replay | Refuse):
        return Refuse("E031", differs(now, candidates))
    return decision


def differs(now: CallNow, candidates: Sequence[Entry]) -> str:
    """Why no record of the call holds, in one short sentence."""
    newest = candidates[0] if candidates else None
    if newest is None:
        return "there is no record of it"
    if newest.status is Status.FAILED:
        return "it failed last time"
    if newest.not_stored:
        return f"{newest.not_stored[0].name} ({newest.not_stored[0].type}) could not be stored"
    if not same(newest.code, now.code):
        return "the function, or a value that it reads, changed" if now.code else "its function cannot be compared"
    return "its arguments changed" if now.args else "its arguments cannot be compared"


SITTINGS = frozenset({Kind.TIME, Kind.RANDOM, Kind.LOOP, Kind.SLEEP})
"""Kinds that hold for one sitting of a step only: from its last ok attempt on, under one code and one set of inputs."""
_ENDS = frozenset({Kind.STEP, Kind.ACCEPT, Kind.ADOPT})


class StepCalls(Struct):
    """What is recorded inside one step, ready to be asked: built once for each scope, then kept up by its own calls."""

    calls: dict[Place, list[Entry]] = field(default_factory=dict)
    """Newest first."""
    by_key: dict[str, list[Entry]] = field(default_factory=dict)
    """Entries that are not idempotent, by idempotency key, newest first; over the whole flow (Z15)."""
    sitting: dict[tuple[Kind, str, int], Entry] = field(default_factory=dict)
    """Value steps, loop turns and sleeps of the attempts since the last ok one; the newest of each."""
    promises: dict[str, list[Entry]] = field(default_factory=dict)
    """Promises and their answers by promise id, over the whole flow, oldest first."""
    generation: int = 0
    """How often a person had the step's records rejected: it makes new promises."""

    def candidates(self, now: CallNow) -> Sequence[Entry]:
        """The records that may answer for a call, newest first."""
        found = self.calls.get(now.place, ())
        if now.effect is Effect.IDEMPOTENT:
            return found
        keyed = self.by_key.get(now.idempotency_key, ())
        rest = [entry for entry in found if entry.idempotency_key != now.idempotency_key]
        return [*keyed, *rest]

    def holding(self, place: Place, code: Digest | None, args: Digest | None) -> Entry | None:
        """The newest record that holds for this function and these arguments: what ``decide_call`` would find.

        Asked at every call that is replayed, so it says in one place what ``holds`` says part by part.
        """
        if code is None or args is None:
            return None
        for entry in self.calls.get(place, ()):
            if entry.code == code and entry.status is Status.OK and not entry.not_stored:
                inputs = entry.inputs
                if inputs and inputs[0].digest == args:
                    return entry
        return None

    def add(self, entry: Entry) -> None:
        """Take in an entry that was just written."""
        if entry.kind is Kind.CALL:
            # A plain tuple is equal to the Place, and the cycle collector soon leaves it alone.
            place = (entry.call, entry.key, entry.occurrence)
            found = self.calls.get(place)  # type: ignore[call-overload]
            if found is None:
                self.calls[place] = [entry]  # type: ignore[index]
            else:
                _put_first(found, entry)
            if entry.effect is not Effect.IDEMPOTENT:
                _put_first(self.by_key.setdefault(entry.idempotency_key, []), entry)
        elif entry.kind in SITTINGS:
            self.sitting[(entry.kind, entry.key, entry.occurrence)] = entry
        elif entry.kind is Kind.PROMISE:
            self.promises.setdefault(entry.key, []).append(entry)


def _put_first(entries: list[Entry], entry: Entry) -> None:
    if entries and entries[0].entry == entry.entry:  # the result under the id of its intent
        entries[0] = entry
    else:
        entries.insert(0, entry)


def calls_in(entries: Iterable[Entry], step: str, *, resumed: frozenset[int] | None = None) -> StepCalls:
    """What a flow's entries (oldest first) say about the calls of one step.

    ``resumed``: for the implicit step of a plain cell, the runs that are being gone on with: only their value steps
    hold. None for a real step: there the last ok attempt is where a sitting starts anew.
    """
    out = StepCalls()
    for entry in entries:
        if entry.kind is Kind.PROMISE:
            out.add(entry)
        elif entry.kind is Kind.CALL and entry.effect is not Effect.IDEMPOTENT and entry.step != step:
            _put_first(out.by_key.setdefault(entry.idempotency_key, []), entry)
        elif entry.step == step:
            _take(out, entry, resumed)
    return out


def _take(out: StepCalls, entry: Entry, resumed: frozenset[int] | None) -> None:
    if entry.kind is Kind.RETIRE:
        if entry.key == NEW_KEY:
            out.generation += 1
            out.sitting.clear()
            out.calls.clear()
        elif entry.key in {RERUN, FORGET}:
            out.generation += 1
            out.sitting.clear()
            _reject(out)
        elif entry.key != REVIVE:
            out.sitting.clear()
    elif entry.kind in _ENDS and entry.status is Status.OK:
        out.sitting.clear()
    elif entry.kind in SITTINGS and resumed is not None and entry.run not in resumed:
        return
    else:
        out.add(entry)


def _reject(out: StepCalls) -> None:
    # A person wants it done again: idempotent calls too. What is guarded is never fired again by that (Z15).
    for place, entries in list(out.calls.items()):
        kept = [entry for entry in entries if entry.effect is Effect.EXACTLY_ONCE]
        if kept:
            out.calls[place] = kept
        else:
            del out.calls[place]
