"""What a stepper speaks of: the step cell, the look at it, and what came of the decision about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keel_notebook.core import decide as d
from keel_notebook.core.model import Digest, FileSeen
from keel_notebook.core.options import StepOptions
from keel_notebook.core.ports import Digested, FlowRecords
from keel_notebook.engine.attempt import Attempt, Prepared, StepNow


@dataclass(frozen=True, slots=True)
class Senses:
    """What a stepper asks about the notebook."""

    reached: Callable[[Iterable[str], Any], Mapping[str, Digested]]
    """Names to digests, with every name that functions among them read (``cell`` tells what it stores itself)."""
    value: Callable[[str], Any]
    preview: Callable[[str, Any], str]
    kind_of: Callable[[Any], str]
    files_now: Callable[[Sequence[FileSeen]], Mapping[str, Digest | None]]
    """What the files that records speak of hold now, by ``FileSeen.asked``."""
    file_seen: Callable[[str, str], FileSeen]
    copyable: Callable[[str], bool]
    """Whether the value of a name is data of a size that may be kept before a step changes it."""
    read_below: Callable[[str, bool], frozenset[str]]
    """Names that cells below a step read (with True: plain ones), where the notebook's file can be looked at."""
    say: Callable[[str], None]
    """One line on stderr, before anything else of the cell."""
    now: Callable[[], float]
    monotonic: Callable[[], float]


@dataclass(frozen=True, slots=True)
class StepCell:
    """A cell that is a step: its line, its name or what stands for one, its text as it is kept, its analysis."""

    options: StepOptions
    name: str
    source: str
    parsed: Any
    """``.code`` is the digest of the normalised source, ``.reads`` the names that it may read."""


@dataclass(frozen=True, slots=True)
class Look:
    """A step as it stands now, next to what is recorded of it."""

    step: StepNow
    cell: StepCell
    facts: d.Facts
    recorded: d.Recorded
    records: FlowRecords


@dataclass(frozen=True, slots=True)
class Body:
    """The body is to run, under watch."""

    attempt: Attempt
    decision: d.Execute | d.Diverged


@dataclass(frozen=True, slots=True)
class Swap:
    """The body is to be swapped for putting ``prepared`` back."""

    step: StepNow
    prepared: Prepared
    decision: d.Replay
    began: float
    keep: frozenset[str] = frozenset()
    """Names whose live objects hold what the record holds: this very step left them (already applied)."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """The body is not to run: a person's word takes the guarded step as done. There are no values."""

    look: Look
    why: str
