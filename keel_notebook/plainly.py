"""What is kept of plain cells: their text and names, and what clocks and entropy made in them (DESIGN 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import FunctionType, ModuleType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.capture.aliases import changed_with
from keel_notebook.capture.asdefined import as_defined
from keel_notebook.capture.cell import RunningCell
from keel_notebook.cells import Analysis
from keel_notebook.core.ids import default_flow
from keel_notebook.core.model import Status, Write
from keel_notebook.core.reads import CellNames
from keel_notebook.core.restore import SUSPECTS, definitions_in, names_of
from keel_notebook.core.units import ran_as
from keel_notebook.engine.plaincells import PlainNow, plain_entry
from keel_notebook.errors import KeelError
from keel_notebook.wiring import Attached, Kernel


class PlainRan(Struct, frozen=True):
    """A plain cell that ran."""

    said: Analysis
    cell: RunningCell
    status: Status
    at: float
    """Wall time of its end, seconds."""
    early: bool = False
    """It ended some cells ago, so that its names may hold something else by now."""


class Plainly(Struct, frozen=True):
    """Keeps the plain cells of one kernel."""

    kernel: Kernel
    degraded: Callable[[], None]
    """Says that nothing can be recorded now, once."""

    def keep(self, attached: Attached, ran: PlainRan) -> None:
        """Keep that a plain cell ran: its text, the names that it bound, and what it changed without binding it."""
        ledger, space = self.kernel.ledger, self.kernel.shell.user_ns
        names, cell = ran.said.names, ran.cell
        bound = names.stores | names.maybe_stores
        ledger.bound(bound | names.deletes, ran_as(cell.execution_count))
        ledger.origins.ran(ran.said.parsed, ended_well=ran.status is Status.OK)
        if not ran.early:
            ledger.ids.update({name: id(space[name]) for name in bound if name in space})
        suspects = names.mutation_suspects
        if ledger.digests or ledger.defined:  # what functions of the notebook change or bind, nobody names here
            suspects |= attached.reach(suspects, names) if suspects else suspects
            reached = (attached.reach(names.reads | bound, names) | bound) & space.keys()
            suspects |= frozenset().union(*(self.kernel.definitions.stores(space[name]) for name in reached))
        changed = self._changed(attached, ran, suspects - bound)
        source = attached.kept_source(cell.raw)
        for name, text in _defined(source, bound, space):
            sure = not ran.early or as_defined(space[name], text)
            ledger.defined[name] = attached.digest(space[name]) if sure else None
        for name in names.imports & space.keys():
            if type(space[name]) is ModuleType and self.kernel.definitions.is_local(space[name].__name__):
                ledger.defined[name] = attached.digest(_held(space[name]))
        now = PlainNow(attached.flow.id, cell.cell_id, cell.execution_count or 0, source, ran.said)
        files = attached.plain.told(now)
        told, journal = ({SUSPECTS: changed} if changed else {}), attached.journal
        writes = tuple(Write(name, None, "", 0) for name in sorted(bound))
        try:
            entry = plain_entry(now, run=journal.run, seq=journal.next_seq(), at=ran.at, ambient=told)
            deleted = tuple(sorted(names.deletes))
            ended = replace(entry, status=ran.status, writes=writes, deleted=deleted, files=files)
            journal.append(replace(ended, ended_at=ran.at))
        except KeelError:
            self.degraded()

    def _changed(self, attached: Attached, ran: PlainRan, suspects: frozenset[str]) -> list[str]:
        """Of the names that a cell may have changed in place: what steps made, and functions and classes of plain
        cells, that are not as they were."""
        shell, ledger = self.kernel.shell, self.kernel.ledger
        suspects |= attached.at_work().names.keys()
        if not suspects:
            return []
        made = ledger.digests.keys() | ledger.defined.keys()
        found = changed_with(suspects, made, shell.user_ns, without={id(shell), id(shell.user_ns)})
        changed = [name for name in found & ledger.digests.keys() if not self._still(attached, name)]
        stored = {owner for owner, _ in ran.said.names.attribute_stores} if ran.early else set()
        for name in found & ledger.defined.keys():
            now = attached.digest(_held(shell.user_ns[name]))
            if now is None or now != ledger.defined[name] or name in stored:
                ledger.defined[name] = now
                changed.append(name)
        return sorted(changed)

    def _still(self, attached: Attached, name: str) -> bool:
        """Whether a name surely holds what a step left in it; not looked at, and so False, where that is large."""
        value, digest = self.kernel.shell.user_ns.get(name), self.kernel.ledger.digests[name]
        if isinstance(value, type | FunctionType) and name not in attached.at_work().names:
            return digest is not None and attached.digest(value) == digest
        return attached.holds(name, digest)

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


def _held(value: Any) -> Any:
    """What an import or a definition could not bring back: of a module the plain values in it, else the value whole."""
    if type(value) is not ModuleType:
        return value
    return {name: held for name, held in vars(value).items() if name[:1] != "_" and type(held) in _PLAIN}


_PLAIN = (int, float, bool, str, bytes, list, dict, set, tuple, frozenset, type(None))


def _defined(source: str, bound: frozenset[str], space: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The functions and classes that a cell's text defines and that a restore would define again, with their text."""
    for text in definitions_in(source) if "def " in source or "class " in source else ():
        for name in names_of(text):
            imported = text.startswith(("import ", "from "))
            if name in bound and not imported and isinstance(space.get(name), type | FunctionType):
                yield name, text
