"""How status, plan, why and log are shown: the reports of ``core`` laid out as pages (text and HTML).

``str(StatusTable(report))`` is what ``%keel`` prints where nothing richer can be shown; in a notebook its HTML is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from keel_notebook.core.chosen import LEFT_OUT
from keel_notebook.core.model import NotStored
from keel_notebook.core.plans import Action, PlanReport
from keel_notebook.core.report import StatusReport, StepRow
from keel_notebook.core.units import age, count, duration, size
from keel_notebook.core.waiting import Wait
from keel_notebook.core.why import AttemptSeen, InputPair, WhyReport
from keel_notebook.front.page import Block, Code, Column, Field, Line, Page, Table, Tone

STATE_TONES = {
    "dead": Tone.BAD,
    "ambiguous": Tone.WARN,
    "failed": Tone.BAD,
    "interrupted": Tone.BAD,
    "diverged": Tone.WARN,
    "stale": Tone.WARN,
    "waiting": Tone.STRONG,
    "sleeping": Tone.STRONG,
    "running": Tone.STRONG,
    "saving": Tone.STRONG,
    "saved": Tone.PLAIN,
    "replayed": Tone.GOOD,
    "resource": Tone.QUIET,
    "recorded": Tone.GOOD,
}
_SAFE = frozenset({"saved", "replayed", "recorded"})
_SHORT = 0.001  # seconds: less than this is not worth a field


def local_time(at: float) -> str:
    """A time as people here write it down: ``09:41`` today, ``2026-11-29 09:41`` on any other day."""
    here = datetime.fromtimestamp(at, UTC).astimezone()
    today = datetime.fromtimestamp(time.time(), UTC).astimezone().date()  # noqa: TID251 - only how a time is written
    return here.strftime("%H:%M" if here.date() == today else "%Y-%m-%d %H:%M")


class StatusTable(Page):
    """Step, state, decision, when, took, saved, size, why."""

    def __init__(self, report: StatusReport) -> None:
        super().__init__(tuple(_status_blocks(report)), report)


def _status_blocks(report: StatusReport) -> Iterator[Block]:
    yield Line(_headline(report), Tone.STRONG)
    if not report.steps:
        yield Line("nothing is recorded yet: put %%keel_step NAME on the first line of a cell", Tone.QUIET)
    else:
        yield _status_table(report)
    for row in report.steps:
        yield from _lost(row.name, row.not_stored)
    yield from (Line(_waits(wait), Tone.STRONG) for wait in report.waits)
    yield from (Line(note, Tone.WARN) for note in report.notes)


def _waits(wait: Wait) -> str:
    who = wait.step or "a plain cell"
    if wait.until is not None:
        return f"{who} sleeps until {local_time(wait.until)}"
    return f"{who} waits for {wait.name} since {local_time(wait.since)}: `keel resolve {wait.name}`"


def _headline(report: StatusReport) -> str:
    saved = sum(row.state in _SAFE and not row.owes for row in report.steps)
    which = f"run {report.run} {report.status}" if report.run else "this kernel records nothing"
    parts = [report.notebook or f"flow {report.flow}", which]
    if report.holder:
        parts[-1] += f" ({report.holder})"
    if report.steps:
        parts.append(f"{saved} of {count(len(report.steps), 'step')} saved")
    if report.saved_s >= _SHORT:
        parts.append(f"replay saved {duration(report.saved_s)}")
    return ", ".join(parts)


def _status_table(report: StatusReport) -> Table:
    columns = (
        Column("step", limit=40),
        Column("state"),
        Column("decision"),
        Column("when", right=True),
        Column("took", right=True),
        Column("saved", right=True),
        Column("size", right=True),
        Column("why", limit=100),
    )
    return Table(columns, tuple(_status_row(row, report.now) for row in report.steps))


def _status_row(row: StepRow, now: float) -> tuple[Field, ...]:
    attempts = f"attempt {row.attempts}" if row.attempts > 1 else ""
    when = "" if row.recorded_at is None else age(now - row.recorded_at)
    return (
        Field(row.name, Tone.STRONG),
        Field(row.state, STATE_TONES[row.state], attempts),
        Field(row.decision or ""),
        Field(when, title="" if row.recorded_at is None else local_time(row.recorded_at)),
        Field("" if row.took_s is None else duration(row.took_s)),
        Field(_saved(row)),
        Field(size(row.bytes) if row.bytes else ""),
        Field(f"{row.why} ({attempts})" if attempts and row.why else row.why or attempts),
    )


def _saved(row: StepRow) -> str:
    """The time that a replay saved, in the newest run."""
    if row.decision != "replayed" or row.took_s is None:
        return ""
    saved = row.took_s - (row.replay_s or 0.0)
    return duration(saved) if saved >= _SHORT else ""


def _lost(step: str, lost: Sequence[NotStored]) -> Iterator[Line]:
    """What a record lacks, a line each; what a step's own line leaves out needs no warning and one line."""
    by_choice = [item.name for item in lost if item.reason.startswith(LEFT_OUT)]
    for item in lost:
        if item.name not in by_choice:
            yield Line(f"{step}: {item.name} ({item.type}) is not stored: {item.reason}", Tone.WARN)
    if by_choice:
        yield Line(f"{step}: {LEFT_OUT}: {', '.join(by_choice)}", Tone.QUIET)


