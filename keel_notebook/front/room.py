"""What is let go to make room, as a page (``keel gc``, ``%keel gc``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from keel_notebook.core.retention import Plan
from keel_notebook.core.units import count, size
from keel_notebook.front.page import Block, Line, Page, Tone


class RoomReport(Struct, frozen=True):
    """What went, or would go."""

    plan: Plan
    dry: bool

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        plan = self.plan
        return {
            "dry_run": self.dry,
            "objects": len(plan.objects),
            "bytes": plan.bytes,
            "left": plan.left,
            "orphans": plan.orphans,
            "entries": [{"flow": flow, "entry": entry} for flow, entry in plan.entries],
            "over_budget": plan.over,
        }


class RoomTable(Page):
    """The report in two lines."""

    def __init__(self, report: RoomReport) -> None:
        super().__init__(tuple(_blocks(report)), report)


def _blocks(report: RoomReport) -> Iterator[Block]:
    plan = report.plan
    verb = "would go" if report.dry else "went"
    if not plan.objects:
        yield Line(f"nothing to let go; {size(plan.left)} are kept")
    else:
        what = [f"the values of {count(len(plan.entries), 'old record')}"] if plan.entries else []
        what += [f"{count(plan.orphans, 'object')} that no record names"] if plan.orphans else []
        yield Line(f"{size(plan.bytes)} {verb}: {' and '.join(what)}; {size(plan.left)} are kept")
    if plan.over:
        yield Line(f"{size(plan.over)} above the budget: what is kept is needed by the newest run", Tone.WARN)
