"""A step's record beside what the step is now: code and inputs (DESIGN 3.1, ``%keel diff``). Pure.

``why`` answers for what was decided; here a step may also not have run yet: then its cell, as the notebook's file has
it, and the values that its inputs have at the moment stand on the current side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from keel_notebook.core.done import StepDone
from keel_notebook.core.entries import RECORDS
from keel_notebook.core.fileholds import same
from keel_notebook.core.lifecycle import entry_named
from keel_notebook.core.model import Entry, EntryId, Input
from keel_notebook.core.ports import FlowRecords
from keel_notebook.core.record import as_dict
from keel_notebook.core.sources import code_diff, same_code
from keel_notebook.core.units import maker
from keel_notebook.core.why import Differs, utc, why


class Side(Struct, frozen=True):
    """One input on one side: its type, and a short text of plain values and shapes; both empty where it is not."""

    type: str = ""
    preview: str = ""


class Compared(Struct, frozen=True):
    """One input, old beside new. ``same`` is None where it cannot be told: unknown is never equal."""

    name: str
    recorded: Side
    current: Side
    same: bool | None
    producer: str
    """The cell that made the current value."""


class DiffReport(Struct, frozen=True):
    """Recorded beside current."""

    step: str
    recorded: str
    """Which record: its run and time; empty where nothing is recorded."""
    current: str
    """What stands on the current side."""
    differs: tuple[Differs, ...]
    """The parts that made the decision; empty where none was made yet, or nothing differed."""
    inputs: tuple[Compared, ...]
    diff: tuple[str, ...]
    """Unified diff of the cell, recorded against current."""
    format_only: bool
    """The text differs and the code does not."""

    @property
    def equal(self) -> bool:
        """Whether nothing that counts is known to differ."""
        code = not self.diff or self.format_only
        return code and not self.differs and all(item.same is True for item in self.inputs)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in as_dict(self).items()} | {
            "equal": self.equal
        }


class AsItStands(Struct, frozen=True):
    """A step that has not run yet: its cell's text in the notebook (None if nobody tells), and its inputs' values."""

    source: str | None
    inputs: Callable[[str], Sequence[Input]] | None = None
    """What a cell of this text would read now; None where no kernel can be asked."""


def compare(  # noqa: PLR0913 - one question, all parts by name
    step: str,
    records: FlowRecords,
    done: Mapping[str, StepDone],
    now: AsItStands,
    *,
    run: int | None = None,
    when: Callable[[float], str] = utc,
) -> DiffReport:
    """A step's record beside what the step is now.

    Args:
        step: its name.
        records: the flow's entries and runs.
        done: what this kernel did with each step; empty on the command line.
        now: the step as it stands, for a step that this run has not met.
        run: the run that is asked about; by default the newest one.
        when: writes a time for people.

    Raises UnknownNameError (E002) where no step has this name.
    """
    report = why(step, records, done, run=run, when=when)
    base = entry_named(records, EntryId(report.record)) if report.record else None
    met = done.get(step)
    newest = next((e for e in reversed(records.entries) if e.step == step and e.kind in RECORDS), base)
    if met is not None:
        source, inputs = _of_this_run(met, newest, base)
        current = f"{met.decision} in this run"
    elif report.decision is not None and newest is not None:
        source, inputs = newest.source, newest.inputs
        current = f"{report.decision} in run {newest.run}"
    else:
        source = now.source or ""
        inputs = now.inputs(source or base.source) if now.inputs is not None and base is not None else ()
        current = "as it stands, not run yet"
    before = base.source if base is not None else ""
    diff = code_diff(before, source) if before and source else ()
    return DiffReport(
        step=step,
        recorded=f"run {base.run}, {when(base.ended_at or base.started_at)}" if base is not None else "",
        current=current,
        differs=report.differs,
        inputs=tuple(_pairs(base, inputs)),
        diff=diff,
        format_only=bool(diff) and same_code(before, source),
    )


def _of_this_run(met: StepDone, newest: Entry | None, base: Entry | None) -> tuple[str, Sequence[Input]]:
    if met.source or met.current_inputs:
        return met.source, met.current_inputs
    made = newest if met.decision == "executed" else base  # a replay is decided by equality
    return (made.source, made.inputs) if made is not None else ("", ())


def _pairs(base: Entry | None, inputs: Sequence[Input]) -> Iterator[Compared]:
    before = {item.name: item for item in base.inputs} if base is not None else {}
    after = {item.name: item for item in inputs}
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        yield Compared(
            name=name,
            recorded=_side(old),
            current=_side(new),
            same=_verdict(old, new),
            producer=maker((new or old or Input(name, None)).producer),
        )


def _verdict(old: Input | None, new: Input | None) -> bool | None:
    if old is None or new is None:
        return None
    if same(old.digest, new.digest):
        return True
    return None if old.digest is None or new.digest is None else False


def _side(item: Input | None) -> Side:
    return Side(item.type, item.preview) if item is not None else Side()