class PlanTable(Page):
    """What Run All would do, cell by cell, and on what that rests."""

    def __init__(self, report: PlanReport) -> None:
        super().__init__(tuple(_plan_blocks(report)), report)


_ACTION_TONES = {Action.EXECUTES: Tone.WARN, Action.MAY: Tone.WARN, Action.REFUSED: Tone.BAD, Action.REPLAYS: Tone.GOOD}


def _plan_blocks(report: PlanReport) -> Iterator[Block]:
    yield Line(_plan_headline(report), Tone.STRONG)
    columns = (
        Column("cell", right=True),
        Column("step", limit=40),
        Column("Run All"),
        Column("took", right=True),
        Column("why", limit=100),
        Column("first line", limit=40),
    )
    rows = tuple(
        (
            Field(str(row.index)),
            Field(row.step, Tone.STRONG),
            Field(row.action, _ACTION_TONES.get(row.action, Tone.QUIET)),
            Field("" if row.took_s is None else duration(row.took_s)),
            Field(row.why),
            Field(row.first_line, Tone.QUIET),
        )
        for row in report.rows
    )
    if rows:
        yield Table(columns, rows)
    yield from (Line(f"if {assumption}", Tone.QUIET) for assumption in report.assumptions)


def _plan_headline(report: PlanReport) -> str:
    counts = {action: sum(row.action is action for row in report.rows) for action in Action}
    said = [f"{action} {counts[action]}" for action in (Action.EXECUTES, Action.MAY, Action.REPLAYS) if counts[action]]
    if counts[Action.RUNS]:
        said.append(f"runs {count(counts[Action.RUNS], 'plain cell')}")
    if counts[Action.REFUSED]:
        said.append(f"stops at {count(counts[Action.REFUSED], 'step')}")
    if report.execute_s >= _SHORT:
        said.append(f"what executes took {duration(report.execute_s)} last time")
    if report.replay_s >= _SHORT:
        said.append(f"what replays took {duration(report.replay_s)}")
    return f"Run All {', '.join(said)}" if said else "Run All has no cells to run"


class WhyTable(Page):
    """One sentence, then everything behind it."""

    def __init__(self, report: WhyReport) -> None:
        super().__init__(tuple(_why_blocks(report)), report)


def _why_blocks(report: WhyReport) -> Iterator[Block]:
    yield Line(report.sentence, Tone.STRONG)
    if report.differs:
        columns = (
            Column("differs"),
            Column("name", limit=40),
            Column("recorded"),
            Column("current"),
            Column("made by"),
        )
        rows = [(d.part, d.name, d.recorded, d.current or d.detail, d.producer) for d in report.differs]
        yield Table(columns, tuple(tuple(map(Field, row)) for row in rows))
    if report.inputs:
        columns = (Column("input", limit=40), Column("recorded"), Column("current"), Column(""), Column("made by"))
        yield Table(columns, tuple(_input_row(pair) for pair in report.inputs))
    if report.format_only:
        yield Line("the code is the same: only formatting, comments or the step line differ", Tone.QUIET)
    if report.diff:
        yield Code(report.diff, diff=True)
    if len(report.attempts) > 1 or any(a.end != "ok" for a in report.attempts):
        yield _attempts(report.attempts)
    yield from _lost(report.step, report.not_stored)
    yield from (Line(note, Tone.QUIET) for note in report.notes)


def _input_row(pair: InputPair) -> tuple[Field, ...]:
    verdict = {True: "equal", False: "differs", None: ""}[pair.same]
    weak = "compared by type and origin only" if pair.weak else ""
    tone = Tone.WARN if pair.same is False else Tone.PLAIN
    said = ", ".join(word for word in (verdict, weak) if word)
    return (Field(pair.name), Field(pair.recorded), Field(pair.current), Field(said, tone), Field(pair.producer))


def _attempts(attempts: Sequence[AttemptSeen]) -> Table:
    columns = (Column("run", right=True), Column("attempt", right=True), Column("started"), Column("took", right=True))
    rows = tuple(
        (
            Field(str(seen.run)),
            Field(str(seen.attempt)),
            Field(local_time(seen.started_at)),
            Field("" if seen.took_s is None else duration(seen.took_s)),
            Field(f"{seen.end} ({seen.error})" if seen.error else seen.end),
            Field(size(seen.memory) if seen.memory else ""),
        )
        for seen in attempts
    )
    return Table((*columns, Column("ended"), Column("memory", right=True)), rows)
