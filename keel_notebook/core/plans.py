"""What Run All would do now, cell by cell, with nothing executed (DESIGN 3.1, ``%keel plan``).

Pure. The values that a later step will read do not exist yet, so the plan reasons over the records: an edited step
executes; what reads a name that something executing made *may* execute (equal values let it replay after all);
everything else replays. Where that rests on something that the records cannot prove, the plan says on what.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from keel_notebook.core.entries import RECORDS
from keel_notebook.core.kernels import newest_run
from keel_notebook.core.lifecycle import fingerprint_of, held_once, recorded, rejected
from keel_notebook.core.model import Effect, Entry, FileSeen, Kind, Status
from keel_notebook.core.options import Marker, StepOptions, find_marker, parse_options
from keel_notebook.core.ports import FlowRecords
from keel_notebook.core.redact import redacted
from keel_notebook.core.sources import Names, body, names_in, same_code
from keel_notebook.core.states import root_of
from keel_notebook.core.units import in_a_row
from keel_notebook.errors import KeelError


class Action(StrEnum):
    """What Run All does with a cell."""

    REPLAYS = "replays"
    EXECUTES = "executes"
    MAY = "may execute"
    RUNS = "runs"
    REFUSED = "stops"
    EMPTY = "empty"


class PlannedCell(Struct, frozen=True):
    """A code cell of the notebook, from the top."""

    index: int
    """Its place among the code cells, from 1."""
    source: str
    step: str = ""
    """The name of its step; empty for a plain cell."""
    marker: Marker | None = None
    cell_id: str = ""
    """The front end's id; an automatic step goes by it."""


class PlanRow(Struct, frozen=True):
    """One cell of the plan. ``took_s`` is what it took last time."""

    index: int
    step: str
    action: Action
    why: str
    took_s: float | None
    first_line: str

    def to_dict(self) -> dict[str, Any]:
        """The row as plain values."""
        return {name: getattr(self, name) for name in ("index", "step", "action", "why", "took_s", "first_line")}


class PlanReport(Struct, frozen=True):
    """The plan, and what it takes for granted."""

    rows: tuple[PlanRow, ...]
    assumptions: tuple[str, ...]

    @property
    def execute_s(self) -> float:
        """Seconds that the steps which execute for sure took last time."""
        return sum(row.took_s or 0.0 for row in self.rows if row.action is Action.EXECUTES)

    @property
    def replay_s(self) -> float:
        """Seconds of work that the steps which replay took when they were executed."""
        return sum(row.took_s or 0.0 for row in self.rows if row.action is Action.REPLAYS)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values."""
        head = {"execute_s": self.execute_s, "replay_s": self.replay_s}
        return {"cells": [row.to_dict() for row in self.rows], "assumptions": list(self.assumptions)} | head


def planned_cell(index: int, source: str, *, cell_id: str = "") -> PlannedCell:
    """A cell as it stands in a notebook file. A step without a name goes by the front end's cell id."""
    marker = find_marker(source)
    if marker is None:
        return PlannedCell(index, source, cell_id=cell_id)
    try:
        name = parse_options(marker.line).name
    except KeelError:
        name = ""  # the plan says that its line cannot be read
    return PlannedCell(index, source, name or cell_id, marker, cell_id)


def notebook_cells(notebook: Mapping[str, Any]) -> tuple[PlannedCell, ...]:
    """The code cells of a parsed notebook file (nbformat 4), from the top."""
    code = [cell for cell in notebook.get("cells", ()) if cell.get("cell_type") == "code"]
    return tuple(
        planned_cell(index, "".join(cell.get("source", "")), cell_id=cell.get("id", ""))
        for index, cell in enumerate(code, 1)
    )


class Wishes(Struct, frozen=True):
    """What a person has asked for in this kernel, to come when the cells run next."""

    rerun: Collection[str] = ()
    accept: Collection[str] = ()


_NONE = Wishes()
_RERUN = "a rerun was asked for"


class _Walk(Struct):
    """Going down the notebook: which names may hold other values than the records say, and why."""

    records: FlowRecords
    now: float
    by_step: Mapping[str, FlowRecords]
    plain: Collection[str]
    """Bodies of the plain cells that were recorded; empty where none were."""
    changed: dict[str, str] = field(default_factory=dict)
    """Name to clause: ``"made by fit, which executes"``."""
    wishes: Wishes = field(default_factory=Wishes)
    look: Callable[[Entry, FileSeen], str | None] = lambda _entry, _file: None
    assumed: dict[str, None] = field(default_factory=dict)
    functions: dict[str, frozenset[str]] = field(default_factory=dict)
    """Functions defined so far, with the names that they read."""

    def reads(self, names: Names) -> list[str]:
        """The changed names that a cell reads, also through the functions that it calls."""
        self.functions.update(names.functions)
        found: set[str] = set()
        open_ends = set(names.reads)
        while open_ends:
            name = open_ends.pop()
            found.add(name)
            open_ends |= self.functions.get(name, frozenset()) - found
        return sorted(found & self.changed.keys())

    def taints(self, names: Collection[str], clause: str) -> None:
        """These names may hold something else from here on."""
        for name in names:
            self.changed[name] = clause

    def settles(self, names: Collection[str]) -> None:
        """These names hold what the records say again."""
        for name in names:
            self.changed.pop(name, None)


