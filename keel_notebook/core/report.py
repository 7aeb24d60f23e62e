"""The state of a flow, step by step: what ``%keel``, ``keel status`` and ``keel.status()`` say (DESIGN 3.4).

Pure: records in, report out; how it is shown is the business of ``front``. Every state that holds of a step is
found by itself, and ``PRECEDENCE`` (FRONTEND.md) says which of them is shown.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.core.chain import ended_in_order
from keel_notebook.core.decide import Part, owing
from keel_notebook.core.done import REPLAYED, StepDone, decision_entry, done_in
from keel_notebook.core.entries import RECORDS
from keel_notebook.core.kernels import newest_run
from keel_notebook.core.lifecycle import FORGET, NEW_KEY, fingerprint_of, newest_ok, recorded, rejection
from keel_notebook.core.model import Entry, EntryId, Kind, NotStored, Status
from keel_notebook.core.ports import FlowRecords, RunEnd
from keel_notebook.core.savedcalls import saved_calls, with_saved
from keel_notebook.core.stale import stale_reasons
from keel_notebook.core.states import (
    PRECEDENCE,
    Moment,
    StepSeen,
    diverged,
    root_of,
    states,
    step_options,
    unrecorded,
    was_restored,
)
from keel_notebook.core.units import count, in_a_row
from keel_notebook.core.waiting import Wait, open_waits

__all__ = ["PRECEDENCE", "StatusReport", "StepDone", "StepRow", "decision_entry", "done_in", "status"]


class StepRow(Struct, frozen=True):
    """One step of the report. Times are seconds since the epoch, durations seconds, sizes bytes."""

    name: str
    state: str
    decision: str | None
    attempts: int
    recorded_at: float | None
    took_s: float | None
    replay_s: float | None
    bytes: int
    differs: tuple[str, ...]
    """The parts that differed: ``("code", "input")``. What exactly is in ``why``."""
    why: str
    not_stored: tuple[NotStored, ...]
    owes: str = ""
    """What it still owes though it ended well: calls whose failure was kept. ``why`` says it too."""

    def to_dict(self) -> dict[str, Any]:
        """The step as DESIGN 3.4 pins it."""
        names = ("name", "state", "decision", "attempts", "recorded_at", "took_s", "replay_s", "bytes")
        lost = [{"name": item.name, "type": item.type, "reason": item.reason} for item in self.not_stored]
        plain: dict[str, Any] = {name: getattr(self, name) for name in names}
        return plain | {"differs": list(self.differs), "why": self.why, "not_stored": lost}


class StatusReport(Struct, frozen=True):
    """Where a flow stands."""

    flow: str
    status: str
    """``running``, ``finished``, ``failed``, ``interrupted``, ``stopped`` or ``died``: of the newest run, and ``dead``
    while any step is dead."""
    run: int
    holder: str | None
    steps: tuple[StepRow, ...]
    saved_s: float
    notebook: str = ""
    now: float = 0.0
    notes: tuple[str, ...] = ()
    """What else a person should know, one sentence each."""
    waits: tuple[Wait, ...] = ()
    """Open promises and timers, oldest first."""

    def to_dict(self) -> dict[str, Any]:
        """The report as DESIGN 3.4 pins it, with ``waits`` beside it where something waits."""
        steps = [row.to_dict() for row in self.steps]
        head: dict[str, Any] = {"flow": self.flow, "status": self.status, "run": self.run, "holder": self.holder}
        waits = {"waits": [wait.to_dict() for wait in self.waits]} if self.waits else {}
        return head | {"steps": steps, "saved_s": self.saved_s} | waits


def status(  # noqa: PLR0913 - one question with many named parts; the names are pinned
    records: FlowRecords,
    *,
    done: Mapping[str, StepDone],
    now: float,
    live: bool,
    notebook: str,
    order: Sequence[str],
    run: int | None = None,
    unsynced: Collection[EntryId] = (),
    edited: Collection[str] = (),
    restored: Mapping[str, EntryId] | None = None,
) -> StatusReport:
    """Where a flow stands (DESIGN 3.4).

    Args:
        records: the flow's entries and runs.
        done: what this kernel did with each step; empty on the command line, where the journal's markers say it.
        now: wall time, seconds since the epoch.
        live: whether the kernel of ``run`` lives, so that what it recorded or replayed is in memory.
        notebook: its path, for people.
        order: step names from the top of the notebook; steps that are not in it follow in the order recorded.
        run: the run that is looked at; by default the newest one.
        unsynced: entries that are written but not yet safe from a power cut.
        edited: steps whose cell in the notebook file is not the code of their record.
        restored: steps whose record was put back in this kernel without running, with that record.
    """
    looked_at = newest_run(records) if run is None else run
    moment = Moment(records, looked_at, live, unsynced, edited, restored or {})
    decided = {**done_in(records.entries, looked_at), **done}
    steps = _with_stale(_steps(moment, decided, order), moment)
    rows = tuple(_row(step, moment) for step in steps)
    word = _status_word(moment, rows)
    return StatusReport(
        flow=records.flow,
        status=word,
        run=looked_at,
        holder=_holder(moment),
        steps=rows,
        saved_s=max(0.0, sum(_saved(step) for step in steps)),
        notebook=notebook,
        now=now,
        notes=tuple(_notes(records)),
        # A timer that an edit left behind is nobody's once a run came to its end.
        waits=tuple(wait for wait in open_waits(records.entries) if wait.until is None or word != "finished"),
    )


def _steps(moment: Moment, decided: Mapping[str, StepDone], order: Sequence[str]) -> Iterator[StepSeen]:
    by_step: dict[str, list[Entry]] = {}
    for entry in moment.records.entries:
        by_step.setdefault(entry.step, []).append(entry)
    known = [name for name, found in by_step.items() if name in decided or any(e.kind in RECORDS for e in found)]
    for name in dict.fromkeys([*order, *known, *decided]):
        step = _step(name, moment, decided.get(name), by_step.get(name, []))
        if step.attempt or step.record or step.done:
            yield step


def _step(name: str, moment: Moment, done: StepDone | None, entries: list[Entry]) -> StepSeen:
    alone = replace(moment.records, entries=entries)
    kept = [entry for entry in entries if entry.kind in RECORDS or entry.kind is Kind.RETIRE]
    if kept and kept[-1].kind is Kind.RETIRE and kept[-1].key in {FORGET, NEW_KEY}:
        done = None  # whatever it came to, a person wanted it forgotten, or it was undone
    attempt = _newest_attempt(kept)
    record = newest_ok(alone, name)
    deaths = 0
    if attempt is not None:
        deaths = recorded(alone, name, fingerprint_of(attempt), root=root_of(attempt)).deaths
        if done is not None and done.decision == REPLAYED:
            record = next((e for e in kept if e.entry == done.entry), record)
            attempt = None
    source = attempt.source if attempt else record.source if record else ""
    return StepSeen(
        name=name,
        attempt=attempt,
        record=record,
        done=done,
        options=step_options(source or (done.source if done else "")),
        deaths=deaths,
        waits=frozenset() if _is_over(attempt, done) else _open_waits(entries),
        saved=saved_calls(entries, name) if _came_to_nothing(attempt, moment) else 0,
        history=tuple(entry for entry in kept if entry.status is Status.OK),
        rejected=next((why for entry in reversed(kept) if entry.kind is Kind.RETIRE and (why := rejection(entry))), ""),
    )


def _came_to_nothing(attempt: Entry | None, moment: Moment) -> bool:
    """Whether the newest attempt did not end well, and does not run any more."""
    if attempt is None or attempt.status is Status.OK:
        return False
    return attempt.status is not Status.RUNNING or not moment.open(attempt.run)


def _is_over(attempt: Entry | None, done: StepDone | None) -> bool:
    """Whether the step waits for nothing any more, whatever stands open in the journal."""
    if done is not None and done.decision == REPLAYED:
        return True
    return attempt is not None and attempt.status is not Status.RUNNING


def _open_waits(entries: Sequence[Entry]) -> frozenset[Kind]:
    answered = {entry.key for entry in entries if entry.kind is Kind.PROMISE and entry.call == "answer"}
    begun = [entry for entry in entries if entry.status is Status.RUNNING]
    return frozenset(
        entry.kind
        for entry in begun
        if entry.kind is Kind.SLEEP or (entry.kind is Kind.PROMISE and entry.key not in answered)
    )


def _newest_attempt(kept: list[Entry]) -> Entry | None:
    for entry in reversed(kept):
        if entry.kind in RECORDS:
            return entry
        if entry.key == FORGET:
            return None
    return None


def _with_stale(steps: Iterator[StepSeen], moment: Moment) -> list[StepSeen]:
    listed = list(steps)
    changed = {step.name for step in listed if diverged(step, moment)}
    holds = {step.name: step.record for step in listed if step.record is not None}
    history = {step.name: step.history for step in listed}
    reasons = stale_reasons(holds, history, changed=changed, where=functools.partial(_where, moment))
    foreign = moment.records.untrusted
    return [
        replace(step, stale=reasons.get(step.name) or _rejected(step) or _foreign(step, foreign)) for step in listed
    ]


def _foreign(step: StepSeen, untrusted: Collection[EntryId]) -> str:
    """Its record is somebody else's: it is listed and never put back, so it must not look saved (DESIGN 8)."""
    if step.record is None or step.record.entry not in untrusted or step.attempt not in (None, step.record):
        return ""
    return "its record was not written with your key"


