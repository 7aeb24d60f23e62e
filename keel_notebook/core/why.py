"""Why a step replayed, executed or was refused: one sentence first, then all of it (DESIGN 3.1, ``%keel why``).

Pure: what was recorded stands against what the step is now, part by part. Values appear only as the previews that
were written when the step was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from keel_notebook.core.decide import AS_RECORDED, Difference, Part, owing, shown
from keel_notebook.core.done import EXECUTED, REPLAYED, StepDone, done_in
from keel_notebook.core.entries import RECORDS
from keel_notebook.core.fileholds import same
from keel_notebook.core.kernels import newest_run
from keel_notebook.core.lifecycle import fingerprint_of, in_force, recorded
from keel_notebook.core.model import Entry, Input, Kind, NotStored, Status
from keel_notebook.core.ports import FlowRecords, RunEnd, RunSeen
from keel_notebook.core.record import as_dict
from keel_notebook.core.savedcalls import saved_calls, with_saved
from keel_notebook.core.sources import code_diff, same_code
from keel_notebook.core.states import root_of
from keel_notebook.core.units import duration, in_a_row, maker, middle, one_line, size
from keel_notebook.errors import UnknownNameError


class Differs(Struct, frozen=True):
    """One part that differs, with the cell that made the new value."""

    part: str
    name: str
    recorded: str
    current: str
    detail: str
    producer: str


class InputPair(Struct, frozen=True):
    """One input, recorded and current. ``same`` is None where only one side is known."""

    name: str
    recorded: str
    current: str
    same: bool | None
    weak: bool
    producer: str


class AttemptSeen(Struct, frozen=True):
    """One attempt of the step."""

    entry: str
    run: int
    attempt: int
    end: str
    """An entry status; or how the kernel of an attempt that never ended did: ``died``, ``vanished``, ``stopped``."""
    started_at: float
    took_s: float | None
    memory: int
    error: str


class WhyReport(Struct, frozen=True):
    """The whole answer. ``sentence`` alone is enough most of the time."""

    step: str
    sentence: str
    decision: str | None
    record: str | None
    """The entry on the recorded side."""
    differs: tuple[Differs, ...]
    inputs: tuple[InputPair, ...]
    diff: tuple[str, ...]
    """Unified diff of the cell, recorded against current."""
    format_only: bool
    """The text differs and the code does not."""
    attempts: tuple[AttemptSeen, ...]
    deaths: int
    not_stored: tuple[NotStored, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in as_dict(self).items()}


def utc(at: float) -> str:
    """A time as text where nobody says how people here write it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


class _Sides(Struct, frozen=True):
    """What stands against what."""

    done: StepDone | None
    base: Entry | None
    """The record on the recorded side."""
    attempt: Entry | None
    """The newest attempt; of this run if it made one."""
    run: int


def why(
    step: str,
    records: FlowRecords,
    done: Mapping[str, StepDone],
    *,
    run: int | None = None,
    when: Callable[[float], str] = utc,
) -> WhyReport:
    """Why a step did what it did in a run.

    Args:
        step: its name.
        records: the flow's entries and runs.
        done: what this kernel did with each step; empty on the command line.
        run: the run that is asked about; by default the newest one.
        when: writes a time for people.

    Raises UnknownNameError (E002) where no step has this name.
    """
    entries = [entry for entry in records.entries if entry.step == step]
    looked_at = newest_run(records) if run is None else run
    decided = done.get(step) or done_in(entries, looked_at).get(step)
    if decided is None and not any(entry.kind in RECORDS for entry in entries):
        raise _unknown(step, records, done)
    sides = _sides(entries, decided, looked_at)
    deaths, memory = _deaths(records, step, sides.attempt)
    return WhyReport(
        step=step,
        sentence=_sentence(step, sides, records, when),
        decision=decided.decision if decided else None,
        record=sides.base.entry if sides.base else None,
        differs=tuple(_differs(sides)),
        inputs=tuple(_inputs(sides)),
        **_code(sides),
        attempts=tuple(_attempts(entries, records)),
        deaths=deaths,
        not_stored=held.not_stored if (held := _holds(sides)) else (),
        notes=tuple(_notes(sides, records, deaths, memory, _saved(sides, entries, step))),
    )


def _unknown(step: str, records: FlowRecords, done: Mapping[str, StepDone]) -> UnknownNameError:
    known = {entry.step for entry in records.entries if entry.kind in RECORDS} | done.keys()
    return UnknownNameError(what="step", name=one_line(step), hint=hint(step, known))