def plan(
    cells: Sequence[PlannedCell],
    records: FlowRecords,
    *,
    now: float,
    wishes: Wishes = _NONE,
    look: Callable[[Entry, FileSeen], str | None] = lambda _entry, _file: None,
) -> PlanReport:
    """What Run All would do with these cells.

    Args:
        cells: the notebook's code cells from the top; ``recorded_cells`` where nobody can read the file.
        records: the flow's entries and runs.
        now: wall time in seconds, for ``--ttl``.
        wishes: the reruns and accepts that are pending.
        look: what a glance at a file of a record tells: empty where it is as it was, a clause where it is not, None
            where only its content would tell.
    """
    grouped: dict[str, list[Entry]] = {}
    for entry in records.entries:
        grouped.setdefault(entry.step, []).append(entry)
    walk = _Walk(
        records=records,
        now=now,
        by_step={
            step: FlowRecords(records.flow, found, records.runs, records.untrusted) for step, found in grouped.items()
        },
        plain={body(entry.source) for entry in records.entries if entry.kind is Kind.PLAIN},
        wishes=wishes,
        look=look,
    )
    rows = tuple(_row(cell, walk) for cell in cells)
    return PlanReport(rows, tuple(walk.assumed))


def recorded_cells(records: FlowRecords) -> tuple[PlannedCell, ...]:
    """The notebook as the journal knows it: the cells of the newest run, then what older runs had below them."""
    found: dict[str, Entry] = {}
    for run in sorted({entry.run for entry in records.entries}, reverse=True):
        for entry in records.entries:
            if entry.run == run and (entry.kind is Kind.PLAIN or entry.kind in RECORDS) and entry.source:
                found.setdefault(entry.step if entry.kind in RECORDS else "\0" + body(entry.source), entry)
    return tuple(
        PlannedCell(index, entry.source, entry.step if entry.kind in RECORDS else "", find_marker(entry.source))
        for index, entry in enumerate(found.values(), 1)
    )


def _row(cell: PlannedCell, walk: _Walk) -> PlanRow:
    kept = redacted(cell.source)  # the journal holds no credentials: compare with what it would hold
    if kept != cell.source:
        walk.assumed["credentials in cells are what they were when the steps were recorded"] = None
        cell = replace(cell, source=kept)
    code = body(kept)
    first_line = next(iter(code.splitlines()), "")
    if not cell.step and cell.marker is None:
        action, why = _plain(code, cell, walk)
        return PlanRow(cell.index, "", action, why, None, first_line)
    action, why, record = _step(cell, code, walk)
    return PlanRow(cell.index, cell.step, action, why, record.took_s if record else None, first_line)


def _plain(code: str, cell: PlannedCell, walk: _Walk) -> tuple[Action, str]:
    if not code:
        return Action.EMPTY, ""
    names = names_in(code)
    where = f"cell {cell.index}"
    read = walk.reads(names)
    known = not walk.plain or code in walk.plain
    if not names.readable and (walk.changed or not known):
        walk.assumed[f"{where}, which is not plain Python, changes nothing that a step reads"] = None
    if not known:
        walk.taints(names.binds, f"made by {where}, which is new or edited")
        walk.assumed["new and edited plain cells change only the names that they bind"] = None
        return Action.RUNS, "a plain cell, new or edited since it was recorded"
    if read:
        clause = f"reads {read[0]}, {walk.changed[read[0]]}"
        walk.taints(names.binds, f"made by {where}, which {clause}")
        return Action.RUNS, f"a plain cell; it {clause}"
    walk.settles(names.binds)
    if walk.records.entries:
        walk.assumed[f"plain cells give the values that they gave in run {newest_run(walk.records)}"] = None
    return Action.RUNS, "a plain cell"


