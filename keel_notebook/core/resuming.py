"""Which runs a run goes on with (DESIGN 5, Volatile): a pure rule over what the journal knows of them."""

from __future__ import annotations

from collections.abc import Callable

from keel_notebook.core.entries import index_of, stopped_short
from keel_notebook.core.kernels import COMMAND
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
    index = index_of(records)
    if run in index.afresh:
        return frozenset()
    found: set[int] = set()
    for number, seen in sorted(records.runs.items(), reverse=True):
        if number >= run or seen.start.notebook == COMMAND or seen.end == RunEnd.OPEN:
            continue
        finished = seen.end == RunEnd.CLEAN and not (asked and stopped_short(index, number))
        at = max(seen.start.started, index.last_seen.get(number, seen.start.started))
        if finished or (not asked and (now - at > RESUMED_S or day(at) != day(now))):
            break
        found.add(number)
        if number in index.afresh:
            break
    return frozenset(found)


def of_root(records: FlowRecords, root: str) -> FlowRecords:
    """The runs of one notebook among those that share the default flow: their first step tells (DESIGN 5)."""
    runs = {entry.run for entry in records.entries if entry.ambient.get("root") == root}
    entries = [entry for entry in records.entries if entry.run in runs]
    return FlowRecords(records.flow, entries, {run: seen for run, seen in records.runs.items() if run in runs})
