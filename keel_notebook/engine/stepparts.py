"""What a stepper speaks of: the step cell, the look at it, and what came of the decision about it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from keel_notebook.core import decide as d
from keel_notebook.core import environment
from keel_notebook.core.chosen import LEFT_OUT
from keel_notebook.core.done import StepDone
from keel_notebook.core.model import Digest, FileSeen, NotStored
from keel_notebook.core.options import StepOptions
from keel_notebook.core.ports import Digested, FlowRecords
from keel_notebook.core.rewritten import Rewritten
from keel_notebook.core.sharing import AsItIs
from keel_notebook.core.units import ran_as
from keel_notebook.engine.attempt import Attempt, Prepared, StepNow
from keel_notebook.engine.leftovers import State
from keel_notebook.engine.modes import IN_MODE
from keel_notebook.errors import ActedError, CannotStoreError, DeadError, DivergenceError, KeelError, UntrustedError

Seen = Mapping[int, Digested]
"""By id, digests of values that were looked at just now: nothing ran since, and nothing does before they are used."""
NOTHING_SEEN: Seen = {}


class Senses(Struct, frozen=True):
    """What a stepper asks about the notebook."""

    reached: Callable[[Iterable[str], Any, Seen], Mapping[str, Digested]]
    """Names to digests, with every name that functions among them read (``cell`` tells what it stores itself)."""
    value: Callable[[str], Any]
    preview: Callable[[str, Any], str]
    kind_of: Callable[[Any], str]
    files_now: Callable[[Sequence[FileSeen]], Mapping[str, Digest | None]]
    """What the files that records speak of hold now, by ``FileSeen.asked``."""
    rewritten: Callable[[Iterable[FileSeen], str], Mapping[str, Rewritten]]
    """Of the files that records of a step speak of, those that a cell of this kernel changed after it left them."""
    read_between: Callable[..., Mapping[str, str]]
    """By path, why a file that a step below changed is needed as a step leaves it (``capture.between``)."""
    names_file: Callable[[Any, str], bool]
    """Whether an analysed cell names a file for more than writing it anew."""
    stands: Callable[[str, Iterable[FileSeen]], None]
    """Told that these files of a step are now as it leaves them: it was executed and recorded, or replayed."""
    file_seen: Callable[[str, str], FileSeen]
    tied: Callable[[str], Collection[str]]
    """Other names that hold the value of a name, or a part of it: putting the name alone back would part them."""
    surroundings: Callable[[Mapping[str, Iterable[str]], str], environment.Surroundings]
    """Groups of the state that has no name, as they are now, for a step; with names in them."""
    went_on: Callable[[FlowRecords, str], frozenset[int]]
    """Runs that this one goes on with; told the first step where several notebooks share a flow, else nothing."""
    volatile: Callable[[Iterable[str]], list[str]]
    """Of some names, those that a clock or entropy made in a plain cell."""
    anew: Callable[[], bool]
    """Whether what reached the outside world in a finished run does not count in this one."""
    objects: Callable[[Mapping[str, Any]], AsItIs]
    """Which names share objects now, for the ``ambient`` of a record."""
    copyable: Callable[[str], bool]
    """Whether the value of a name is data of a size that may be kept before a step changes it."""
    read_below: Callable[[str, bool], frozenset[str]]
    """Names that cells below a step read (with True: plain ones), where the notebook's file can be looked at."""
    say: Callable[[str], None]
    """One line on stderr, before anything else of the cell."""
    now: Callable[[], float]
    monotonic: Callable[[], float]


class StepCell(Struct, frozen=True):
    """A cell that is a step: its line, its name or what stands for one, its text as it is kept, its analysis."""

    options: StepOptions
    name: str
    source: str
    parsed: Any
    """``.code`` is the digest of the normalised source, ``.reads`` the names that it may read."""
    called: str = ""
    """What messages call it: its name or, where it has none, its prompt; an id tells a person nothing."""


def step_cell(options: StepOptions, name: str, cell: Any, source: str, parsed: Any) -> StepCell:
    """The step that a running cell is; ``source``: its text as it is kept."""
    return StepCell(options, name, source, parsed, name if options.name else ran_as(cell.execution_count))


