"""What may be done with a guarded effect: one pure decision for steps and calls (Z4, Z15, Z19-Z23; DESIGN 5).

An effect is known by its idempotency key, not by where it stands. A committed result under that key always comes
back, whatever else differs; an intent without a result is *ambiguous*, and only a person's word moves it on. For a
step there are two doubts more: the same inputs under edited code, and the same step in a copy of the notebook.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.core.decide import Decision, Diverged, Execute, Facts, Refuse, Replay, Response
from keel_notebook.core.fileholds import same
from keel_notebook.core.ids import text_digest
from keel_notebook.core.lifecycle import NEW_KEY
from keel_notebook.core.model import Digest, Effect, Entry, EntryId, FlowId, Input, Kind, Status

DONE_IN_COPY = "a notebook that this one is a copy of did it with these inputs"
"""Why a guarded step asks although nothing of it was begun here."""


class OnAmbiguous(StrEnum):
    """What an intent without a result means (last table of the contracts). Without a word it is FAIL (Z20)."""

    FAIL = "fail"
    """Stop; nothing fires."""
    SKIP = "skip"
    """Take it as done and go on without firing; there is no value."""
    RERUN = "rerun"
    """Fire again, under the same idempotency key."""


class Fire(Struct, frozen=True):
    """Run the body. ``intent``: write the intent first, synced (Z4); False where one is there already (Z21)."""

    attempt: int
    intent: bool
    why: str
    ambiguous: Entry | None = None
    """The intent that a person's word resolved: to be audited (Z22)."""


class Assume(Struct, frozen=True):
    """Go on as if it had happened. ``first``: this very decision resolves the ambiguity, so audit it (Z22)."""

    entry: Entry
    first: bool
    why: str


EffectDecision = Replay | Fire | Assume | Refuse


def decide_effect(
    effect: Effect, under_key: Sequence[Entry], *, valid: Entry | None, on_ambiguous: OnAmbiguous = OnAmbiguous.FAIL
) -> EffectDecision:
    """What to do with an effect that is not idempotent. Total; pure.

    Args:
        effect: ``at_least_once`` or ``exactly_once``.
        under_key: every entry under this idempotency key, newest first.
        valid: the newest record whose code and inputs are equal to the current ones, if there is one.
        on_ambiguous: the person's word; matters for ``exactly_once`` only.
    """
    if valid is not None:
        return Replay(valid, "code and inputs are those of the record")
    under_key = standing(under_key)
    tries = sum(entry.status is not Status.SKIPPED for entry in under_key)
    if effect is not Effect.EXACTLY_ONCE:
        return Fire(tries + 1, intent=True, why=_again(under_key))
    committed = next((entry for entry in under_key if entry.status is Status.OK), None)
    if committed is not None:  # Z15: never fired again under its key
        return Replay(committed, "it was committed under this key; what differs now does not fire it again")
    newest = under_key[0] if under_key else None
    if newest is None or newest.status is Status.FAILED:
        return Fire(tries + 1, intent=True, why=_again(under_key))
    if newest.status is Status.SKIPPED:
        return Assume(newest, first=False, why="it was taken as done")
    match on_ambiguous:
        case OnAmbiguous.FAIL:
            return Refuse("E060", "it was begun and nobody knows how it ended")
        case OnAmbiguous.SKIP:
            return Assume(newest, first=True, why="begun earlier, and taken as done (skip)")
        case OnAmbiguous.RERUN:
            return Fire(tries + 1, intent=False, why="begun earlier, and fired again (rerun)", ambiguous=newest)


def standing(under_key: Sequence[Entry]) -> Sequence[Entry]:
    """The entries under a key without results that a paused holder wrote after it had been taken over from (O12).

    A larger fence under the same key was only ever given out because there was no result yet.
    """
    newest = max((entry.fence for entry in under_key), default=0)
    return [entry for entry in under_key if not (entry.status is Status.OK and 0 < entry.fence < newest)]


StepDecision = Decision | Fire | Assume


class StepHistory(Struct, frozen=True):
    """What is recorded of a step that is not idempotent, beside what its fingerprint finds."""

    under_key: Sequence[Entry] = ()
    """Its attempts under the current idempotency key, newest first."""
    others: Sequence[Entry] = ()
    """Its committed attempts under other keys, newest first."""
    copies: Sequence[Entry] = ()
    """Committed attempts of the same name in other flows that are known by their notebook's path only."""


def step_history(entries: Iterable[Entry], step: str, key: str) -> StepHistory:
    """The history of a step. ``entries`` are a flow's, oldest first."""
    mine: list[Entry] = []
    for entry in [entry for entry in entries if entry.step == step]:  # nearly all are of other steps
        if entry.kind is Kind.STEP and entry.effect is not Effect.IDEMPOTENT:
            mine.append(entry)
        elif entry.kind is Kind.RETIRE and entry.key == NEW_KEY:
            mine.clear()
    mine.reverse()
    under = [entry for entry in mine if entry.idempotency_key == key]
    others = [entry for entry in mine if entry.idempotency_key != key and entry.status is Status.OK]
    return StepHistory(under, others)