def _where(moment: Moment, run: int) -> str:
    """In which run a record was made, where that is not the one that is looked at: two kernels may share a notebook."""
    if run == moment.run:
        return ""
    seen = moment.records.runs.get(run)
    open_ = seen is not None and seen.end == RunEnd.OPEN
    who = f" by another kernel (pid {seen.start.pid} on {seen.start.host})" if seen is not None and open_ else ""
    return f" in run {run}{who}"


def _rejected(step: StepSeen) -> str:
    """The newest attempt is fine, but a person rejected it: it will run again."""
    attempt = step.attempt
    if attempt is None or attempt.status is not Status.OK or attempt is step.record:
        return ""
    return step.rejected


def _row(step: StepSeen, moment: Moment) -> StepRow:
    held = set(states(step, moment))
    state = next((word for word in PRECEDENCE if word in held), "interrupted")
    shown = step.record or step.attempt
    newest = step.attempt or step.record
    owes = owing(step.record) if step.record is not None and state in _HELD else ""
    payload = shown.payload.bytes if shown and shown.payload else 0
    outputs = shown.outputs.size if shown and shown.outputs else 0
    differs = step.done.differs if step.done else ()
    parts = [str(item.part) for item in differs]
    if step.name in moment.edited:
        parts.append(str(Part.CODE))
    return StepRow(
        name=step.name,
        state=state,
        decision=step.done.decision if step.done else None,
        attempts=newest.attempt if newest else 0,
        recorded_at=step.record.ended_at if step.record else None,
        took_s=_took(state, step),
        replay_s=step.done.replay_s if step.done else None,
        bytes=payload + outputs,
        differs=tuple(dict.fromkeys(parts)),
        why=owes or with_saved(_why(state, step, moment), step.saved),
        not_stored=shown.not_stored if shown else (),
        owes=owes,
    )


