"""What ``keel run`` tells while a notebook runs: lines for people, one JSON object a line for programs.

Time left comes from the record: what the steps that will execute took last time. Nothing here unpickles.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct, field

from keel_notebook.core.done import DECISIONS, REPLAYED, StepDone, done_in
from keel_notebook.core.kernels import newest_run
from keel_notebook.core.plans import Action, PlannedCell, plan
from keel_notebook.core.ports import FlowRecords
from keel_notebook.core.redact import redacted
from keel_notebook.core.units import count, duration, one_line
from keel_notebook.errors import KeelError
from keel_notebook.front.coming import coming_run
from keel_notebook.front.headless import EXIT_CODES, CellSeen, Ended
from keel_notebook.journal.reader import JournalReader, read_journal

_FOR_PEOPLE = frozenset({"message", "source"})
_TAKES_TIME = frozenset({Action.EXECUTES, Action.MAY})


class Subject(Struct, frozen=True):
    """Which records belong to the notebook that runs: its flow by name, or by path and key."""

    journal: Path
    notebook: Path
    name: str
    key: str


class Records:
    """The journal of the run, looked at from outside the kernel. It may not be there yet."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._reader: JournalReader | None = None
        self.auto = False
        """Whether the flow is in auto mode; known once its records were found."""
        self._before = 0
        self._before = self._newest()

    def now(self) -> FlowRecords | None:
        """What is recorded of the flow; None where nothing is, or where it cannot be read."""
        with contextlib.suppress(KeelError):
            if self._reader is None and (self._subject.journal / "inbox").is_dir():
                self._reader = read_journal(self._subject.journal, seal=None)
            if self._reader is not None:
                found = next((flow for flow in self._reader.flows() if self._is_it(flow)), None)
                self.auto = found is not None and found.auto_s is not None
                return None if found is None else self._reader.records(found.id)
        return None

    def done(self) -> Mapping[str, StepDone]:
        """What was decided about each step in the run that is under way."""
        records, newest = self.now(), self._newest()
        return done_in(records.entries, newest) if records is not None and newest > self._before else {}

    def close(self) -> None:
        """Let go of the journal's files."""
        if self._reader is not None:
            self._reader.close()

    def _newest(self) -> int:
        records = self.now()
        return newest_run(records) if records is not None else 0

    def _is_it(self, flow: Any) -> bool:
        subject = self._subject
        if subject.name:
            return bool(flow.name == subject.name and flow.key == subject.key)
        return bool(flow.notebook == str(subject.notebook) and flow.key == subject.key and not flow.name)


class Totals(Struct):
    """What a run has come to so far."""

    decisions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DECISIONS, 0))
    saved_s: float = 0.0
    cells: int = 0

    def add(self, done: StepDone | None) -> None:
        """A cell has ended; ``done`` where it was a step."""
        self.cells += 1
        if done is not None:
            self.decisions[done.decision] += 1
            if done.decision == REPLAYED and done.took_s is not None:
                self.saved_s += max(0.0, done.took_s - (done.replay_s or 0.0))

    def to_dict(self) -> dict[str, Any]:
        """The totals as plain values."""
        return {"cells": self.cells, **self.decisions, "saved_s": self.saved_s}


class RunLog:
    """Implements ``headless.Listener``: keeps count, looks at the record, and hands events to ``tell``."""

    def __init__(
        self,
        cells: Sequence[PlannedCell],
        records: Records,
        *,
        now: float,
        tell: Callable[[dict[str, Any]], None],
        on_kernel: Callable[[int], None] = lambda _: None,
    ) -> None:
        """``on_kernel`` is told the kernel's pid before its first cell."""
        self._records = records
        self._on_kernel = on_kernel
        self._tell = tell
        self._of = len(cells)
        self.totals = Totals()
        known = records.now()
        coming = coming_run(known, now=now, alone=True, auto=records.auto) if known is not None else None
        rows = plan(cells, known, now=now, run=coming).rows if known is not None and coming is not None else ()
        self._left = {row.index: row.took_s or 0.0 for row in rows if row.action in _TAKES_TIME}
        self._cell: PlannedCell | None = None

    @property
    def known_s(self) -> float:
        """Seconds that the steps that are still to be executed took last time."""
        return sum(self._left.values())

    def kernel(self, pid: int) -> None:
        """The kernel is there."""
        self._on_kernel(pid)

    def begins(self, cell: PlannedCell) -> None:
        """A code cell is sent to the kernel."""
        self._cell = cell
        self._tell({"event": "begins", **self._where(cell), "left_s": round(self.known_s, 3)})

    def waits(self, elapsed_s: float) -> None:
        """The cell still runs."""
        assert self._cell is not None
        own = self._left.get(self._cell.index, 0.0)
        left = self.known_s - min(own, elapsed_s)
        where = self._where(self._cell)
        self._tell({"event": "waits", **where, "elapsed_s": round(elapsed_s, 3), "left_s": round(left, 3)})

    def ended(self, seen: CellSeen) -> None:
        """The cell has ended."""
        done = self._records.done().get(seen.cell.step) if seen.cell.step else None
        self.totals.add(done)
        self._left.pop(seen.cell.index, None)
        found = {
            "event": "ended",
            **self._where(seen.cell),
            "status": seen.status,
            "decision": done.decision if done is not None else None,
            "took_s": round(seen.took_s, 3),
            "left_s": round(self.known_s, 3),
        }
        if seen.error:
            found["error"] = seen.error
            found["message"] = seen.message
        if seen.line:
            found["line"] = seen.line
            found["source"] = redacted(dict(enumerate(seen.cell.source.splitlines(), 1)).get(seen.line, "")).strip()
        if seen.said:
            found["said"] = list(seen.said)
        self._tell(found)

    def _where(self, cell: PlannedCell) -> dict[str, Any]:
        return {"cell": cell.index, "of": self._of, "step": cell.step or None}


