"""What was decided about a step in one run, and how the journal keeps it (DESIGN 3.4).

A kernel keeps a ``StepDone`` for every step it met. A replay leaves no record of its own, so that the command line
would not know of it: the session appends ``decision_entry(...)``, a marker of some 100 bytes, and ``done_in`` reads
the newest decision of each step back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.core.decide import Difference, Part
from keel_notebook.core.model import Digest, Entry, EntryId, FlowId, Input, Kind, Problem, Status, entry_id

DECISION = "decision"
"""The ``key`` of a marker that keeps a decision."""

EXECUTED, REPLAYED, SKIPPED, REFUSED = "executed", "replayed", "skipped", "refused"
DECISIONS = (EXECUTED, REPLAYED, SKIPPED, REFUSED)


class StepDone(Struct, frozen=True):
    """What happened to a step in one run."""

    step: str
    decision: str
    """One of ``DECISIONS``."""
    entry: EntryId | None = None
    """The record that was put back or written; None where nothing was recorded."""
    why: str = ""
    differs: tuple[Difference, ...] = ()
    """How the step differed from its record when it was decided."""
    replay_s: float | None = None
    took_s: float | None = None
    current_code: Digest | None = None
    current_inputs: tuple[Input, ...] = ()
    source: str = ""
    refusal: str = ""
    """The error code of a refusal: ``"E032"``."""


def decision_entry(done: StepDone, *, flow: FlowId, run: int, seq: int, at: float) -> Entry:
    """The marker that keeps ``done`` in the journal. ``at`` is wall time, seconds.

    Code, source and inputs go with a refusal only: after a replay they are those of the record, after an
    execution those of the entry that it wrote.
    """
    alone = done.decision == REFUSED
    return Entry(
        entry=entry_id(run, seq),
        flow=flow,
        run=run,
        seq=seq,
        step=done.step,
        kind=Kind.MARKER,
        status=Status.OK,
        key=DECISION,
        code=done.current_code if alone else None,
        source=done.source if alone else "",
        inputs=done.current_inputs if alone else (),
        ambient={
            "decision": done.decision,
            "entry": done.entry,
            "replay_s": done.replay_s,
            "differs": [[str(d.part), d.name, d.recorded, d.current, d.detail] for d in done.differs],
        },
        started_at=at,
        took_s=done.took_s,
        error=Problem("", done.refusal) if done.refusal else None,
        why=done.why,
    )


def done_in(entries: Iterable[Entry], run: int) -> dict[str, StepDone]:
    """The newest decision about every step in one run, from its markers and, where there is none, its attempts."""
    found: dict[str, StepDone] = {}
    for entry in entries:
        if entry.run != run:
            continue
        if entry.kind is Kind.MARKER and entry.key == DECISION:
            if (done := _from_marker(entry)) is not None:
                found[entry.step] = done
        elif entry.kind is Kind.STEP:
            found[entry.step] = _from_attempt(entry, found.get(entry.step))
    return found


def _from_marker(entry: Entry) -> StepDone | None:
    kept: Mapping[str, Any] = entry.ambient
    if kept.get("decision") not in DECISIONS:
        return None  # a word of a newer keel
    return StepDone(
        step=entry.step,
        decision=kept["decision"],
        entry=kept.get("entry"),
        why=entry.why,
        differs=tuple(_difference(parts) for parts in kept.get("differs", ())),
        replay_s=kept.get("replay_s"),
        took_s=entry.took_s,
        current_code=entry.code,
        current_inputs=entry.inputs,
        source=entry.source,
        refusal=entry.error.code if entry.error else "",
    )


def _difference(parts: Iterable[str]) -> Difference:
    part, *texts = parts
    return Difference(Part(part), *texts)


def _from_attempt(entry: Entry, marked: StepDone | None) -> StepDone:
    done = StepDone(
        step=entry.step,
        decision=SKIPPED if entry.status is Status.SKIPPED else EXECUTED,
        entry=entry.entry if entry.status is Status.OK else None,
        why=entry.why,
        took_s=entry.took_s,
        current_code=entry.code,
        current_inputs=entry.inputs,
        source=entry.source,
    )
    if marked is None or marked.decision != EXECUTED or marked.entry not in (None, entry.entry):
        return done
    # The marker of this very attempt was written when it was decided, before the attempt ended.
    return replace(done, why=marked.why or done.why, differs=marked.differs)
