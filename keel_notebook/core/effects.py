"""What may be done with a guarded effect: one pure decision for steps and calls (Z4, Z15, Z19-Z23; DESIGN 5).

An effect is known by its idempotency key, not by where it stands. A committed result under that key always comes
back, whatever else differs; an intent without a result is *ambiguous*, and only a person's word moves it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from keel_notebook.core.decide import Refuse, Replay
from keel_notebook.core.ids import text_digest
from keel_notebook.core.model import Effect, Entry, FlowId, Status


class OnAmbiguous(StrEnum):
    """What an intent without a result means (last table of the contracts). Without a word it is FAIL (Z20)."""

    FAIL = "fail"
    """Stop; nothing fires."""
    SKIP = "skip"
    """Take it as done and go on without firing; there is no value."""
    RERUN = "rerun"
    """Fire again, under the same idempotency key."""


@dataclass(frozen=True, slots=True)
class Fire:
    """Run the body. ``intent``: write the intent first, synced (Z4); False where one is there already (Z21)."""

    attempt: int
    intent: bool
    why: str
    ambiguous: Entry | None = None
    """The intent that a person's word resolved: to be audited (Z22)."""


@dataclass(frozen=True, slots=True)
class Assume:
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
