"""Which runs a run goes on with (DESIGN 5, Volatile): a pure rule over what the journal knows of them."""

from __future__ import annotations

from collections.abc import Callable

from keel_notebook.core.done import DECISION, REFUSED
from keel_notebook.core.kernels import kernel_runs
from keel_notebook.core.lifecycle import RECORDS
from keel_notebook.core.model import Entry, Kind, Status
from keel_notebook.core.order import begun_afresh
from keel_notebook.core.ports import FlowRecords, RunEnd

RESUMED_S = 12 * 3600.0
"""A run that died longer ago than this is gone on with only where that is asked for."""


def resumed_runs(
    records: FlowRecords, run: int, now: float, *, day: Callable[[float], str], asked: bool = False
) -> frozenset[int]:
    """The runs that this one goes on with: those that died since the last one that finished.

    Where that is asked for, a run whose kernel was shut down in order after a cell that failed did not finish either:
    what it had done is not to be done again because the last cell had a mistake in it.

    Args:
        records: the flow's entries and runs.
        run: this run.
        now: wall time in seconds.
        day: the calendar day of a wall time. A run that died on another day is not gone on with by itself.
        asked: whether a person or ``keel run`` said so (``KEEL_RESUME=1``), or nobody can be asked: then however long
            ago they died, and a run that was shut down after a cell that failed is not finished either.
    """
    afresh = begun_afresh(records.entries)
    if run in afresh:
        return frozenset()
    seen_last = {number: seen.start.started for number, seen in records.runs.items()}
    for entry in records.entries:
        at = entry.started_at if entry.ended_at is None else entry.ended_at
        seen_last[entry.run] = max(seen_last.get(entry.run, at), at)
    found: set[int] = set()
    for number in sorted((n for n in kernel_runs(records) & records.runs.keys() if n < run), reverse=True):
        end, at = records.runs[number].end, seen_last[number]
        if end == RunEnd.OPEN:
            continue
        finished = end == RunEnd.CLEAN and not (asked and _stopped_short(records, number))
        if finished or (not asked and (now - at > RESUMED_S or day(at) != day(now))):
            break
        found.add(number)
        if number in afresh:
            break
    return frozenset(found)


def _stopped_short(records: FlowRecords, run: int) -> bool:
    """Whether the last cell of a run failed, was interrupted or was refused."""
    last = max((e for e in records.entries if e.run == run and _is_cell(e)), key=lambda e: e.seq, default=None)
    return last is not None and (last.status is not Status.OK or last.kind is Kind.MARKER)


def _is_cell(entry: Entry) -> bool:
    if entry.kind is Kind.MARKER:
        return entry.key == DECISION and entry.ambient.get("decision") == REFUSED
    return entry.kind in RECORDS or entry.kind is Kind.PLAIN


def of_root(records: FlowRecords, root: str) -> FlowRecords:
    """The runs of one notebook among those that share the default flow: their first step tells (DESIGN 5)."""
    runs = {entry.run for entry in records.entries if entry.ambient.get("root") == root}
    entries = [entry for entry in records.entries if entry.run in runs]
    return FlowRecords(records.flow, entries, {run: seen for run, seen in records.runs.items() if run in runs})
