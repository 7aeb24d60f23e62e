"""The lanes of a flow, as lines and as a page (`%keel lanes`, ``keel lanes``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from keel_notebook.core.lanes import Lanes
from keel_notebook.core.model import Entry
from keel_notebook.engine.lanes import steps_of
from keel_notebook.front.page import Line, Page, Tone
from keel_notebook.front.tables import local_time


class LanesReport(Struct, frozen=True):
    """The lanes of a flow, in the order in which they began."""

    lanes: Lanes
    entries: Sequence[Entry]

    def to_dict(self) -> dict[str, Any]:
        """The lanes as plain values."""
        found = [
            {
                "name": lane.title,
                "current": lane.name == self.lanes.current,
                "steps": steps_of(lane.name, self.entries),
                "left": self.lanes.lanes[lane.parent].title if lane.name else None,
                "step": lane.step or None,
                "why": lane.why,
                "at": lane.at or None,
            }
            for lane in self.lanes.lanes.values()
        ]
        return {"lanes": found}

    def lines(self) -> list[str]:
        """One line for each lane; a star marks the one in use."""
        found = []
        for lane in self.lanes.lanes.values():
            parent = self.lanes.lanes[lane.parent].title
            left = f"  left {parent} at {lane.step}, {local_time(lane.at)}: {lane.why}" if lane.name else ""
            mark = "*" if lane.name == self.lanes.current else " "
            found.append(f"{mark} {lane.title:8} {steps_of(lane.name, self.entries)} steps{left}")
        return found


class LanesTable(Page):
    """The lines of the report."""

    def __init__(self, report: LanesReport) -> None:
        super().__init__(tuple(Line(line, Tone.PLAIN) for line in report.lines()), report)
