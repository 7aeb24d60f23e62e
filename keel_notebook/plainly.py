"""What is kept of plain cells: their text and names, and what clocks and entropy made in them (DESIGN 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from keel_notebook.capture.aliases import changed_with
from keel_notebook.capture.cell import RunningCell
from keel_notebook.cells import Analysis, PlainCell, plain_entry
from keel_notebook.core.ids import default_flow
from keel_notebook.core.model import Status
from keel_notebook.core.reads import CellNames
from keel_notebook.errors import KeelError
from keel_notebook.wiring import Attached, Kernel


class PlainRan(Struct, frozen=True):
    """A plain cell that ran. ``at`` is the wall time of its end."""

    said: Analysis
    cell: RunningCell
    status: Status
    at: float


class Plainly(Struct, frozen=True):
    """Keeps the plain cells of one kernel."""

    kernel: Kernel
    degraded: Callable[[], None]
    """Says that nothing can be recorded now, once."""

    def keep(self, attached: Attached, ran: PlainRan, *, early: bool = False) -> None:
        """Keep that a plain cell ran; ``early``: some cells ago, so that its names may hold something else by now."""
        ledger, names, cell = self.kernel.ledger, ran.said.names, ran.cell
        bound = names.stores | names.maybe_stores
        ledger.bound(bound | names.deletes, f"cell {cell.execution_count}")
        ledger.origins.ran(ran.said.parsed, ended_well=ran.status is Status.OK)
        if not early:
            space = self.kernel.shell.user_ns
            ledger.ids.update({name: id(space[name]) for name in bound if name in space})
        changed = self._changed(attached, names.mutation_suspects - bound)
        source, count = attached.kept_source(cell.raw), cell.execution_count or 0
        said = PlainCell(ran.said, source, count, cell.cell_id, ran.status, ran.at, changed)
        journal = attached.journal
        try:
            journal.append(plain_entry(said, flow=attached.flow.id, run=journal.run, seq=journal.next_seq()))
        except KeelError:
            self.degraded()

    def _changed(self, attached: Attached, suspects: frozenset[str]) -> list[str]:
        """Of the names that a plain cell may have changed in place: those made by steps that are not as they were."""
        shell, digests = self.kernel.shell, self.kernel.ledger.digests
        suspects |= attached.at_work().names.keys()
        made = changed_with(suspects, digests.keys(), shell.user_ns, without={id(shell), id(shell.user_ns)})
        return sorted(name for name in made if not attached.holds(name, digests[name]))

    def made(self, attached: Attached, said: Analysis, then: Sequence[CellNames] = ()) -> None:
        """A plain cell ran well: note what a clock or entropy made in it. ``then``: cells that ran since."""
        attached.volatile.ran(said, then)

    def settle(self, attached: Attached, root: str | None) -> None:
        """Put back what was made so far as it was in the run that this one goes on with, and keep it.

        ``root`` is None before the first step: then only where it is known all the same which flow this is.
        """
        flow, journal = attached.flow.id, attached.journal
        try:
            if root is not None or (flow != default_flow() and journal.records(flow).entries):
                attached.volatile.names.settle(flow, root or "", journal.records)
        except KeelError:
            self.degraded()