def _step(cell: PlannedCell, code: str, walk: _Walk) -> tuple[Action, str, Entry | None]:
    walk.functions.update(names_in(code).functions)
    try:
        options = parse_options(cell.marker.line) if cell.marker else StepOptions()
    except KeelError as error:
        walk.taints(names_in(code).binds, f"made by cell {cell.index}, which does not run")
        return Action.REFUSED, str(error), None
    mine = walk.by_step.get(cell.step, FlowRecords(walk.records.flow, (), walk.records.runs))
    ended = _usable(mine, cell.step)
    newest = next((entry for entry in ended if entry.status is Status.OK), None)
    if options.always:
        if newest is not None and not same_code(newest.source, cell.source):
            walk.taints(names_in(code).binds, f"made by {cell.step}, which is edited")
        return Action.EXECUTES, "a resource: executed in every run (--always)", newest
    record = _same(ended, newest, cell.source)
    action, why = _answer(cell, options, mine, (record, newest), walk)
    if action is Action.REPLAYS and record is not None:
        walk.settles([*(write.name for write in record.writes), *record.deleted])
    else:
        walk.taints(_writes(code, newest), f"made by {cell.step}, which {action}")
    return action, why, record or newest


def _usable(mine: FlowRecords, step: str) -> Sequence[Entry]:
    attempts = [entry for entry in mine.entries if entry.kind in RECORDS]
    return recorded(mine, step, fingerprint_of(attempts[-1]), root=root_of(attempts[-1])).entries if attempts else ()


def _same(ended: Sequence[Entry], newest: Entry | None, source: str) -> Entry | None:
    for entry in ended:
        older_ok = entry is newest or not entry.ambient.get("saw", ("unknown",))
        if entry.status is Status.OK and older_ok and same_code(entry.source, source):
            return entry
    return None


def _writes(code: str, newest: Entry | None) -> set[str]:
    before = {write.name for write in newest.writes} | set(newest.deleted) if newest is not None else set()
    return before | names_in(code).binds


def _answer(
    cell: PlannedCell, options: StepOptions, mine: FlowRecords, known: tuple[Entry | None, Entry | None], walk: _Walk
) -> tuple[Action, str]:
    record, newest = known
    if newest is not None and (wished := _wished(cell.step, newest, mine, walk)) is not None:
        return wished
    if record is None or newest is None:
        return _without_record(cell, options, mine, newest)
    if record.entry in walk.records.untrusted:
        return Action.REFUSED, "its record was not written with your key (KEEL-E050)"
    if options.ttl_s is not None and record.ended_at is not None and walk.now - record.ended_at >= options.ttl_s:
        return Action.EXECUTES, "its --ttl has passed"
    for read in record.inputs:
        if read.digest is None:
            return Action.EXECUTES, f"reads {read.name} ({read.type or '?'}), which cannot be compared"
    for read in record.inputs:
        if read.name in walk.changed:
            return Action.MAY, f"reads {read.name}, {walk.changed[read.name]}"
    for file in record.files:
        told = walk.look(record, file)
        if told:
            return Action.MAY, told
        if told is None:
            walk.assumed["files hold what they held when the steps were recorded"] = None
    return Action.REPLAYS, f"code and inputs are those of run {record.run}"


def _wished(step: str, newest: Entry, mine: FlowRecords, walk: _Walk) -> tuple[Action, str] | None:
    """What comes of a pending wish: a guarded effect is not done again because somebody asked for it (Z15)."""
    if step in walk.wishes.rerun:
        held = held_once(mine, step)
        return (Action.REPLAYS, f"it {held}, and does not happen again") if held else (Action.EXECUTES, _RERUN)
    if step in walk.wishes.accept and newest.effect is Effect.IDEMPOTENT:
        return Action.REPLAYS, f"the record of run {newest.run} is accepted"
    return None


def _without_record(
    cell: PlannedCell, options: StepOptions, mine: FlowRecords, newest: Entry | None
) -> tuple[Action, str]:
    attempts = [entry for entry in mine.entries if entry.kind in RECORDS]
    last = attempts[-1] if attempts else None
    if last is not None and same_code(last.source, cell.source):
        deaths = recorded(mine, cell.step, fingerprint_of(last), root=root_of(last)).deaths
        if deaths >= options.max_attempts:
            return Action.REFUSED, f"the kernel died {in_a_row(deaths)} in it (KEEL-E032)"
        if last.status is not Status.OK:
            return Action.EXECUTES, _ending(last)
        return Action.EXECUTES, rejected(mine.entries).get(last.entry, _RERUN)
    if newest is None:
        return Action.EXECUTES, "there is no record of it"
    if options.on_divergence == "fail":
        return Action.REFUSED, "code differs (--on-divergence fail, KEEL-E031)"
    return Action.EXECUTES, "code differs"


def _ending(last: Entry) -> str:
    match last.status:
        case Status.FAILED:
            return f"it failed last time ({last.error.type})" if last.error else "it failed last time"
        case Status.RUNNING:
            return "its kernel went away while it ran"
        case _:
            return f"it was {last.status} last time"
