"""The cells of a flow's newest run, with what it inherits from the runs before it (DESIGN 5, The newest run).

Pure. A run that ended in order inherits nothing: what it did not have is not there any more. A run that died, or still
goes on, inherits the cells that it has not reached, and those that it jumped over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from keel_notebook.core.auto import is_automatic
from keel_notebook.core.done import DECISION, REPLAYED
from keel_notebook.core.dotted import PATCHED
from keel_notebook.core.entries import RECORDS
from keel_notebook.core.lifecycle import OPEN
from keel_notebook.core.model import Entry, EntryId, FlowId, Kind, Status, entry_id
from keel_notebook.core.ports import FlowRecords, RunEnd

BOUND = "bound"
"""In ``Entry.ambient`` of an attempt that did not end well: the names in its payload, bound and not read before."""
RESTORED = "restored"
"""The ``key`` of a marker that says what a restore put back: from then on its run has that."""

_UNFINISHED = frozenset({*OPEN, Status.FAILED, Status.INTERRUPTED})


def chain(records: FlowRecords, *, in_file: Callable[[str], bool] = lambda _: True) -> list[Entry]:
    """The cells of the newest run, in the order in which they left their names: records (of a replayed step the one
    that was put back), plain cells, and attempts that did not end well.

    ``in_file`` tells whether the notebook's file has a step of this name or a cell of this id; True where nobody knows.
    """
    by_id = {entry.entry: entry for entry in records.entries}
    runs: dict[int, list[Entry]] = {}
    for entry in records.entries:
        runs.setdefault(entry.run, []).append(entry)
    story: list[Entry] = []
    for run in sorted(runs):
        put_back = [cell for entry in runs[run] for cell in _restored(entry, by_id)]
        if ended_in_order(records, run):
            own = [cell for entry in runs[run] for cell in (*_restored(entry, by_id), *_ran(entry, by_id, records))]
            story = own or story
        else:  # it inherits what it was given back anyway, and with it what it still lacks
            own = [cell for entry in runs[run] for cell in _ran(entry, by_id, records)]
            story = [*put_back, *(_merged(story, own, in_file) if own else story)]
    return story


def ended_in_order(records: FlowRecords, run: int) -> bool:
    """Whether a run was finished: somebody said so, or it was shut down on request after a cell that ended well."""
    mine = [entry for entry in records.entries if entry.run == run]
    said = next((e.status for e in reversed(mine) if e.kind is Kind.RUN), None)
    if said in (Status.OK, Status.FAILED):
        return said is Status.OK
    seen = records.runs.get(run)
    last = next((entry for entry in reversed(mine) if entry.kind in RECORDS), None)
    return seen is not None and seen.end == RunEnd.CLEAN and (last is None or last.status is Status.OK)


def record_of(entry: Entry, by_id: Mapping[EntryId, Entry]) -> Entry | None:
    """The record that an entry made or put back; None where it is about something else."""
    if (entry.kind in RECORDS and entry.status is Status.OK) or is_automatic(entry):
        return entry
    if entry.kind is Kind.MARKER and entry.key == DECISION and entry.ambient.get("decision") == REPLAYED:
        return by_id.get(entry.ambient.get("entry", ""))
    return None


def is_unfinished(entry: Entry) -> bool:
    """Whether a cell of the chain is an attempt that did not end well."""
    return entry.kind is Kind.STEP and entry.status in _UNFINISHED


def held_names(entry: Entry) -> set[str]:
    """The names whose values an entry's payload holds: of a class that was changed, its attributes."""
    if is_unfinished(entry):
        return {item.name for item in entry.writes} & set(entry.ambient.get(BOUND, ()))
    return {item.name for item in entry.writes} - set(entry.ambient.get(PATCHED, ()))


def restored_marker(
    held: Mapping[EntryId, Sequence[str]], defined: Sequence[EntryId], *, flow: FlowId, run: int, seq: int
) -> Entry:
    """The marker of a restore: which names came from which records, and which plain cells' definitions were made."""
    told: dict[str, Any] = {"held": {one: list(names) for one, names in held.items()}, "defined": list(defined)}
    return Entry(
        entry=entry_id(run, seq),
        flow=flow,
        run=run,
        seq=seq,
        step="",
        kind=Kind.MARKER,
        status=Status.OK,
        key=RESTORED,
        ambient=told,
    )


def _restored(entry: Entry, by_id: Mapping[EntryId, Entry]) -> Iterator[Entry]:
    """What the marker of a restore says to be there, as cells that left just that."""
    if entry.kind is Kind.MARKER and entry.key == RESTORED:
        yield from (by_id[one] for one in entry.ambient["defined"] if one in by_id)
        yield from (_only(by_id[one], names) for one, names in entry.ambient["held"].items() if one in by_id)


def _ran(entry: Entry, by_id: Mapping[EntryId, Entry], records: FlowRecords) -> Iterator[Entry]:
    """The cell that an entry tells of, if it tells of one."""
    seen = records.runs.get(entry.run)
    alive = seen is not None and seen.end == RunEnd.OPEN
    if is_unfinished(entry):
        if not (entry.status in OPEN and alive):  # else its kernel runs it right now
            yield entry
    elif (record := record_of(entry, by_id)) is not None:
        yield record
    elif entry.kind is Kind.PLAIN and entry.status is Status.OK:
        yield entry


def _only(record: Entry, names: Sequence[str]) -> Entry:
    writes = [item for item in record.writes if item.name in names]
    return replace(record, writes=tuple(writes), not_stored=(), deleted=())


def _merged(before: Sequence[Entry], own: list[Entry], in_file: Callable[[str], bool]) -> list[Entry]:
    """What an unfinished run has: cells that it jumped over, its own, and those that it has not reached."""
    met = {_cell_of(cell) for cell in own}
    reached = max((at for at, cell in enumerate(before) if _cell_of(cell) in met), default=-1)
    others = [(at, cell) for at, cell in enumerate(before) if _cell_of(cell) not in met]
    jumped = [cell for at, cell in others if at < reached and in_file(cell.step or cell.key)]
    ahead = [cell for at, cell in others if at > reached]
    return [*ahead, *own] if reached < 0 else [*jumped, *own, *ahead]


def _cell_of(entry: Entry) -> tuple[str, str]:
    """What tells a cell from the others of its notebook, however it was edited."""
    if entry.step:
        return "step", entry.step
    return ("cell", entry.key) if entry.key else ("code", entry.code or entry.entry)
