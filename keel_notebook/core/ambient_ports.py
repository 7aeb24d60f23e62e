"""The ports for state that has no name: put back, and as an input of a step (DESIGN 6; ``ports`` has the rest)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from msgspec import Struct


class Ambient(Protocol):
    """State that has no name: generators, working directory, settings of libraries."""

    def before(self) -> Any:
        """The state as it is: before the body runs, or after it."""

    def after(self, state: Any, now: Any = None) -> dict[str, Any]:
        """What changed since, as MessagePack-able values; ``now``: what ``before`` gives now, where it was asked."""

    def touches(self, change: Mapping[str, Any]) -> bool:
        """Whether ``apply`` would put anything back."""

    def apply(self, change: Mapping[str, Any]) -> Sequence[str]:
        """Put a change back; what could not be put back, in words."""


class StepRan(Struct, frozen=True):
    """A step that has just run, as far as the state that has no name is concerned."""

    step: str
    source: str
    names: Iterable[str]
    """Names that it read or bound."""
    tree: Any
    """Its code, as a syntax tree."""
    relative: bool
    """Whether it used paths that are relative to the working directory, or may have."""
    children: bool


class AmbientUse(Struct, frozen=True):
    """What a step used of the state that has no name."""

    inputs: Mapping[str, Mapping[str, str]]
    """By group, as ``core.environment`` compares it."""
    saw: frozenset[str]
    """Words for what it saw of the world that no record can vouch for: ``clock``."""


class AmbientInputs(Protocol):
    """State that has no name, as an input."""

    def rewind(self, step: str) -> None:
        """Take back what earlier attempts of a step drew from seeded generators: it is about to run anew."""

    def open(self, state: Any) -> Any:
        """A body is about to run; ``state`` is what ``Ambient.before`` gave."""

    def close(self, running: Any, source: str) -> None:
        """The body has ended; ``source`` is the text of its cell."""

    def cell_ran(self, source: str) -> None:
        """A cell that is no step ran: its text may say that it seeded something."""

    def ran_plainly(self, tree: Any) -> None:
        """A cell that is no step ran: ``tree`` is its code."""

    def of(self, running: Any, ran: StepRan, now: Any = None) -> AmbientUse:
        """What a step used that ended well, as it was before. ``now``: what ``Ambient.before`` gives now, where
        somebody asked already."""

    def drawn(self, running: Any, step: str) -> Any:
        """The step did not end well, or was put back: what it drew is its own doing."""

    def before_replay(self, step: str, *, changes: bool = True) -> Any:
        """Called before a record of the step is put back; for ``drawn`` after it. ``changes``: whether the record
        holds any such state."""

    def reading(self) -> AbstractContextManager[None]:
        """Around the reading of a record: what is imported for its values is nobody's input."""

    def now(self, wanted: Mapping[str, Iterable[str]], step: str) -> Mapping[str, Mapping[str, str]]:
        """Groups as they are now, for a step that wants to run."""