def decide_step(  # noqa: PLR0913 - what the decision depends on, all by name
    ordinary: Decision,
    *,
    effect: Effect,
    facts: Facts,
    history: StepHistory,
    on_ambiguous: OnAmbiguous = OnAmbiguous.FAIL,
    anew: bool = False,
    untrusted: frozenset[EntryId] = frozenset(),
) -> StepDecision:
    """What to do with a step that is not idempotent. Total; pure.

    Args:
        ordinary: what ``decide`` answers for a step that is (for ``exactly_once`` without ``rerun`` and ``needed``).
        effect: ``at_least_once`` or ``exactly_once``.
        facts: the step as it stands now.
        history: what is recorded of it.
        on_ambiguous: the person's word; matters for ``exactly_once`` only.
        anew: a person asked for a new key (`%keel rerun NAME --new-key`): copies do not count.
        untrusted: entries that the owner's key did not seal.
    """
    if isinstance(ordinary, Replay) or (isinstance(ordinary, Refuse) and ordinary.code == "E050"):
        return ordinary
    if effect is not Effect.EXACTLY_ONCE:
        if isinstance(ordinary, Refuse) or _stops(ordinary):
            return ordinary
        fire = _why(decide_effect(effect, history.under_key, valid=None), ordinary, history)
        return replace(fire, attempt=getattr(ordinary, "attempt", 1)) if isinstance(fire, Fire) else fire
    answer = decide_effect(effect, history.under_key, valid=None, on_ambiguous=on_ambiguous)
    if isinstance(answer, Replay):
        return Refuse("E050", "its record was written by somebody else") if answer.entry.entry in untrusted else answer
    if isinstance(ordinary, Refuse) or _stops(ordinary) or isinstance(answer, Refuse | Assume):
        return ordinary if isinstance(ordinary, Refuse) or _stops(ordinary) else answer
    if not history.under_key:
        if any(same_inputs(entry, facts.inputs) for entry in history.others):
            return Refuse("E031", "it was done with these inputs; only its code differs")
        copied = not anew and [e for e in history.copies if same(e.code, facts.code) and same_inputs(e, facts.inputs)]
        if copied:
            return Refuse("E060", DONE_IN_COPY)
    return _why(answer, ordinary, history)


def _why(answer: EffectDecision, ordinary: Decision, history: StepHistory) -> EffectDecision:
    """Where nothing is recorded under the key, the step is begun for the reason for which any other would be."""
    if isinstance(answer, Fire) and isinstance(ordinary, Execute) and not history.under_key:
        return replace(answer, why=ordinary.why)
    return answer


def _stops(ordinary: Decision) -> bool:
    return isinstance(ordinary, Diverged) and ordinary.response is Response.FAIL


def same_inputs(entry: Entry, inputs: Mapping[str, Input]) -> bool:
    """Whether a step got what ``entry`` got, as far as both read it.

    Other inputs are another effect; the same inputs under other code are not.
    """
    recorded = {item.name: item.digest for item in entry.inputs}
    return all(recorded[name] == item.digest for name, item in inputs.items() if name in recorded)


def step_identity(key: str, code: Digest | None, inputs: Mapping[str, Input], generation: int = 0) -> str:
    """What makes two attempts of a step attempts of the same thing: its ``--key``, else its code and inputs.

    ``generation`` counts how often a person asked for a new key.
    """
    known = [part for name in sorted(inputs) for part in (name, inputs[name].digest or "?")]
    identity = key or text_digest("sitting", code or "?", *known)
    return text_digest("anew", identity, str(generation)) if generation else identity


def _again(under_key: Sequence[Entry]) -> str:
    if not under_key:
        return "there is no record of it"
    return "it failed last time" if under_key[0].status is Status.FAILED else "it did not end last time"


def idempotency_key(  # noqa: PLR0913 - the key is a function of exactly these, all by name
    *, flow: FlowId, flow_key: str, step: str, identity: str, call: str = "", key: str = "", occurrence: int = 0
) -> str:
    """The key of a step (no ``call``) or of a call: equal in every attempt, on every machine (Z23, K40).

    ``identity`` is the step's ``--key``, or the digest of its code and inputs where it has none.
    """
    return text_digest("idempotency", flow, flow_key, step, identity, call, key, str(occurrence))


def audit_text(entry: Entry, on_ambiguous: OnAmbiguous) -> dict[str, str]:
    """What an audit record says: step, class, policy, and the first 8 bytes of the key; no payload (Z22, Z30)."""
    return {
        "step": entry.step,
        "effect": str(entry.effect),
        "idempotency_key": entry.idempotency_key[:16],
        "on_ambiguous": str(on_ambiguous),
        "intent": entry.entry,
    }
