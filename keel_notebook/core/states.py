"""The states of a step, as badges and tables show them (FRONTEND.md, Behaviour).

Several may hold at once. ``states`` finds every one that holds, each by itself; ``PRECEDENCE`` says which of them is
shown, so that no rule has to know of another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

from keel_notebook.core.done import EXECUTED, REFUSED, REPLAYED, StepDone
from keel_notebook.core.entries import RECORDS, index_of
from keel_notebook.core.lifecycle import newest_ok
from keel_notebook.core.model import Digest, Entry, EntryId, Kind, Status
from keel_notebook.core.options import StepOptions, find_marker, parse_options
from keel_notebook.core.ports import FlowRecords, RunEnd
from keel_notebook.core.redact import redacted
from keel_notebook.core.sources import same_code
from keel_notebook.errors import SettingsError

PRECEDENCE = (
    "dead",
    "ambiguous",
    "failed",
    "interrupted",
    "diverged",
    "stale",
    "waiting",
    "sleeping",
    "running",
    "saving",
    "saved",
    "replayed",
    "resource",
    "recorded",
)
"""The states of a badge, the one that is shown first (FRONTEND.md, Behaviour)."""


class Moment(Struct, frozen=True):
    """From where and when the flow is looked at."""

    records: FlowRecords
    run: int
    live: bool
    unsynced: Collection[EntryId]
    edited: Collection[str]
    restored: Mapping[str, EntryId] = {}
    """Steps whose record was put back without running, with that record."""

    def open(self, run: int) -> bool:
        """Whether the kernel of a run lives."""
        seen = self.records.runs.get(run)
        return (self.live and run == self.run) or (seen is not None and seen.end == RunEnd.OPEN)


class StepSeen(Struct, frozen=True):
    """All that is known of one step."""

    name: str
    attempt: Entry | None
    """The newest attempt or record, unless a replay has overtaken it."""
    record: Entry | None
    """The record that holds now."""
    done: StepDone | None
    options: StepOptions
    deaths: int
    waits: frozenset[Kind]
    """Kinds of open waits inside the step."""
    history: tuple[Entry, ...]
    stale: str = ""
    saved: int = 0
    """Durable calls of it that are recorded, where it did not end well."""
    rejected: str = ""
    """Why the newest of its records that a person rejected does not count."""


def step_options(source: str) -> StepOptions:
    """The options in a recorded cell's step line; the defaults where there is none that can be read."""
    marker = find_marker(source)
    try:
        return parse_options(marker.line) if marker else StepOptions()
    except SettingsError:
        return StepOptions()


def edited_steps(records: FlowRecords, cells: Mapping[str, str]) -> set[str]:
    """Steps whose cell, as it stands in the notebook now, was never recorded so. ``cells``: step name to source."""
    known: dict[str, list[str]] = {}
    for entry in records.entries:
        if entry.kind in RECORDS and entry.source:
            known.setdefault(entry.step, []).append(entry.source)
    return {
        step
        for step, source in cells.items()
        if step in known and not any(same_code(recorded, redacted(source)) for recorded in reversed(known[step]))
    }


def same_code_as(records: FlowRecords, code: Digest | None, *, without: Collection[str]) -> str:
    """The newest step with a name of its own that holds a record of this code, or "": a step may have been renamed."""
    for entry in reversed(index_of(records).of_code.get(code, ()) if code is not None else ()):
        if entry.step not in without and entry.entry not in records.untrusted and step_options(entry.source).name:
            newest = newest_ok(records, entry.step)
            if newest is not None and newest.code == code:
                return entry.step
    return ""


def root_of(entry: Entry) -> str:
    """What separates the notebooks of a folder where nobody tells which one runs: deaths count under it."""
    return str(entry.ambient.get("root", ""))


def states(step: StepSeen, moment: Moment) -> Iterator[str]:
    """Every state that holds of a step, in no order."""
    attempt, done = step.attempt, step.done
    refusal = done.refusal if done is not None and done.decision == REFUSED else ""
    if refusal == "E032" or (attempt is not None and step.deaths >= step.options.max_attempts):
        yield "dead"
    if attempt is not None:
        yield from _attempt_states(attempt, moment)
    if unrecorded(step, moment):
        yield "interrupted"
    if diverged(step, moment):
        yield "diverged"
    if step.stale:
        yield "stale"
    if Kind.PROMISE in step.waits:
        yield "waiting"
    if Kind.SLEEP in step.waits:
        yield "sleeping"
    if step.record is not None:
        yield from _record_states(step, step.record, moment)


def _attempt_states(attempt: Entry, moment: Moment) -> Iterator[str]:
    match attempt.status:
        case Status.RUNNING:
            yield "running" if moment.open(attempt.run) else "interrupted"
        case Status.INTENT:
            yield "running" if moment.open(attempt.run) else "ambiguous"
        case Status.FAILED:
            yield "failed"
        case Status.INTERRUPTED:
            yield "interrupted"
        case Status.SKIPPED:
            yield "recorded"
        case Status.OK:
            if attempt.entry in moment.unsynced:
                yield "saving"


def _record_states(step: StepSeen, record: Entry, moment: Moment) -> Iterator[str]:
    yield "recorded"
    if step.options.always:
        yield "resource"
    elif not _in_memory(step, record, moment):
        yield "saved"
    elif (step.done is not None and step.done.decision == REPLAYED) or was_restored(step, moment):
        yield "replayed"


def was_restored(step: StepSeen, moment: Moment) -> bool:
    """Whether the step's record is in memory because a restore put it back (and not because its body ran here)."""
    record = step.record
    if record is None or moment.restored.get(step.name) != record.entry:
        return False
    return not (moment.live and record.run == moment.run)


def _in_memory(step: StepSeen, record: Entry, moment: Moment) -> bool:
    if moment.restored.get(step.name) == record.entry:
        return True
    if not moment.live:
        return False
    if step.done is not None and step.done.decision in (EXECUTED, REPLAYED):
        return True
    return record.run == moment.run


def unrecorded(step: StepSeen, moment: Moment) -> bool:
    """The body ran in this run, and no record came of it (disk full, interrupted while recording)."""
    done, attempt = step.done, step.attempt
    if done is None or done.decision != EXECUTED or done.entry is not None or done.took_s is None:
        return False
    if attempt is None or attempt.run != moment.run:
        return True
    return attempt.status not in (Status.FAILED, Status.INTERRUPTED)


def diverged(step: StepSeen, moment: Moment) -> bool:
    """The notebook differs from the record and nothing was done about it: refused, or edited and not run yet."""
    done = step.done
    if done is not None and done.decision == REFUSED and (done.differs or done.refusal == "E031"):
        return True
    return step.name in moment.edited
