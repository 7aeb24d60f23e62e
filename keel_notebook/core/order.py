"""The order of the steps of a strict notebook, read from its markers (K5, K14, K15, O1, O8; pure).

Each step of a pass takes the next position; what is recorded there must be the same step. A record is looked for at its
position only: that another position knows the name hides no reorder (O1).
"""

from __future__ import annotations

from collections.abc import Iterable

from keel_notebook.core.model import Entry, Kind

AT = "flow:at"
"""Key of the marker that says which step stands at a position (``occurrence``)."""
NEW = "flow:new"
"""Key of the marker of a run that a person began afresh (`%keel flow --new`)."""


def recorded_order(entries: Iterable[Entry]) -> dict[int, str]:
    """Which step stands at which position. A step that was put in the place of another ends what lay behind (K15)."""
    order: dict[int, str] = {}
    for entry in entries:
        if entry.kind is not Kind.MARKER:
            continue
        if entry.key == NEW:
            order.clear()
        elif entry.key == AT:
            if order.get(entry.occurrence, entry.step) != entry.step:
                order = {at: step for at, step in order.items() if at < entry.occurrence}
            order[entry.occurrence] = entry.step
    return order