def near(name: str, known: Iterable[str]) -> str:
    """What was meant where a known name is near, to be put behind what is wrong; empty where none is."""
    import difflib  # noqa: PLC0415 - a kernel that loads keel never needs it

    found = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {one_line(found[0])}?" if found else ""


def hint(name: str, known: Collection[str], *, most: int = 20) -> str:
    """What may have been meant, to be put behind "... is not known here"; no more names than ``most``."""
    if meant := near(name, known):
        return meant
    listed = ", ".join(one_line(middle(word, 40)) for word in sorted(known)[:most])
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return f"; known: {listed}{more}" if listed else "; nothing is recorded yet"


def _sides(entries: Sequence[Entry], done: StepDone | None, run: int) -> _Sides:
    attempts = [entry for entry in entries if entry.kind in RECORDS]
    newest = next((e for e in reversed(attempts) if done is None or e.run == run), attempts[-1] if attempts else None)
    whole = [entry for entry in attempts if entry.status is Status.OK]
    if done is not None and done.decision == REPLAYED:
        base = next((entry for entry in whole if entry.entry == done.entry), whole[-1] if whole else None)
    elif done is not None and done.decision == EXECUTED:
        before = [entry for entry in entries if newest is None or (entry.run, entry.seq) < (newest.run, newest.seq)]
        last, older = in_force(reversed(before)), [entry for entry in reversed(whole) if entry is not newest]
        base = next((entry for entry in older if entry.entry == last), older[0] if older else None)
    else:
        base = whole[-1] if whole else None
    return _Sides(done, base, newest, run)


def _current(sides: _Sides) -> tuple[str, tuple[Input, ...]]:
    """The cell's text and inputs on the current side; empty where the step has not been met."""
    done = sides.done
    if done is None or done.decision == REPLAYED:
        return (done.source if done else ""), (done.current_inputs if done else ())
    if done.decision == EXECUTED and sides.attempt is not None and not done.source:
        return sides.attempt.source, sides.attempt.inputs
    return done.source, done.current_inputs


def _sentence(step: str, sides: _Sides, records: FlowRecords, when: Callable[[float], str]) -> str:
    done, base = sides.done, sides.base
    of = f"run {base.run}, {when(base.ended_at or base.started_at)}" if base is not None else "no run"
    match done.decision if done else None:
        case None:
            return f"{step} {_not_met(sides, records)}" + (f"; its record is of {of}" if base else "")
        case "replayed":
            assert done is not None
            since = done.why.removeprefix(AS_RECORDED) if done.why.startswith(AS_RECORDED) else ""
            return f"{step} replayed: code and inputs are those of {of}{since}"
        case "refused":
            assert done is not None
            code = f" (KEEL-{done.refusal})" if done.refusal else ""
            return f"{step} was refused: {_reasons(sides)}{code}"
        case "skipped":
            return f"{step} was skipped: {_reasons(sides)}"
        case _:
            return f"{step} {_executed(sides)}: {_reasons(sides)}"


def _not_met(sides: _Sides, records: FlowRecords) -> str:
    attempt = sides.attempt
    if attempt is None or attempt.status is Status.OK:
        return f"has not run in run {sides.run}"
    if attempt.status is Status.RUNNING:
        return {"running": "is running in another kernel"}.get(
            ended(attempt, records.runs), "did not end: its kernel went away"
        )
    return f"{_executed(sides)} in run {attempt.run}"


def _executed(sides: _Sides) -> str:
    attempt = sides.attempt
    match attempt.status if attempt else None:
        case Status.FAILED if attempt is not None and attempt.error is not None:
            return f"executed and failed with {attempt.error.type}"
        case Status.FAILED:
            return "executed and failed"
        case Status.INTERRUPTED:
            return "executed and was interrupted"
        case Status.RUNNING if sides.done is None or sides.done.took_s is None:
            return "executes"
        case _:
            return "executed"


def _reasons(sides: _Sides) -> str:
    done = sides.done
    assert done is not None
    if not done.differs:
        return done.why or "no reason was kept"
    makers = {item.name: item.producer for item in _current(sides)[1]}
    return "; ".join(_reason(item, makers.get(item.name, "")) for item in done.differs)