class Look(Struct, frozen=True):
    """A step as it stands now, next to what is recorded of it."""

    step: StepNow
    cell: StepCell
    facts: d.Facts
    recorded: d.Recorded
    records: FlowRecords


class Body(Struct, frozen=True):
    """The body is to run, under watch."""

    attempt: Attempt
    decision: d.Execute | d.Diverged


class Swap(Struct, frozen=True):
    """The body is to be swapped for putting ``prepared`` back."""

    step: StepNow
    prepared: Prepared
    decision: d.Replay
    began: float
    ahead: Mapping[str, Digest | None] = field(default_factory=dict)
    """What files that are further on would hold, had it been executed; None for those that hold just that."""
    keep: frozenset[str] = frozenset()
    """Names whose live objects hold what the record holds: this very step left them (already applied)."""


class Assumed(Struct, frozen=True):
    """The body is not to run: a person's word takes the guarded step as done. There are no values."""

    look: Look
    why: str


NONE: frozenset[int] = frozenset()


def not_rewound(step: str, name: str, state: State, tied: Collection[str], made_by: str) -> DivergenceError:
    """The refusal of a step whose input holds its own change and cannot be taken back to what it was (E031)."""
    why = "and a later change of another cell" if state is State.MIXED else "and what it held before is not kept"
    if tied:
        why = f"and is held by {', '.join(sorted(tied))} as well"
    other = made_by and made_by != f"step {step}"
    start = f"run again from {made_by}" if other else "run again the cell that makes it"
    detail = f"{name} already holds its own change {why}: {start}, or `%keel rerun {step} --as-is`"
    way_out = f"{start.capitalize()}, or `%keel rerun {step} --as-is` to execute it on what {name} holds now."
    return DivergenceError(step=step, detail=detail, case="own_change", next=way_out)


def refusal(look: Look, code: str, why: str, *, journal: str, completed: bool = False) -> KeelError:
    """The error behind a refusal. ``journal``: as somebody trusts it; ``completed``: its flow is."""
    name = look.step.name
    match code:
        case "E032":
            seen = look.recorded.memory
            memory = f"; memory last seen {seen / 2**30:.1f} GiB" if seen else ""
            return DeadError(step=name, deaths=look.recorded.deaths, memory=memory)
        case "E033":
            return ActedError(step=name, file=why)
        case "E050":
            return UntrustedError(what=f"the record of step {name}", id=journal)
        case _:
            return DivergenceError(step=name, detail=why, case="completed" if completed else IN_MODE[d.Mode.REPLAY])


def not_held(step: str, lost: NotStored) -> CannotStoreError:
    """The refusal of a cell that reads what the record of ``step`` does not hold (E020)."""
    case = "left_out" if lost.reason.startswith(LEFT_OUT) else ""
    return CannotStoreError(name=lost.name, type=lost.type, step=step, reason=lost.reason, case=case)


def too_far(step: str, path: str, made_by: str) -> DivergenceError:
    """The refusal of a step that would read a file as a later step left it (E031)."""
    return DivergenceError(
        step=step,
        detail=f"{path} holds what this step or one below it left, and step {made_by}, which writes it, was replayed",
        next=f"Run All once more: {made_by} executes then, and {step} after it; or `%keel rerun {step} --as-is` "
        f"to execute it on what {path} holds now.",
    )


def would_run(decision: d.Decision) -> bool:
    """Whether the body is to run."""
    goes_on = isinstance(decision, d.Diverged) and decision.response is not d.Response.FAIL
    return isinstance(decision, d.Execute) or goes_on


def said_briefly(differences: Sequence[d.Difference], volatile: Sequence[str] = ()) -> str:
    """The first two differences in words, and how many more; what keeps the record where all are ``volatile``."""
    said = "; ".join(str(difference) for difference in differences[:2])
    more = len(differences) - 2
    said = f"{said}; and {more} more" if more > 0 else said
    return f"{said}; `--ignore {' '.join(volatile)}` keeps" if len(volatile) == len(differences) else said


def now(step: StepNow, decision: str) -> StepDone:
    """A decision about the step as it stands now."""
    return StepDone(
        step=step.name,
        decision=decision,
        current_code=step.code,
        current_inputs=tuple(step.inputs.values()),
        source=step.source,
    )
