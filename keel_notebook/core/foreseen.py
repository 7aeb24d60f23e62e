"""What a step comes to in a Run All that has not begun: the decision of ``decide``, as far as records tell it. Pure.

The values that it will read do not exist yet. Where they may be others than the record's it *may* execute; where
something that is known now differs, it executes, or stops if its line says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum

from msgspec import Struct, field

from keel_notebook.core import environment
from keel_notebook.core.decide import lacking, owing
from keel_notebook.core.dotted import is_module
from keel_notebook.core.entries import RECORDS
from keel_notebook.core.journalfiles import ROLE, unsettled
from keel_notebook.core.lifecycle import fingerprint_of, held_once, recorded, rejected
from keel_notebook.core.model import Effect, Entry, FileSeen, Input, Status
from keel_notebook.core.options import StepOptions
from keel_notebook.core.plaincode import Compared, PlainCode
from keel_notebook.core.ports import FlowRecords, RunEnd
from keel_notebook.core.readers import read_later
from keel_notebook.core.sources import Names, same_code
from keel_notebook.core.states import root_of
from keel_notebook.core.units import in_a_row
from keel_notebook.core.waiting import open_waits


class Action(StrEnum):
    """What Run All does with a cell."""

    REPLAYS = "replays"
    EXECUTES = "executes"
    MAY = "may execute"
    RUNS = "runs"
    REFUSED = "stops"
    EMPTY = "empty"


class Told(Struct, frozen=True):
    """What a look at something tells: empty where it is as it was; ``sure``: it surely differs."""

    said: str
    sure: bool = True


AS_IT_WAS = Told("")

LookAtFile = Callable[[Entry, FileSeen], Told | None]
"""None where only its content would tell."""
LookAtModule = Callable[[Entry, Input], Told]


class Wishes(Struct, frozen=True):
    """What a person has asked for in this kernel, to come when the cells run next."""

    rerun: Collection[str] = ()
    accept: Collection[str] = ()


class ComingRun(Struct, frozen=True):
    """The run that the plan is about, as far as it is known."""

    run: int = 0
    """Its number; 0 where it has none yet."""
    went_on: frozenset[int] = frozenset()
    """The runs that it goes on with."""
    anew: bool | None = False
    """Whether what reached out in other runs is done anew; None: without a front end it is, with one it is not."""
    stops: bool = False
    """Whether a difference stops where the step's line says nothing (strict flows)."""
    auto: bool = False
    """Whether cells without a step line are steps where they are slow."""
    day: str = ""
    """Today; empty: nobody asks."""


