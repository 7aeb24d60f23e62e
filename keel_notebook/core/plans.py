"""What Run All would do now, cell by cell, with nothing executed (DESIGN 3.1, ``%keel plan``).

Pure. The values that a later step will read do not exist yet, so the plan reasons over the records: an edited step
executes; what reads a name that something executing made *may* execute (equal values let it replay after all);
everything else replays. Where that rests on something that the records cannot prove, the plan says on what.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.core.auto import Role, only_about_keel, role_as_written
from keel_notebook.core.entries import RECORDS
from keel_notebook.core.foreseen import (
    AS_IT_WAS,
    Action,
    ComingRun,
    Foreseen,
    LookAtFile,
    LookAtModule,
    Told,
    Walk,
    Wishes,
    foresee,
)
from keel_notebook.core.kernels import newest_run
from keel_notebook.core.lifecycle import fingerprint_of, recorded
from keel_notebook.core.model import Entry, Kind, Status
from keel_notebook.core.options import Marker, StepOptions, find_marker, parse_options
from keel_notebook.core.plaincode import compared
from keel_notebook.core.ports import FlowRecords
from keel_notebook.core.redact import redacted
from keel_notebook.core.savedcalls import saved_calls, with_saved
from keel_notebook.core.sources import body, names_in, same_code
from keel_notebook.core.states import root_of
from keel_notebook.core.volatile import volatile_names
from keel_notebook.errors import KeelError

__all__ = ["Action", "ComingRun", "PlanReport", "PlanRow", "PlannedCell", "Told", "Wishes", "plan"]

_NONE, _RUN = Wishes(), ComingRun()


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


def plan(  # noqa: PLR0913 - what it knows of the coming run, all by name
    cells: Sequence[PlannedCell],
    records: FlowRecords,
    *,
    now: float,
    run: ComingRun = _RUN,
    wishes: Wishes = _NONE,
    look: LookAtFile = lambda _entry, _file: None,
    module: LookAtModule = lambda _entry, _module: AS_IT_WAS,
) -> PlanReport:
    """What Run All would do with these cells.

    Args:
        cells: the notebook's code cells from the top; ``recorded_cells`` where nobody can read the file.
        records: the flow's entries and runs.
        now: wall time in seconds, for ``--ttl``.
        run: what is known of the run that Run All would be.
        wishes: the reruns and accepts that are pending.
        look: what a look at a file of a record tells.
        module: what a look at a module that a record used tells.
    """
    grouped: dict[str, list[Entry]] = {}
    for entry in records.entries:
        grouped.setdefault(entry.step, []).append(entry)
    walk = Walk(
        records=records,
        now=now,
        by_step={
            step: FlowRecords(records.flow, found, records.runs, records.untrusted) for step, found in grouped.items()
        },
        plain={body(entry.source) for entry in records.entries if entry.kind is Kind.PLAIN},
        run=run,
        wishes=wishes,
        look=look,
        module=module,
        compared=compared(records.entries),
    )
    automatic = _automatic(records) if run.auto else {}
    reads = [names_in(body(cell.source)).reads for cell in cells]
    rows = []
    for at, cell in enumerate(cells):
        walk.below = frozenset().union(*reads[at + 1 :])
        rows.append(_row(_as_step(cell, automatic), walk))
    stopping = next((row for row in rows if row.action is Action.REFUSED), None)
    if stopping is not None and stopping.index < len(rows):
        walk.assumed[f"what stops cell {stopping.index} is put right first: no cell below it runs otherwise"] = None
    return PlanReport(tuple(rows), tuple(walk.assumed))


def _automatic(records: FlowRecords) -> Mapping[str, str]:
    """The steps that auto mode made of cells without a step line, by their id and by their text."""
    slow = [e for e in records.entries if e.kind is Kind.STEP and e.source and find_marker(e.source) is None]
    return {body(entry.source): entry.step for entry in slow} | {entry.step: entry.step for entry in slow}


def _as_step(cell: PlannedCell, automatic: Mapping[str, str]) -> PlannedCell:
    if cell.step or cell.marker is not None:
        return cell
    return replace(cell, step=automatic.get(cell.cell_id) or automatic.get(body(cell.source), ""))


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


def _row(cell: PlannedCell, walk: Walk) -> PlanRow:
    kept = redacted(cell.source)  # the journal holds no credentials: compare with what it would hold
    if kept != cell.source:
        walk.assumed["credentials in cells are what they were when the steps were recorded"] = None
        cell = replace(cell, source=kept)
    code = body(kept)
    first_line = next(iter(code.splitlines()), "")
    if not cell.step and cell.marker is None:
        action, why = _plain(code, cell, walk)
        if walk.run.auto:
            why += _IN_AUTO_MODE[role_as_written(code)]
        return PlanRow(cell.index, "", action, why, None, first_line)
    action, why, record = _step(cell, code, walk)
    return PlanRow(cell.index, cell.step, action, why, record.took_s if record else None, first_line)


_IN_AUTO_MODE = {
    Role.NOTHING: "",
    Role.PLAIN: "; it talks to a shell or to IPython, and is not saved however long it takes",
    Role.STEP: "; in auto mode it is kept where it is slow",
}


def _plain(code: str, cell: PlannedCell, walk: Walk) -> tuple[Action, str]:
    if not code:
        return Action.EMPTY, ""
    if only_about_keel(code):
        return Action.RUNS, "a plain cell; it speaks to keel only"
    names = names_in(code)
    where = f"cell {cell.index}"
    read = walk.reads(names)
    known = not walk.plain or code in walk.plain
    walk.cells.setdefault(code, cell.index)
    walk.code.ran(code, names)
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
    if asked := sorted(names.binds & volatile_names(walk.records.entries)) if not walk.run.went_on else ():
        walk.taints(asked, f"made by {where} of a clock or chance, which a new run asks again")
        return Action.RUNS, f"a plain cell; a new run asks the clock or chance again for {', '.join(asked)}"
    if walk.records.entries:
        walk.assumed[f"plain cells give the values that they gave in run {newest_run(walk.records)}"] = None
    return Action.RUNS, "a plain cell"


def _step(cell: PlannedCell, code: str, walk: Walk) -> tuple[Action, str, Entry | None]:
    walk.functions.update(names_in(code).functions)
    try:
        options = parse_options(cell.marker.line) if cell.marker else StepOptions()
    except KeelError as error:
        walk.taints(names_in(code).binds, f"made by cell {cell.index}, which does not run")
        return Action.REFUSED, str(error), None
    first, text = walk.met.setdefault(cell.step, (cell.index, code))
    if cell.step and first != cell.index and text != code:
        walk.taints(names_in(code).binds, f"made by cell {cell.index}, which does not run")
        return Action.REFUSED, f"cell {first} has the same name and another code (KEEL-E080)", None
    mine = walk.by_step.get(cell.step, FlowRecords(walk.records.flow, (), walk.records.runs))
    ended = _usable(mine, cell.step)
    newest = next((entry for entry in ended if entry.status is Status.OK), None)
    if options.always:
        if newest is not None and not same_code(newest.source, cell.source):
            walk.taints(names_in(code).binds, f"made by {cell.step}, which is edited")
        return Action.EXECUTES, "a resource: executed in every run (--always)", newest
    record = _same(ended, newest, cell.source)
    action, why = foresee(Foreseen(cell.step, cell.source, options, mine, record, newest), walk)
    executing = action in {Action.EXECUTES, Action.MAY} and cell.step not in walk.wishes.rerun
    if executing and (saved := saved_calls(mine.entries, cell.step)):
        why = with_saved(why, saved)
        walk.assumed["functions and arguments of saved calls are what they were"] = None
    if action is Action.REPLAYS and (record or newest) is not None:
        record = record or newest
        assert record is not None
        left = {write.name for write in record.writes} | set(record.deleted)
        walk.settles(left)
    else:
        left = _writes(code, newest)
        walk.taints(left, f"made by {cell.step}, which {action}")
    walk.code.left(left)
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
