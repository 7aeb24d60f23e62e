"""Auto mode in one kernel: which way a cell without a step line goes (DESIGN 3.1), and what cheap ones leave."""

from __future__ import annotations

from msgspec import Struct, field

from keel_notebook.capture.cell import RunningCell
from keel_notebook.cells import Analysis
from keel_notebook.core.auto import MIN_SECONDS, Role, is_cheap, role_of
from keel_notebook.core.model import Status
from keel_notebook.core.units import duration, ran_as
from keel_notebook.engine.attempt import Outcome
from keel_notebook.engine.plaincells import Left, PlainAttempt, PlainNow
from keel_notebook.engine.stepparts import NOTHING_SEEN, Body, Seen
from keel_notebook.wiring import Attached, Kernel


class Automatic(Struct):
    """Auto mode of one kernel. ``min_s`` is None while it is off."""

    kernel: Kernel
    min_s: float | None = None
    seen: Seen = NOTHING_SEEN
    """What ``cheap`` saw of the newest cell, for who goes on with that cell at once."""
    _now: PlainNow | None = None
    _role: Role = Role.NOTHING
    _told: set[str] = field(default_factory=set)

    def takes(self, cell: RunningCell) -> bool:
        """Whether a cell without a step line goes the way of auto mode."""
        self._now = None
        if self.min_s is None:
            return False
        self._role = role_of(cell.raw, cell.transformed)
        return self._role is not Role.NOTHING

    def cheap(self, cell: RunningCell, analysis: Analysis, attached: Attached) -> PlainAttempt | None:
        """Begin a cell that runs in every pass; None where it goes the way of a step. Raises as the journal does."""
        assert self.min_s is not None
        looks, self.seen = ({}, {}) if self._role is Role.PLAIN else attached.looks(analysis)
        self._now = now = PlainNow(
            flow=attached.flow.id,
            cell_id=cell.cell_id,
            count=cell.execution_count or 0,
            source=attached.kept_source(cell.raw),
            parsed=analysis,
            looks=looks,
        )
        entries = attached.journal.records(attached.flow.id).entries
        if self._role is Role.STEP and not is_cheap(entries, analysis.code, looks, min_s=self.min_s):
            return None
        return attached.plain.begin(now)

    def demoted(self, body: Body, outcome: Outcome, attached: Attached) -> Left | None:
        """Keep a body as a plain cell where it turned out to be cheap; None where it is a step. Raises KeelError."""
        now, self._now = self._now, None
        if now is None or self.min_s is None or outcome.status is Status.INTERRUPTED:
            return None
        if self.kernel.clock.monotonic() - body.attempt.began >= self.min_s:
            return None
        return attached.plain.finish_step(body.attempt, now, outcome)

    def ended(self, left: Left) -> None:
        """A cell that is no step has ended: its names are its own, and if it took long that is said once."""
        entry, changed = left.entry, left.changed
        rebound = {*changed.written, *changed.deleted} - {*changed.in_place}
        ledger, space = self.kernel.ledger, self.kernel.shell.user_ns
        ledger.plainly(entry, in_place=changed.in_place)
        ledger.origins.ran(left.now.parsed.parsed, ended_well=entry.status is Status.OK)
        ledger.ids.update({name: id(space[name]) for name in rebound if name in space})
        took = entry.took_s or 0.0
        if self.min_s is None or took < self.min_s or self._role is not Role.PLAIN or entry.status is not Status.OK:
            return  # one that was quick before is looked at closely next time: nothing to tell
        which = entry.key or str(entry.code)
        if which not in self._told:
            self._told.add(which)
            why = "it talks to a shell or to IPython; it runs in every pass"
            self.kernel.say(f"{ran_as(entry.occurrence)} took {duration(took)} and is not saved: {why}")


__all__ = ["MIN_SECONDS", "Automatic"]
