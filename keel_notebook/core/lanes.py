"""Lanes: branches of a flow's records after a divergence (DESIGN 2, 5; K16, K17; pure).

``--on-divergence branch`` keeps both stories: what was recorded stays as it is, and what the changed notebook leaves is
recorded in a lane of its own. A lane sees its own records, and those of the lane that it left as they were then. Names
are given in order: ``main``, ``lane-2``, ``lane-3``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from keel_notebook.core.model import Entry, Kind

MAIN = "main"
"""How people call the first lane; in an entry it is the empty text."""
FORK, USE = "lane:fork", "lane:use"
"""Keys of the markers that begin a lane and that choose one."""


class Lane(Struct, frozen=True):
    """A lane, and where it left another one."""

    name: str
    """Empty for the first lane."""
    parent: str = ""
    seen: int = 0
    """How many of the flow's entries there were when it left: of those before, the parent's are its own as well."""
    step: str = ""
    """The step at which it left."""
    why: str = ""
    at: float = 0.0
    """Wall time, seconds."""

    @property
    def title(self) -> str:
        """The lane's name for people."""
        return self.name or MAIN


class Lanes(Struct, frozen=True):
    """All lanes of a flow, in the order in which they began, and the one in use."""

    lanes: Mapping[str, Lane] = field(default_factory=lambda: {"": Lane("")})
    current: str = ""

    @property
    def next_name(self) -> str:
        """The name of the next lane."""
        return f"lane-{len(self.lanes) + 1}"

    def find(self, title: str) -> Lane | None:
        """The lane that a person names."""
        return self.lanes.get("" if title == MAIN else title)

    def ordered(self, entries: Sequence[Entry], lane: str | None = None) -> Sequence[Entry]:
        """The entries with those that a lane does not see first: so the newest ones are those of the lane."""
        if len(self.lanes) == 1:
            return entries
        sees = self._sees(self.current if lane is None else lane)
        mine: list[Entry] = []
        others: list[Entry] = []
        for at, entry in enumerate(entries):
            limit = sees.get(entry.lane, 0)
            (mine if limit is None or at < limit else others).append(entry)
        return [*others, *mine]

    def _sees(self, lane: str) -> dict[str, int | None]:
        """Up to which entry each lane is seen; None: all of it."""
        found: dict[str, int | None] = {lane: None}
        limit: int | None = None
        while lane:
            here = self.lanes[lane]
            limit = here.seen if limit is None else min(limit, here.seen)
            lane = here.parent
            found[lane] = limit
        return found


def lanes_in(entries: Iterable[Entry]) -> Lanes:
    """The lanes of a flow. ``entries``: oldest first."""
    lanes, current = {"": Lane("")}, ""
    for at, entry in enumerate(entries):
        if entry.kind is not Kind.MARKER:
            continue
        if entry.key == FORK:
            parent = entry.ambient["from"] if entry.ambient["from"] in lanes else ""
            lanes[entry.lane] = Lane(entry.lane, parent, at, entry.step, entry.why, entry.started_at)
            current = entry.lane
        elif entry.key == USE and entry.lane in lanes:
            current = entry.lane
    return Lanes(lanes, current)