class Walk(Struct):
    """Going down the notebook: which names may hold other values than the records say, and why."""

    records: FlowRecords
    now: float
    by_step: Mapping[str, FlowRecords]
    plain: Collection[str]
    """Bodies of the plain cells that were recorded; empty where none were."""
    run: ComingRun
    wishes: Wishes
    look: LookAtFile
    module: LookAtModule
    compared: Compared = Compared()
    """Which plain cells stood above each record."""
    code: PlainCode = field(default_factory=PlainCode)
    """Which plain cells stand above the present one."""
    cells: dict[str, int] = field(default_factory=dict)
    """Plain cells so far: their text, and where they stand."""
    below: frozenset[str] = frozenset()
    """Names that the cells below the present one read."""
    changed: dict[str, str] = field(default_factory=dict)
    """Name to clause: ``"made by fit, which executes"``."""
    met: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Steps so far, with the cell and its text."""
    assumed: dict[str, None] = field(default_factory=dict)
    functions: dict[str, frozenset[str]] = field(default_factory=dict)
    """Functions defined so far, with the names that they read."""

    def reads(self, names: Names) -> list[str]:
        """The changed names that a cell reads, also through the functions that it calls."""
        self.functions.update(names.functions)
        found: set[str] = set()
        open_ends = set(names.reads)
        while open_ends:
            name = open_ends.pop()
            found.add(name)
            open_ends |= self.functions.get(name, frozenset()) - found
        return sorted(found & self.changed.keys())

    def taints(self, names: Collection[str], clause: str) -> None:
        """These names may hold something else from here on."""
        for name in names:
            self.changed[name] = clause

    def settles(self, names: Collection[str]) -> None:
        """These names hold what the records say again."""
        for name in names:
            self.changed.pop(name, None)


class Foreseen(Struct, frozen=True):
    """A step of the notebook, and what is recorded of it."""

    step: str
    source: str
    options: StepOptions
    mine: FlowRecords
    record: Entry | None
    """The newest record with this code."""
    newest: Entry | None
    """The newest record at all."""


def foresee(step: Foreseen, walk: Walk) -> tuple[Action, str]:
    """What comes of it, and why."""
    record, newest = step.record, step.newest
    if newest is not None and (wished := _wished(step, newest, walk)) is not None:
        return wished
    if record is None or newest is None:
        return _without_record(step, walk)
    if record.entry in walk.records.untrusted:
        return Action.REFUSED, "its record was not written with your key (KEEL-E050)"
    sure, maybe = _differences(record, step.options, walk)
    if (
        not sure
        and not maybe
        and step.options.effect is not Effect.EXACTLY_ONCE
        and (why := _wanting(step, record, walk))
    ):
        return why
    if not sure and not maybe:
        once = step.options.effect is Effect.EXACTLY_ONCE
        if not once and (wanting := _wanting(step, record, walk)) is not None:
            return wanting
        return Action.REPLAYS, f"code and inputs are those of run {record.run}"
    return _diverges(step, walk, sure, maybe)


def _stops(step: Foreseen, walk: Walk) -> bool:
    told = step.options.on_divergence
    return told == "fail" if told else walk.run.stops


def _diverges(step: Foreseen, walk: Walk, sure: str, maybe: str) -> tuple[Action, str]:
    if not _stops(step, walk):
        return (Action.EXECUTES, sure) if sure else (Action.MAY, maybe)
    if sure:
        return Action.REFUSED, f"{sure} (--on-divergence fail, KEEL-E031)"
    return Action.MAY, f"{maybe}; where that differs, it stops (--on-divergence fail, KEEL-E031)"


def _differences(record: Entry, options: StepOptions, walk: Walk) -> tuple[str, str]:
    """What surely differs from the record, and what may; each the first of its kind in words."""
    if options.ttl_s is not None and record.ended_at is not None and walk.now - record.ended_at >= options.ttl_s:
        return "its --ttl has passed", ""
    for read in record.inputs:
        if read.digest is None:
            return f"reads {read.name} ({read.type or '?'}), which cannot be compared", ""
    tells = [walk.module(record, read) for read in record.inputs if is_module(read.name) or read.type == "module"]
    own = {seen.path for seen in record.files if seen.role == ROLE}
    for seen in record.files:
        told = walk.look(record, seen) if seen.path not in own else AS_IT_WAS
        if told is None:
            walk.assumed["files hold what they held when the steps were recorded"] = None
        else:
            tells.append(told)
    if sure := next((told.said for told in tells if told.said and told.sure), ""):
        return sure, ""
    used = record.ambient.get(environment.INPUTS, {}).get(environment.DAY, {})
    if walk.run.day and used and walk.run.day not in used.values() and record.run not in walk.run.went_on:
        return "it asked for the date, and that is another day's now", ""
    for read in record.inputs:
        if read.name in walk.changed:
            return "", f"reads {read.name}, {walk.changed[read.name]}"
        if made := _made_otherwise(record, read.name, walk):
            return "", f"reads {read.name}, {made}"
    return "", next((told.said for told in tells if told.said), "")


def _made_otherwise(record: Entry, name: str, walk: Walk) -> str:
    """In which way plain cells that are known by now make a name otherwise than the record has seen it."""
    cells = walk.code.through.get(name)
    other = walk.compared.other(record, name, cells) if cells is not None else None
    if other is None:
        return ""
    if other:
        return f"made by cell {min(walk.cells[cell] for cell in other)}, which is not as it was in run {record.run}"
    return f"made by other cells in run {record.run}"


def _wanting(step: Foreseen, record: Entry, walk: Walk) -> tuple[Action, str] | None:
    """Why an equal record is not enough; as ``decide`` says it."""
    needed = walk.below | read_later(walk.records.entries, record) if record.not_stored else frozenset()
    if lost := lacking(record, needed):
        return Action.EXECUTES, f"{lost} could not be stored and is needed below"
    if failed := owing(record):
        return Action.EXECUTES, failed
    saw = record.ambient.get("saw", ("unknown",))
    if walk.run.anew is False or not saw or step.options.ttl_s is not None:
        return None
    if record.run == walk.run.run or record.run in walk.run.went_on:
        return None
    reached = f"it reached out ({', '.join(saw)}) in run {record.run}: `--ttl 1d` on its line keeps that"
    if walk.run.anew:
        return Action.EXECUTES, f"a new run, and {reached}"
    return Action.MAY, f"where no front end is (`keel run`), a new run makes it anew: {reached}"


def _wished(step: Foreseen, newest: Entry, walk: Walk) -> tuple[Action, str] | None:
    """What comes of a pending wish: a guarded effect is not done again because somebody asked for it (Z15)."""
    if step.step in walk.wishes.rerun:
        held = held_once(step.mine, step.step)
        return (Action.REPLAYS, f"it {held}, and does not happen again") if held else (Action.EXECUTES, _RERUN)
    if step.step in walk.wishes.accept and newest.effect is Effect.IDEMPOTENT:
        return Action.REPLAYS, f"the record of run {newest.run} is accepted"
    return None


_RERUN = "a rerun was asked for"


def _without_record(step: Foreseen, walk: Walk) -> tuple[Action, str]:
    attempts = [entry for entry in step.mine.entries if entry.kind in RECORDS]
    last = attempts[-1] if attempts else None
    same = last is not None and same_code(last.source, step.source)
    if last is not None and same:
        deaths = recorded(step.mine, step.step, fingerprint_of(last), root=root_of(last)).deaths
        if deaths >= step.options.max_attempts:
            return Action.REFUSED, f"the kernel died {in_a_row(deaths)} in it (KEEL-E032)"
    if (journal := _journal_went_on(step, walk)) is not None:
        return journal
    if last is not None and same:
        if last.status is not Status.OK:
            return _begun(step, last, walk)
        return Action.EXECUTES, rejected(step.mine.entries).get(last.entry, _RERUN)
    if step.newest is None:
        return Action.EXECUTES, "there is no record of it"
    if step.options.effect is Effect.EXACTLY_ONCE and held_once(step.mine, step.step):
        return (
            Action.REFUSED,
            "it was done, and only its code differs (KEEL-E031)",
        )
    return _diverges(step, walk, "code differs", "")


def _begun(step: Foreseen, last: Entry, walk: Walk) -> tuple[Action, str]:
    """A step whose last attempt did not end well."""
    if last.effect is Effect.EXACTLY_ONCE and last.status in {Status.INTENT, Status.INTERRUPTED}:
        if step.options.on_ambiguous in {"", "fail"}:
            return Action.REFUSED, "it was begun, and nobody knows how it ended (KEEL-E060)"
        if step.options.on_ambiguous == "skip":
            return Action.RUNS, "begun earlier, and taken as done (--on-ambiguous skip): nothing runs"
    waits = [wait.name or wait.kind for wait in open_waits(walk.records.entries) if wait.step == step.step]
    waiting = f", and waits for {', '.join(waits)}" if waits else ""
    return Action.EXECUTES, _ending(last, walk.records) + waiting


def _journal_went_on(step: Foreseen, walk: Walk) -> tuple[Action, str] | None:
    tried = unsettled(entry for entry in reversed(step.mine.entries) if entry.step == step.step)
    for seen in tried.files if tried is not None else ():
        if seen.role != ROLE:
            continue
        assert tried is not None
        told = walk.look(tried, seen)
        if told is None:
            walk.assumed[f"{seen.path} is as it was before {step.step} was last tried"] = None
        elif told.said:
            return (
                Action.REFUSED,
                f"its own journal {seen.path} went on in the attempt that failed (KEEL-E033)",
            )
    return None


def _ending(last: Entry, records: FlowRecords) -> str:
    match last.status:
        case Status.FAILED:
            return f"it failed last time ({last.error.type})" if last.error else "it failed last time"
        case Status.RUNNING:
            seen = records.runs.get(last.run)
            if seen is not None and seen.end == RunEnd.OPEN:
                return "it runs now, or ran and could not be recorded"
            return "its kernel went away while it ran"
        case _:
            return f"it was {last.status} last time"
