"""Which values hold a step's own change, so that it is never taken for its input (DESIGN 5, In-place steps).

A step that changes what it reads (``d["a"] *= 10``, ``x = x * 2``) leaves a value that is no fit input for its next
attempt. For every name this keeps, in order, which steps changed it that way since it was last bound to something
else, with the digests before and after. Memory of one kernel only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto

from msgspec import Struct, field

from keel_notebook.core.fileholds import same
from keel_notebook.core.model import Digest


class Change(Struct, frozen=True):
    """One step's change of a name that it also read. A digest of None is unknown."""

    step: str
    before: Digest | None
    after: Digest | None


class State(Enum):
    """What a name holds, seen from a step that wants to read it."""

    FREE = auto()
    """Nothing of the step's own: its value is used as it is."""
    APPLIED = auto()
    """Exactly what the step itself left, and nobody touched it since."""
    BURIED = auto()
    """The step's own change and those of later steps, nothing else."""
    MIXED = auto()
    """The step's own change and something that no step did: it cannot be told apart."""


class Leftovers(Struct):
    """The changes that the values of the notebook hold."""

    _changes: dict[str, list[Change]] = field(default_factory=dict)

    def bound(self, names: Iterable[str]) -> None:
        """These names were bound to something else: nothing that was done to the old values counts."""
        for name in names:
            self._changes.pop(name, None)

    def changed(self, step: str, name: str, *, before: Digest | None, after: Digest | None) -> None:
        """A step read a name and left it changed."""
        self._changes.setdefault(name, []).append(Change(step, before, after))

    def state(self, step: str, name: str, now: Digest | None) -> State:
        """What the name holds for this step; ``now`` is the digest of its value."""
        changes = self._changes.get(name, [])
        at = next((i for i, change in enumerate(changes) if change.step == step), None)
        if at is None:
            return State.FREE
        if not same(changes[-1].after, now):
            return State.MIXED
        return State.APPLIED if at == len(changes) - 1 else State.BURIED

    def before(self, step: str, name: str) -> Digest | None:
        """The digest that the name had before the step first changed it."""
        return next((change.before for change in self._changes.get(name, ()) if change.step == step), None)

    def undone(self, step: str, names: Iterable[str]) -> set[str]:
        """The names hold again what they held before the step; the later steps whose changes went with it."""
        later: set[str] = set()
        for name in names:
            changes = self._changes.get(name, [])
            at = next((i for i, change in enumerate(changes) if change.step == step), len(changes))
            later |= {change.step for change in changes[at + 1 :]}
            del changes[at:]
        return later - {step}

    def recorded(self, step: str, *, read: Mapping[str, Digest | None], wrote: Mapping[str, Digest | None]) -> None:
        """A step ran or was put back: what it wrote without reading is bound anew, what it read is changed."""
        self.bound(wrote.keys() - read.keys())
        for name in wrote.keys() & read.keys():
            self.changed(step, name, before=read[name], after=wrote[name])
