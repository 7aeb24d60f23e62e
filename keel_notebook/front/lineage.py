"""What the lineage view is made of: records in, plain values out (`labextension/src/view/model.ts` reads them).

Plain values only: names, verdicts, sizes and the previews that were written when a step was recorded. Never a
payload: what is shown in a widget may end up in a saved notebook (FRONTEND.md, DESIGN 8).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keel_notebook.core.done import REPLAYED, StepDone
from keel_notebook.core.entries import RECORDS
from keel_notebook.core.kernels import kernel_runs
from keel_notebook.core.lanes import Lanes
from keel_notebook.core.lifecycle import entry_named, newest_ok
from keel_notebook.core.model import Entry, EntryId, Kind, NotStored, Status
from keel_notebook.core.ports import FlowRecords, RunEnd
from keel_notebook.core.record import as_dict
from keel_notebook.core.redact import redacted
from keel_notebook.core.report import StatusReport
from keel_notebook.core.sources import same_code
from keel_notebook.core.states import edited_steps
from keel_notebook.core.waiting import open_waits
from keel_notebook.core.why import InputPair, WhyReport
from keel_notebook.engine.lanes import steps_of
from keel_notebook.engine.lease import LeaseSeen

NEAR = 0.7
"""A kernel that was last seen with this part of the memory probably died of it."""


def flow_view(
    report: StatusReport, records: FlowRecords, *, own_run: int | None = None, memory_limit: int = 0
) -> dict[str, Any]:
    """A flow as the view reads it: the status report (DESIGN 3.4), and what is beside it.

    Args:
        report: where the flow stands.
        records: its entries and runs.
        own_run: the run of the kernel that asks; None while it has none.
        memory_limit: bytes that a kernel may use here; 0 if unknown.
    """
    reads = step_edges(records)
    steps = [row.to_dict() | _beside(row.name, records, reads) for row in report.steps]
    return report.to_dict() | {
        "steps": steps,
        "notebook": report.notebook,
        "now": report.now,
        "notes": list(report.notes),
        "untrusted": len(records.untrusted),
        "died": death_before(records, own_run, memory_limit=memory_limit),
    }


def empty_view(*, now: float, notebook: str = "") -> dict[str, Any]:
    """The view of a notebook of which nothing is recorded."""
    head: dict[str, Any] = {"flow": "", "status": "new", "run": 0, "holder": None, "steps": [], "saved_s": 0.0}
    return head | {"notebook": notebook, "now": now, "notes": [], "untrusted": 0, "died": None}


def _beside(step: str, records: FlowRecords, reads: Mapping[EntryId, frozenset[str]]) -> dict[str, Any]:
    record = newest_ok(records, step)
    if record is None:
        return {"reads": [], "run": None}
    return {"reads": sorted(reads.get(record.entry, frozenset()) - {step}), "run": record.run}


def step_edges(records: FlowRecords) -> dict[EntryId, frozenset[str]]:
    """For every record the steps whose values it read, also where plain cells made something of them in between."""
    left: dict[EntryId, Entry] = {}
    made_in: dict[int, dict[str, frozenset[str]]] = {}
    found: dict[EntryId, frozenset[str]] = {}
    for entry in records.entries:
        made = made_in.setdefault(entry.run, {})
        if entry.kind in RECORDS and entry.status is Status.OK:
            left[entry.entry] = entry
            found[entry.entry] = _behind(entry, made)
            made |= dict.fromkeys((write.name for write in entry.writes), frozenset({entry.step}))
        elif entry.kind is Kind.PLAIN:
            made |= dict.fromkeys((write.name for write in entry.writes), _behind(entry, made))
        elif entry.kind is Kind.MARKER and (replayed := left.get(entry.ambient.get("entry", ""))) is not None:
            made |= dict.fromkeys((write.name for write in replayed.writes), frozenset({entry.step}))
    return found


def _behind(entry: Entry, made: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*(made.get(read.name, frozenset()) for read in entry.inputs))


def death_before(records: FlowRecords, own_run: int | None, *, memory_limit: int = 0) -> dict[str, Any] | None:
    """How the kernel before this one died; None if its end was nobody's misfortune."""
    made = kernel_runs(records) & records.runs.keys()
    earlier = [run for run in made if own_run is None or run < own_run]
    if not earlier:
        return None
    run = max(earlier)
    seen = records.runs[run]
    if seen.end != RunEnd.DIED:
        return None
    mine = [entry for entry in records.entries if entry.run == run]
    running = [e for e in mine if e.kind is Kind.STEP and e.status in (Status.RUNNING, Status.INTENT)]
    memory = max([seen.rss_last, *(entry.rss_peak for entry in mine)])
    return {
        "running": list(dict.fromkeys(entry.step for entry in running)),
        "memory": memory,
        "out_of_memory": bool(memory_limit) and memory >= NEAR * memory_limit,
        "ended_at": _last_sign(run, records),
    }