def _reason(item: Difference, producer: str) -> str:
    return f"{item} (made by {maker(producer)})" if producer and item.part is Part.INPUT else str(item)


def _differs(sides: _Sides) -> Iterator[Differs]:
    makers = {item.name: maker(item.producer) for item in _current(sides)[1]}
    for item in sides.done.differs if sides.done else ():
        yield Differs(
            str(item.part), item.name, item.recorded, item.current, item.detail, maker(makers.get(item.name, ""))
        )


def _inputs(sides: _Sides) -> Iterator[InputPair]:
    before = {item.name: item for item in sides.base.inputs} if sides.base else {}
    after = {item.name: item for item in _current(sides)[1]}
    if sides.done is not None and sides.done.decision == REPLAYED and not after:
        after = before  # a replay is decided by their equality
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        yield InputPair(
            name=name,
            recorded=shown(old) if old else "",
            current=shown(new) if new else "",
            same=same(old.digest, new.digest) if old and new else None,
            weak=any(item.weak for item in (old, new) if item is not None),
            producer=maker((new or old or Input(name, None)).producer),
        )


def _code(sides: _Sides) -> dict[str, Any]:
    current, _ = _current(sides)
    if sides.base is None or not current or not sides.base.source:
        return {"diff": (), "format_only": False}
    diff = code_diff(sides.base.source, current)
    return {"diff": diff, "format_only": bool(diff) and same_code(sides.base.source, current)}


def _attempts(entries: Sequence[Entry], records: FlowRecords) -> Iterator[AttemptSeen]:
    for entry in reversed(entries):
        if entry.kind not in RECORDS:
            continue
        yield AttemptSeen(
            entry=entry.entry,
            run=entry.run,
            attempt=entry.attempt,
            end=ended(entry, records.runs),
            started_at=entry.started_at,
            took_s=entry.took_s,
            memory=entry.rss_peak,
            error=entry.error.type if entry.error else "",
        )


def ended(entry: Entry, runs: Mapping[int, RunSeen]) -> str:
    """How an entry came to its end, in one word: its status, or how the kernel did that took it along."""
    if entry.kind in RECORDS and entry.kind is not Kind.STEP:
        return str(entry.kind)
    if entry.status is not Status.RUNNING:
        return str(entry.status)
    seen = runs.get(entry.run)
    match seen.end if seen else None:
        case RunEnd.OPEN | None:
            return "running"
        case RunEnd.DIED:
            return "died"
        case RunEnd.VANISHED:
            return "vanished"
        case _:
            return "stopped"


def _deaths(records: FlowRecords, step: str, attempt: Entry | None) -> tuple[int, int]:
    if attempt is None:
        return 0, 0
    known = recorded(records, step, fingerprint_of(attempt), root=root_of(attempt))
    return known.deaths, known.memory


def _saved(sides: _Sides, entries: Sequence[Entry], step: str) -> int:
    """Calls that are recorded, where the newest attempt did not end well."""
    attempt = sides.attempt
    return saved_calls(entries, step) if attempt is not None and attempt.status is not Status.OK else 0


def _holds(sides: _Sides) -> Entry | None:
    """The record that holds after this run."""
    if sides.done is not None and sides.done.decision == EXECUTED and sides.attempt is not None:
        return sides.attempt
    return sides.base


def _notes(sides: _Sides, records: FlowRecords, deaths: int, memory: int, saved: int) -> Iterator[str]:
    if deaths:
        seen = f"; memory last seen {size(memory)}" if memory else ""
        yield f"its kernel died {in_a_row(deaths)} in it{seen}"
    if saved:
        yield f"{with_saved('', saved)}: one comes back where its function and arguments are as they were"
    record = _holds(sides)
    if record is None:
        return
    if record.status is Status.OK and (owes := owing(record)):
        yield owes
    if record.entry in records.untrusted:
        yield "its record was not written with your key (KEEL-E050)"
    if record.kind is Kind.ACCEPT:
        yield "its record was accepted by a person, not made by running this code"
    if record.kind is Kind.ADOPT:
        yield "its record was adopted: the cell ran before keel was there"
    if isinstance(saw := record.ambient.get("saw"), (list, tuple)) and saw:
        yield f"it reached out ({', '.join(map(str, saw))}): older records of it are not replayed unasked"
    if sides.done is not None and sides.done.decision == REPLAYED:
        yield f"it took {duration(record.took_s)} when it was executed and {duration(sides.done.replay_s)} to put back"