_HELD = frozenset({"recorded", "saved", "replayed", "saving"})


def _took(state: str, step: StepSeen) -> float | None:
    """What its record took or, of an attempt that came to nothing, what that one took: what ``why`` tells, too."""
    tried = step.attempt if state in {"failed", "interrupted"} else None
    for entry in (tried, step.record, step.attempt):
        if entry is not None and (entry is not tried or entry.took_s is not None):
            return entry.took_s
    return step.done.took_s if step.done else None


def _why(state: str, step: StepSeen, moment: Moment) -> str:
    attempt, done = step.attempt, step.done
    decided = done.why if done is not None else ""
    match state:
        case "dead" if step.deaths:
            return f"the kernel died {in_a_row(step.deaths)} in it"
        case "failed" if attempt is not None and attempt.error is not None:
            return f"failed with {attempt.error.type}"
        case "interrupted" if unrecorded(step, moment):
            return decided or "it ran, and was not recorded"
        case "interrupted" if attempt is not None and attempt.status is Status.INTERRUPTED:
            return "it was interrupted"
        case "interrupted":
            return "its kernel went away while it ran"
        case "ambiguous":
            return "it was started and nobody knows whether it happened"
        case "stale":
            return step.stale
        case _ if done is not None and done.differs:
            return "; ".join(map(str, done.differs))
        case "diverged":
            return decided or "the cell is not that of the record"
        case "replayed" if was_restored(step, moment):
            return "put back without running"
        case "saved":
            return decided or "in the journal, not in memory"
        case _:
            return decided or (step.record.why if step.record is not None else "")


def _saved(step: StepSeen) -> float:
    if step.done is None or step.done.decision != REPLAYED or step.record is None:
        return 0.0
    return (step.record.took_s or 0.0) - (step.done.replay_s or 0.0)


def _status_word(moment: Moment, rows: Sequence[StepRow]) -> str:
    if any(row.state == "dead" for row in rows):
        return "dead"
    if moment.open(moment.run):
        return "running"
    return _ended(moment)


def _ended(moment: Moment) -> str:
    """How a run ended: only a kernel that went away by itself died."""
    mine = [entry for entry in moment.records.entries if entry.run == moment.run]
    told = next((entry.status for entry in reversed(mine) if entry.kind is Kind.RUN), None)
    last = next((entry for entry in reversed(mine) if entry.kind in RECORDS or entry.kind is Kind.PLAIN), None)
    raised = told is None and last is not None and last.status is Status.FAILED  # in a plain cell, it may be
    if ended_in_order(moment.records, moment.run) and not raised:
        return "finished"
    seen = moment.records.runs.get(moment.run)
    if told is not Status.FAILED and (seen is None or seen.end not in (RunEnd.CLEAN, RunEnd.ASKED)):
        return "died"
    if told is Status.FAILED or raised:
        return "failed"
    return "interrupted" if last is not None and last.status is Status.INTERRUPTED else "stopped"


def _holder(moment: Moment) -> str | None:
    seen = moment.records.runs.get(moment.run)
    if seen is None or not moment.open(moment.run):
        return None
    return f"pid {seen.start.pid} on {seen.start.host}"


def _notes(records: FlowRecords) -> Iterator[str]:
    if records.untrusted:
        found = count(len(records.untrusted), "record")
        yield f"{found} not written with your key: listed, never replayed (KEEL-E050)"