def details_view(
    why: WhyReport,
    records: FlowRecords,
    done: Mapping[str, StepDone],
    *,
    cell: str | None,
    outputs: Mapping[EntryId, Sequence[Mapping[str, Any]]],
) -> dict[str, Any]:
    """One step in full, recorded beside current.

    Args:
        why: why it did what it did.
        records: the flow's entries.
        done: what this kernel did with each step.
        cell: its cell as it stands in the notebook now; None if nobody tells.
        outputs: what entries showed, as the view shows it.
    """
    newest = newest_attempt(records, why.step)
    base = entry_named(records, EntryId(why.record)) if why.record else None
    if base is None and newest is not None and newest.status is Status.OK:
        base = newest  # executed for the first time: what it left is the record, and what is current as well
    recorded = base.source if base else ""
    current = redacted(cell) if cell is not None else _current_source(why, done.get(why.step), newest, recorded)
    sentence = why.sentence
    if base is not None and cell is not None:
        ran = newest is not None and newest.status is Status.OK and why.decision != REPLAYED
        sentence = _edited(why.step, cell, records, holds=newest if ran and newest else base) or sentence
    shown_then = outputs.get(base.entry, ()) if base is not None else ()
    shown_now = shown_then if newest is None or newest is base else outputs.get(newest.entry, ())
    return {
        "step": why.step,
        "sentence": sentence,
        "recorded_source": recorded,
        "current_source": current,
        "format_only": bool(recorded) and recorded != current and same_code(recorded, current),
        "differs": [as_dict(item) for item in why.differs],
        "inputs": [_both_sides(item) if base is newest else as_dict(item) for item in why.inputs],
        "recorded_outputs": list(shown_then),
        "current_outputs": list(shown_now),
        "not_stored": _lost(why.not_stored),
        "notes": list(why.notes),
    }


def _edited(step: str, cell: str, records: FlowRecords, *, holds: Entry) -> str:
    """What came of an edit that has not run yet; nothing where the cell is that of what holds now."""
    if same_code(holds.source, redacted(cell)):
        return ""
    if edited_steps(records, {step: cell}):
        return f"the cell of {step} differs from its record: it executes when it runs next"
    return f"the cell of {step} differs from its newest record; it is that of an older one"


def _both_sides(pair: InputPair) -> dict[str, Any]:
    """An input of a record that is also the current one: both sides are what the one side says."""
    if pair.recorded and pair.current:
        return as_dict(pair)
    known = pair.recorded or pair.current
    return as_dict(pair) | {"recorded": known, "current": known, "same": True}


def newest_attempt(records: FlowRecords, step: str) -> Entry | None:
    """The newest attempt or record of a step, whatever came of it."""
    return next((e for e in reversed(records.entries) if e.step == step and e.kind in RECORDS), None)


def _current_source(why: WhyReport, done: StepDone | None, newest: Entry | None, recorded: str) -> str:
    if done is not None and done.source:
        return done.source
    if why.decision is not None and newest is not None and newest.source:
        return newest.source
    return recorded


def _lost(items: Iterable[NotStored]) -> list[dict[str, str]]:
    return [as_dict(item) for item in items]