def closing(ended: Ended, totals: Totals, *, took_s: float, output: Path) -> dict[str, Any]:
    """The last event of a run."""
    head = {"event": "finished" if ended is Ended.FINISHED else "stopped", "status": str(ended)}
    tail = {"exit_code": EXIT_CODES[ended], "took_s": round(took_s, 3), "output": str(output)}
    return head | totals.to_dict() | tail


def tell_json(event: Mapping[str, Any]) -> None:
    """One event as one line of JSON, seen at once. That a cell still runs is left to the reader's own clock.

    What an exception says and the notebook's code are for people: logs are kept and sent on.
    """
    if event["event"] != "waits":
        click.echo(json.dumps({name: told for name, told in event.items() if name not in _FOR_PEOPLE}))


class TellPeople:
    """Events as lines on stderr. In a terminal, the cell that runs has a line that goes on."""

    def __init__(self, *, live: bool) -> None:
        self._live = live

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Show one event."""
        match event["event"]:
            case "begins" | "waits":
                if self._live:
                    click.echo(f"\r\x1b[K{_where(event)}{_going(event)}", nl=False, err=True)
            case "ended":
                clear = "\r\x1b[K" if self._live else ""
                click.echo(f"{clear}{_where(event)}{_ended(event)}", err=True)
                if event.get("message"):
                    click.echo(f"    {event['error']}: {one_line(event['message'])}", err=True)
                if event.get("line"):
                    click.echo(f"    line {event['line']} of the cell: {one_line(event['source'])}", err=True)
                for line in event.get("said", ()):
                    click.echo(f"    {one_line(line)}", err=True)
            case "started":
                left = f", about {duration(event['left_s'])} of work left" if event["left_s"] else ""
                click.echo(f"{event['notebook']} -> {event['output']}{left}", err=True)
            case _:
                click.echo(_closing(event), err=True)


def _where(event: Mapping[str, Any]) -> str:
    width = len(str(event["of"]))
    return f"[{event['cell']:>{width}}/{event['of']}] {one_line(event['step'] or 'plain cell')}"


def _going(event: Mapping[str, Any]) -> str:
    elapsed = f" {duration(event['elapsed_s'])}" if "elapsed_s" in event else ""
    return f"{elapsed} ..." + (f" about {duration(event['left_s'])} left" if event["left_s"] else "")


def _ended(event: Mapping[str, Any]) -> str:
    word = (event["decision"] or "") if event["status"] == "ok" else event["status"].upper()
    error = f" {one_line(event['error'])}" if event.get("error") else ""
    left = f", about {duration(event['left_s'])} left" if event["left_s"] else ""
    return f" {word}{error} {duration(event['took_s'])}{left}".replace("  ", " ")


def _closing(event: Mapping[str, Any]) -> str:
    steps = [f"{event[word]} {word}" for word in DECISIONS if event[word]]
    saved = f", replay saved {duration(event['saved_s'])}" if event["saved_s"] >= 0.001 else ""
    said = f"{event['status']} in {duration(event['took_s'])}: {count(event['cells'], 'cell')}"
    where = f"\nthe whole traceback is in {event['output']}" if event["status"] == Ended.FAILED else ""
    return f"{said}{''.join(f', {part}' for part in steps)}{saved}{where}"
