"""What came of executing a notebook's steps again, as a page (``keel verify``, ``%keel verify``)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from keel_notebook.core.plans import PlannedCell
from keel_notebook.core.units import count, duration
from keel_notebook.core.verify import HOLDS, Verdict
from keel_notebook.core.why import hint
from keel_notebook.errors import UnknownNameError
from keel_notebook.front.page import Block, Column, Field, Line, Page, Table, Tone

_TONES: Mapping[str, Tone] = {"same": Tone.GOOD, "differs": Tone.BAD, "failed": Tone.BAD, "changed": Tone.WARN}
_COLUMNS = (Column("step"), Column("verdict"), Column("what", limit=160))


def must_be_steps(wanted: Collection[str], cells: Sequence[PlannedCell]) -> None:
    """Raise UnknownNameError (E002) for a name that is no step of the notebook: nothing would be compared."""
    named = {cell.step for cell in cells if cell.step}
    known = named | {cell.cell_id for cell in cells}  # an automatic step goes by its cell's id
    for name in wanted:
        if name not in known:
            why = "Only a step of the notebook, as it was saved, can be executed and compared."
            raise UnknownNameError(what="step", name=name, hint=hint(name, named) if named else "", why=why)


class VerifyReport(Struct, frozen=True):
    """What came of executing the steps of a notebook again."""

    notebook: str
    status: str
    """How the run ended, in the words of ``keel run``."""
    steps: tuple[Mapping[str, Any], ...]
    """``core.verify.Verified`` as plain values, in the order in which the steps ran."""
    took_s: float

    @property
    def well(self) -> bool:
        """Whether every cell ran and every record holds."""
        return self.status == "finished" and all(step["verdict"] in HOLDS for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "notebook": self.notebook,
            "status": self.status,
            "holds": self.well,
            "steps": [dict(step) for step in self.steps],
            "took_s": round(self.took_s, 3),
        }


class VerifyTable(Page):
    """The report: one sentence, and a row for each step."""

    def __init__(self, report: VerifyReport) -> None:
        super().__init__(tuple(_blocks(report)), report)


def _blocks(report: VerifyReport) -> Iterator[Block]:
    bad = sum(step["verdict"] not in HOLDS for step in report.steps)
    apart = sum(step["verdict"] == Verdict.PUT_BACK for step in report.steps)
    steps = count(len(report.steps) - apart, "step")
    said = f"{bad} of {steps} not as recorded" if bad else f"{steps} executed, every record holds"
    said += f"; {apart} not compared" if apart else ""
    ended = "" if report.status == "finished" else f"; the run ended early: {report.status}"
    tone = Tone.GOOD if report.well else Tone.WARN
    yield Line(f"{said}{ended}; took {duration(report.took_s)}, nothing was recorded", tone)
    if report.steps:
        yield Table(_COLUMNS, tuple(map(_row, report.steps)))


def _row(step: Mapping[str, Any]) -> tuple[Field, ...]:
    what = [*step["changed"], *step["names"], *filter(None, [step["outputs"], step["error"]])]
    if step["unknown"]:
        what.append("cannot be compared: " + ", ".join(step["unknown"]))
    if step["causes"] and step["verdict"] == "differs":
        what.append("; ".join(step["causes"]))
    verdict = step["verdict"]
    return Field(step["step"]), Field(verdict, _TONES.get(verdict, Tone.PLAIN)), Field("; ".join(what))