def timeline_view(records: FlowRecords, *, most: int, now: float) -> dict[str, Any]:
    """The newest attempts over time, oldest first, and the deaths between them."""
    attempts = [entry for entry in records.entries if entry.kind is Kind.STEP]
    shown = attempts[max(0, len(attempts) - most) :]
    died = {run: _last_sign(run, records) for run, seen in records.runs.items() if seen.end == RunEnd.DIED}
    return {
        "attempts": [_attempt(entry, records, died.get(entry.run)) for entry in shown],
        "deaths": [{"run": run, "at": at, "until": _next_start(run, at, records)} for run, at in sorted(died.items())],
        "older": len(attempts) - len(shown),
        "now": now,
    }


def _last_sign(run: int, records: FlowRecords) -> float:
    """When a run's kernel last lived for sure: what it wrote, or its look at itself once a second while a step ran."""
    seen = records.runs[run]
    signs = [entry.ended_at or entry.started_at for entry in records.entries if entry.run == run]
    return max(*signs, seen.seen_at, seen.start.started)


def _next_start(run: int, at: float, records: FlowRecords) -> float | None:
    """When the next kernel came: the one before was dead by then. None where there is none yet."""
    later = [seen.start.started for number, seen in records.runs.items() if number > run and seen.start.started >= at]
    return min(later, default=None)


def _attempt(entry: Entry, records: FlowRecords, died_at: float | None) -> dict[str, Any]:
    end = str(entry.status)
    if entry.status in (Status.RUNNING, Status.INTENT):
        seen = records.runs.get(entry.run)
        end = {RunEnd.DIED: "died", RunEnd.VANISHED: "vanished", RunEnd.OPEN: "running"}.get(
            seen.end if seen else RunEnd.OPEN, "stopped"
        )
    names = ("entry", "step", "run", "attempt", "started_at", "took_s")
    until = died_at if end == "died" else None
    return {name: getattr(entry, name) for name in names} | {"end": end, "until": until}


def storage_view(records: FlowRecords) -> list[dict[str, Any]]:
    """What every step keeps in the journal, and what of it could not be kept."""
    found: dict[str, dict[str, Any]] = {}
    for entry in records.entries:
        if entry.kind in RECORDS and entry.status is Status.OK:
            step = found.setdefault(entry.step, {"name": entry.step, "bytes": 0, "records": 0, "not_stored": []})
            step["bytes"] += (entry.payload.bytes if entry.payload else 0) + (
                entry.outputs.size if entry.outputs else 0
            )
            step["records"] += 1
            step["not_stored"] = _lost(entry.not_stored)
    return list(found.values())


def waiting_view(records: FlowRecords) -> list[dict[str, Any]]:
    """Open promises and timers. Tokens are not in the journal, so they cannot be here (DESIGN 8)."""
    return [wait.to_dict() for wait in open_waits(records.entries)]


def answers_view(records: FlowRecords, *, most: int = 20) -> list[dict[str, Any]]:
    """The newest promises that were answered: when, and by whom; the answers themselves stay in the journal (Z30)."""
    made = {e.key: e for e in records.entries if e.kind is Kind.PROMISE and e.call == "promise"}
    answers = [e for e in records.entries if e.kind is Kind.PROMISE and e.call == "answer" and e.key in made]
    return [
        {
            "name": str(made[entry.key].ambient.get("name", entry.key)),
            "step": entry.step,
            "at": entry.started_at,
            "by": str(entry.ambient.get("by", "token")),
        }
        for entry in reversed(answers[-most:])
    ]


def lanes_view(lanes: Lanes, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """The lanes of a flow in the order in which they began; none where there is only the first one."""
    if len(lanes.lanes) == 1:
        return []
    return [
        {
            "name": lane.title,
            "current": lane.name == lanes.current,
            "steps": steps_of(lane.name, entries),
            "left": "" if not lane.name else lanes.lanes[lane.parent].title,
            "step": lane.step,
            "why": lane.why,
        }
        for lane in lanes.lanes.values()
    ]


def held_view(seen: LeaseSeen | None, done: Mapping[str, StepDone]) -> dict[str, Any] | None:
    """Another kernel that holds the flow: who, since when, and which steps it kept from running here (E030)."""
    if seen is None or seen.holder is None:
        return None
    refused = [name for name, one in done.items() if one.refusal == "E030"]
    return {"by": f"pid {seen.holder.pid} on {seen.holder.host}", "since": seen.since, "refused": refused}
