"""What happened in this kernel so far: who made which name, what was decided, which names were rejected.

Memory of one kernel only; nothing here outlives it. The journal is what outlives it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field

from keel_notebook.core.atwork import GOING_ON, UNFINISHED
from keel_notebook.core.decide import RESULT
from keel_notebook.core.done import EXECUTED, StepDone
from keel_notebook.core.dotted import PATCHED
from keel_notebook.core.model import Digest, Entry, EntryId, FlowId, Kind, NotStored
from keel_notebook.core.ports import Known
from keel_notebook.core.provenance import BY_ORIGIN, LEFT, Origins
from keel_notebook.core.units import ran_as
from keel_notebook.engine.leftovers import Leftovers

PAUSE_S = 0.5
"""Cells that follow each other faster than this belong to one uninterrupted pass: nobody typed in between."""


class Ledger(Struct):
    """The running kernel's own story."""

    done: dict[str, StepDone] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    producers: dict[str, str] = field(default_factory=dict)
    resources: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Names made by an ``--always`` step: the step and its code."""
    stored: dict[str, tuple[FlowId, Known]] = field(default_factory=dict)
    """Where the values are that steps left and nobody bound anew."""
    digests: dict[str, Digest | None] = field(default_factory=dict)
    """What the names that steps made held when their step ended."""
    defined: dict[str, Digest | None] = field(default_factory=dict)
    """Of functions and classes that plain cells defined: what they held when somebody last looked."""
    leftovers: Leftovers = field(default_factory=Leftovers)
    origins: Origins = field(default_factory=Origins)
    """How every name came to its value."""
    ids: dict[str, int] = field(default_factory=dict)
    """Which object a cell that was watched left under a name: another one there now was put there by nobody knows."""
    left: dict[str, Digest] = field(default_factory=dict)
    """Objects that a step changed and that nobody can store: what they would count as, had it not been replayed."""
    inward: set[str] = field(default_factory=set)
    """Names of values without a digest that hold locks and their like, and neither client nor connection."""
    as_is: set[str] = field(default_factory=set)
    """Steps that a person wants executed on the values as they are (`%keel rerun NAME --as-is`)."""
    ahead: dict[str, tuple[Digest, str]] = field(default_factory=dict)
    """Files that are further on than this pass, because a step above was only replayed: what it would have left in
    them, and which step that is."""
    missing: dict[str, tuple[str, NotStored]] = field(default_factory=dict)
    """Names that a replayed record could not hold: the step that makes each, and why it was not stored."""
    wanted: set[str] = field(default_factory=set)
    """Of those, names that a cell was refused for: the step that makes them executes next time."""
    restored: dict[str, EntryId] = field(default_factory=dict)
    """Steps whose record was put back without running, with that record."""
    rerun: set[str] = field(default_factory=set)
    again: set[str] = field(default_factory=set)
    """Steps of auto mode whose cell a person runs once more: it executes, and its records stay."""
    accept: set[str] = field(default_factory=set)
    journal_id: str = ""
    """What the open journal is called where somebody trusts it (KEEL_TRUST)."""
    parameters: str = ""
    """Which parameter set this kernel works on: what its newest cell that begins with ``# Parameters`` says."""
    _passes: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    _unnamed: dict[str, int] = field(default_factory=dict)
    _pass: int = 0
    _ended: float | None = None

    def cell_starts(self, monotonic: float) -> None:
        """A cell starts: a pause before it means that a new pass has begun."""
        if self._ended is None or monotonic - self._ended > PAUSE_S:
            self._pass += 1

    def cell_ended(self, monotonic: float) -> None:
        """A cell ended."""
        self._ended = monotonic

    def clashes(self, step: str, *, cell_id: str, source: str, in_file: Callable[[str], int]) -> bool:
        """Whether this name belongs to another cell of the notebook (E080).

        Running the same cell again is no clash, and neither is an edit. With cell ids another cell is one of
        another id in the same uninterrupted pass; without them only the notebook's file can tell the two apart:
        ``in_file`` counts its cells of that name.
        """
        before = self._passes.get(step)
        self._passes[step] = (self._pass, cell_id, source)
        if before is None or before[2] == source:
            return False
        other_in_pass = before[0] == self._pass and before[1] != cell_id
        clash = other_in_pass if before[1] and cell_id else in_file(step) > 1
        if clash:
            self._passes[step] = before
        return clash

    def went(self, step: str, files: Mapping[str, Digest | None]) -> None:
        """A step was executed, or replayed: what its files would hold now, None for those that do hold it."""
        for path, digest in files.items():
            self.ahead.pop(path, None)
            if digest is not None:
                self.ahead[path] = digest, step

    def unnamed(self, code: str) -> str:
        """What stands for the name of a step that has none: ``code-hash#occurrence`` in order of execution."""
        self._unnamed[code] = self._unnamed.get(code, 0) + 1
        return f"{code[:12]}#{self._unnamed[code]}"

    def bound(self, names: Iterable[str], producer: str) -> None:
        """A plain cell may have bound these names."""
        names = frozenset(names)
        self.leftovers.bound(names)
        for name in names:
            self.digests.pop(name, None)
            self.defined.pop(name, None)
        self.made(names, producer)

    def plainly(self, entry: Entry, *, in_place: Iterable[str] = ()) -> None:
        """A cell of auto mode that is no step ran, or what it left was put back: its names are no step's any more."""
        in_place = frozenset(in_place)
        touched = {item.name for item in entry.writes} | {item.name for item in entry.not_stored} | {*entry.deleted}
        self.bound(touched - in_place, ran_as(entry.occurrence))
        for name in in_place:
            self.digests.pop(name, None)
            self.stored.pop(name, None)
        self._holds(entry)

    def ran(self, entry: Entry) -> None:
        """A step ran, or was put back: these names are its own."""
        if entry.kind is Kind.PLAIN:
            self.plainly(entry)
            return
        read = {item.name: item.digest for item in entry.inputs}
        wrote = {item.name: item.digest for item in entry.writes} | {item.name: None for item in entry.not_stored}
        self.leftovers.bound(entry.deleted)
        for name in entry.ambient.get(GOING_ON, ()):  # handed over, not changed by the step
            wrote.pop(name, None)
            self.digests.pop(name, None)
            self.stored.pop(name, None)
        self.digests.update(wrote)
        for name in wrote:
            self.defined.pop(name.partition(".")[0], None)
        left = entry.ambient.get(LEFT, {})
        self.leftovers.recorded(entry.step, read=read, wrote=wrote | left)
        self.made(wrote, f"step {entry.step}")
        self._holds(entry)
        used = {item.name for item in entry.writes if (item.digest or "").startswith(BY_ORIGIN)}
        self.origins.gone(entry.deleted)
        self.origins.step(wrote.keys() - left.keys() - used, f"step {entry.entry}")

    def _holds(self, entry: Entry) -> None:
        """An entry's payload holds what its names hold now: later records may refer to it."""
        for item in entry.writes if entry.payload is not None else ():
            if item.digest is not None and item.name not in entry.ambient.get(PATCHED, ()):
                self.stored[item.name] = (entry.flow, Known(entry.entry, item.name, item.digest))

    def lacks(self, entry: Entry, *, keep: frozenset[str] = frozenset()) -> None:
        """A record was put back that could not hold these names; ``keep`` are those that hold its change anyway."""
        for item in entry.not_stored:
            if item.name != RESULT and item.name not in keep:
                self.missing[item.name] = (entry.step, item)
        left: dict[str, Digest] = entry.ambient.get(LEFT, {})
        self.left.update({name: digest for name, digest in left.items() if name not in keep})
        self.left.update(dict.fromkeys(entry.ambient.get(GOING_ON, ()), UNFINISHED))

    def made(self, names: Iterable[str], producer: str, *, resource: tuple[str, str] | None = None) -> None:
        """These names were bound or changed by this cell (``resource``: by an ``--always`` step and its code)."""
        for name in names:
            self.missing.pop(name, None)
            self.wanted.discard(name)
            self.left.pop(name, None)
            self.ids.pop(name, None)
            self.stored.pop(name, None)
            self.producers[name] = producer
            if resource is not None:
                self.resources[name] = resource
                self.origins.step([name], " ".join(("resource", *resource)))
            else:
                self.resources.pop(name, None)

    def put_back(self) -> frozenset[str]:
        """Names whose values come from a record, and not from a body that ran here."""
        ran = {f"step {name}" for name, done in self.done.items() if done.decision == EXECUTED}
        return frozenset(name for name, by in self.producers.items() if by.startswith("step ") and by not in ran)

    def begun(self, step: str) -> None:
        """A step's body begins: what a person wished for this one time is granted."""
        self.as_is.discard(step)
        self.again.discard(step)

    def note(self, done: StepDone) -> None:
        """A step was decided and carried out."""
        self.done[done.step] = done
        if done.step in self.order:
            self.order.remove(done.step)
        self.order.append(done.step)
