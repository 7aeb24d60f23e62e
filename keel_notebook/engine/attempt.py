"""The nouns of an attempt: the step as it stands, a body that runs, how it ended, a record to be put back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from keel_notebook.core.atwork import NOBODY, AtWork
from keel_notebook.core.environment import Surroundings
from keel_notebook.core.model import Effect, Entry, FileSeen, FlowId, Input, NotStored, Status
from keel_notebook.core.ports import Message, Unpacked
from keel_notebook.core.world_ports import WorldSeen
from keel_notebook.engine.callparts import Held

__all__ = ["Attempt", "Outcome", "Prepared", "StepNow", "lost_attributes", "seen_words"]


class StepNow(Struct, frozen=True):
    """A step as it stands in the notebook: what a record of it will say about its cause."""

    flow: FlowId
    name: str
    source: str
    code: Any
    inputs: Mapping[str, Input]
    cell: Any
    """The names that the cell mentions, for the watch."""
    files: tuple[FileSeen, ...] = ()
    makes: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    always: bool = False
    root: str = ""
    parameters: str = ""
    effect: Effect = Effect.IDEMPOTENT
    idempotency_key: str = ""
    effect_kind: str = ""
    """What a guarded effect does to the world (``--kind``)."""
    tree: Any = None
    """The cell's code."""
    inward: frozenset[str] = frozenset()
    """Inputs without a digest that lead nowhere out of this process (``Digested.inward``)."""
    as_is: bool = False
    """Whether it runs on everything as it is, its own doing included."""
    surroundings: Surroundings = field(default_factory=dict)
    """What its records used of the state that has no name, as it is now."""
    called: str = ""
    """What messages call it, as in ``StepCell``."""


class Attempt(Struct):
    """A body that is running."""

    entry: Entry
    step: StepNow
    snapshot: Any
    ambient: Any
    files: Any
    used: Any
    """What is noted of it for ``ports.AmbientInputs``."""
    began: float
    at_work: AtWork = NOBODY
    """What could be changed from outside of it when it began."""
    ids: Mapping[str, int] = {}
    """Which objects its inputs were."""
    guard: Held | None = None
    """The lease that the step needs, held since before its intent; given back when it has ended."""
    retries: int = 0
    """Further tries of the body within this attempt (``--retries``)."""
    recorded: bool = True
    """False where the ``running`` entry could not be written: the body runs, nothing is recorded."""

    def release(self) -> None:
        """Give the lease back, if the step needed one. Safe to call twice."""
        guard, self.guard = self.guard, None
        if guard is not None:
            guard.give_back()


class Outcome(Struct, frozen=True):
    """How the body ended, as IPython tells it."""

    status: Status
    error: BaseException | None = None
    result: tuple[Any] | None = None
    """The value of the last expression, in a tuple of one; None where the cell showed none."""
    failed_calls: int = 0
    """Durable calls of the body whose failure was kept."""


class Prepared(Struct, frozen=True):
    """A record that was read whole and can be put back without failing."""

    entry: Entry
    values: Unpacked
    messages: tuple[Message, ...]
    missing: tuple[NotStored, ...] = field(default=())
    live: tuple[Message, ...] = ()
    """What is shown in place of the messages where its widgets live in this kernel."""


def lost_attributes(lost: Sequence[NotStored]) -> tuple[Input, ...]:
    """Attributes that a record cannot hold: no later cell names them, so the step itself executes every time."""
    return tuple(Input(item.name, None, type=item.type) for item in lost if "." in item.name)


def seen_words(seen: WorldSeen) -> set[str]:
    """What a step saw of the outside world, in words: it decides whether an *older* record may be replayed."""
    words = set()
    if seen.network:
        words.add("network")
    if seen.children:
        words.add("children")
    if seen.unsure:
        words.add("unsure")
    return words
