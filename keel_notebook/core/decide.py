"""What to do with a step: one pure function, ``decide`` (DESIGN 5). This page is the product.

It looks at what the step is now, what was recorded, and what the policy says, and answers with one value.
Nothing here reads a clock, a file or the notebook. *Unknown is never equal*: a digest of None differs from
everything, itself included, so "I don't know" always ends in Execute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field

from keel_notebook.core import environment, fileholds, sharing
from keel_notebook.core.dotted import is_module
from keel_notebook.core.fileholds import FilesNow, same
from keel_notebook.core.model import Digest, Entry, EntryId, Input, Status
from keel_notebook.core.provenance import BY_ORIGIN


class Mode(StrEnum):
    """KEEL_MODE (DESIGN 3.5). ``off`` never reaches ``decide``."""

    LIVE = "live"
    REPLAY = "replay"
    VERIFY = "verify"
    OFF = "off"


class Response(StrEnum):
    """What a divergence does: stop, say it and execute, or execute on a new lane."""

    FAIL = "fail"
    WARN = "warn"
    BRANCH = "branch"


class Part(StrEnum):
    """The part of a fingerprint that differs. The words are DESIGN's divergence kinds."""

    CODE = "code"
    INPUT = "input"
    FILE = "file"
    ENVIRONMENT = "environment"
    ORDER = "order"
    MISSING = "missing"
    NEW = "new"
    EXPIRED = "expired"


class Difference(Struct, frozen=True):
    """One part that differs, with what was recorded and what is there now, as short texts for people."""

    part: Part
    name: str = ""
    recorded: str = ""
    current: str = ""
    detail: str = ""

    def __str__(self) -> str:
        subject = self.name if self.part is Part.ENVIRONMENT else f"{self.part} {self.name}".strip()
        if self.detail:
            return f"{subject} {self.detail}"
        return f"{subject} {self.recorded} -> {self.current}" if self.recorded or self.current else subject


class Facts(Struct, frozen=True):
    """The step as it stands in the notebook now."""

    name: str
    code: Digest | None
    inputs: Mapping[str, Input]
    extra: Mapping[str, Input] = field(default_factory=dict)
    """Names that only a record calls inputs (a conditional store that kept the old object)."""
    files: FilesNow = field(default_factory=FilesNow)
    """The files that the records speak of, as they are now."""
    surroundings: environment.Surroundings = field(default_factory=dict)
    """What the records used of the state that has no name, as it is now."""
    went_on: frozenset[int] = frozenset()
    """Runs that this one goes on with: their day counts as today."""
    run: int = 0
    """This run."""
    anew: bool = False
    """What reached the outside world counts only if it did so in one of these runs (DESIGN 5, Runs)."""
    objects: Mapping[EntryId, sharing.AsItIs] = field(default_factory=dict)
    """Which names share objects now, for every record that speaks of it."""
    applied: frozenset[str] = frozenset()
    """Names whose value is what this very step left, with nobody having touched it since (C31)."""
    needed: frozenset[str] = frozenset()
    """Names that something below reads: a record that lacks one of them is not enough."""
    ttl_s: float | None = None
    always: bool = False
    rerun: bool = False
    parameters: str = ""
    """The parameter set of the notebook. Another set is no divergence: it has records of its own (DESIGN 5)."""
    again: bool = False
    """A person runs the cell of auto mode once more, though nothing above it ran since."""
    acted: str = ""
    """Journals of an external command that went on since the attempt that did not end well (K47)."""


class Recorded(Struct, frozen=True):
    """What the journal knows of the step. ``core.lifecycle`` makes it out of a flow's entries."""

    entries: Sequence[Entry] = ()
    """The records that may be replayed or say how the last attempt ended, newest first."""
    tries: int = 0
    """Attempts in a row that never ended, under the current fingerprint."""
    deaths: int = 0
    """Those of them in which the kernel died by itself: only they count against the attempt cap."""
    memory: int = 0
    """Bytes of memory that the newest dead kernel was last seen to use."""
    untrusted: frozenset[str] = frozenset()
    """Ids of entries that the owner's key did not seal (E050)."""
    generation: int = 0
    """How often a person asked that a guarded step be done anew, under a new idempotency key."""
    last: str = ""
    """The record that was in force last: made, or put back though it was not the newest. Differences are told to it."""
    rejected: str = ""
    """Why the records that there were do not count any more, where nothing was tried since."""


class Policy(Struct, frozen=True):
    """How to answer."""

    mode: Mode = Mode.LIVE
    on_divergence: Response = Response.WARN
    max_attempts: int = 3
    completed: bool = False
    """The flow is completed: that, and no setting, made the mode replay."""


class Replay(Struct, frozen=True):
    """Put back what ``entry`` left."""

    entry: Entry
    why: str


class Execute(Struct, frozen=True):
    """Run the body, as attempt ``attempt``."""

    attempt: int
    why: str


class Skip(Struct, frozen=True):
    """Go on without running the body (an ambiguous effect that is assumed done)."""

    why: str


class Refuse(Struct, frozen=True):
    """Stop with error ``code``."""

    code: str
    why: str


class Diverged(Struct, frozen=True):
    """The notebook differs from ``entry``: say so, then do what ``response`` says."""

    entry: Entry
    differences: tuple[Difference, ...]
    response: Response
    attempt: int


Decision = Replay | Execute | Skip | Refuse | Diverged


def differences(facts: Facts, entry: Entry, *, now: float) -> tuple[Difference, ...]:
    """Every part in which the step differs from a record of it, code first. ``now`` is wall time, seconds."""
    found: list[Difference] = []
    edited = not same(entry.code, facts.code)
    if edited:
        found.append(Difference(Part.CODE, detail="changed" if facts.code else "cannot be read"))
    recorded = {item.name: item for item in entry.inputs}
    left = {item.name: item.digest for item in entry.writes if item.name in facts.applied}
    for name in sorted(recorded.keys() | facts.inputs.keys()):
        current = facts.inputs.get(name) or facts.extra.get(name)
        if current is not None and name in recorded and same(left.get(name), current.digest):
            continue  # already applied: the input is what this record itself left
        found.extend(_input_difference(name, recorded.get(name), current, code_differs=edited))
    if not edited and (objects := facts.objects.get(entry.entry)) is not None:
        clients = {name for name, item in recorded.items() if (item.digest or "").startswith(BY_ORIGIN)}
        clients |= {item.name for item in entry.writes if item.digest is None}
        told_apart = sharing.differing(entry.ambient, objects, facts.applied, clients)
        found.extend(Difference(Part.INPUT, name, detail=said) for name, said in told_apart)
    told = {difference.name for difference in found}  # a file may be declared, read and imported: one difference
    told |= {seen.path for seen in entry.files if seen.role == "journal"}  # asked by ``journalfiles``, and no input
    for seen in entry.files:
        asked = not edited or seen.asked in facts.files.now  # of other code's files nobody looks at the content
        if seen.path not in told and asked and not fileholds.holds(seen, facts.files, entry):
            told.add(seen.path)
            found.append(Difference(Part.FILE, seen.path, detail=fileholds.detail(seen, facts.files, entry)))
    used = entry.ambient.get(environment.INPUTS, {})
    same_day = entry.run in facts.went_on
    around = environment.differing(used, facts.surroundings, same_day=same_day)
    found.extend(Difference(Part.ENVIRONMENT, *item) for item in around)
    if facts.ttl_s is not None and entry.ended_at is not None and now - entry.ended_at >= facts.ttl_s:
        found.append(Difference(Part.EXPIRED, detail="its --ttl has passed"))
    return tuple(found)


def _input_difference(
    name: str, recorded: Input | None, current: Input | None, *, code_differs: bool
) -> list[Difference]:
    if recorded is not None and current is not None:
        if same(recorded.digest, current.digest):
            return []
        if is_module(name):
            return [Difference(Part.FILE, name, detail=current.preview or "changed")]
        was, now = shown(recorded), shown(current)
        if detail := _unknown(recorded, current):
            return [Difference(Part.INPUT, name, was, now, detail)]
        return [Difference(Part.INPUT, name, was, now, f"changed ({now})" if was == now else "")]
    if code_differs:
        return []  # an edited cell reads other names; that is said by "code"
    present = recorded or current
    assert present is not None
    which = "no longer read" if current is None else "not read before"
    return [Difference(Part.INPUT, name, detail=which)]


def _unknown(recorded: Input, current: Input) -> str:
    if recorded.digest is None or current.digest is None:
        return f"({current.type or recorded.type}) cannot be compared"
    return ""


def shown(item: Input) -> str:
    """A value as a short text: its preview where it has one, else its type."""
    return item.preview or item.type or "?"


AS_RECORDED = "code and inputs are those of the record"


def decide(facts: Facts, recorded: Recorded, policy: Policy, *, now: float) -> Decision:
    """The one decision about a step (DESIGN 4.3). Total: every combination of arguments has an answer.

    Args:
        facts: the step as it stands now.
        recorded: its entries, newest first, and the deaths in a row under this fingerprint.
        policy: mode, response to a divergence, and the attempt cap.
        now: wall time in seconds, for ``--ttl``.
    """
    if facts.always:
        return Execute(1, "a resource: executed in every run (--always)")
    acted = Refuse("E033", facts.acted) if facts.acted and not facts.rerun else None
    if policy.mode is Mode.VERIFY:
        return acted or Execute(1, "executed again, to be compared with its record")
    newest_ok = next((e for e in recorded.entries if e.status is Status.OK and _same_set(facts, e)), None)
    valid = None if facts.rerun or facts.again else _first_valid(facts, recorded.entries, newest_ok, now)
    wanting = _wanting(facts, valid, policy) if valid is not None else ""
    if valid is not None and valid.entry not in recorded.untrusted and not wanting:
        changed = fileholds.changed_products(facts.files, valid)
        since = f"; {', '.join(changed)} changed since" if changed else ""
        return Replay(valid, AS_RECORDED + since)
    if recorded.untrusted and not facts.rerun:
        return Refuse("E050", "its records were written by somebody else")
    if policy.mode is Mode.REPLAY:
        return Refuse("E031", _not_replayable(facts, valid, newest_ok, now))
    if recorded.deaths >= policy.max_attempts:
        return Refuse("E032", f"the kernel died {recorded.deaths} times in a row in this step")
    if acted is not None:
        return acted
    attempt = recorded.tries + 1
    if facts.rerun:
        return Execute(attempt, "a rerun was asked for")
    if facts.again:
        return Execute(attempt, "its cell was run once more")
    if wanting:
        return Execute(attempt, wanting)
    stops = policy.on_divergence is Response.FAIL
    if newest_ok is not None and (stops or not recorded.tries):
        last = next((entry for entry in recorded.entries if entry.entry == recorded.last), newest_ok)
        last = last if last.status is Status.OK and _same_set(facts, last) else newest_ok
        return Diverged(last, differences(facts, last, now=now), policy.on_divergence, attempt)
    if recorded.tries:
        return Execute(attempt, "its kernel went away while it ran")
    return Execute(attempt, _first_time(facts, recorded))


def _same_set(facts: Facts, entry: Entry) -> bool:
    return bool(entry.ambient.get("parameters", "") == facts.parameters)


def _wanting(facts: Facts, valid: Entry, policy: Policy) -> str:
    """Why an equal record is not enough; empty if it is."""
    if lost := lacking(valid, facts.needed):
        return f"{lost} is not in its record and is needed below"
    if policy.mode is Mode.LIVE and (failed := owing(valid)):
        return failed
    saw = valid.ambient.get("saw", ("unknown",))
    of_these = valid.run == facts.run or valid.run in facts.went_on
    if facts.anew and saw and not of_these and facts.ttl_s is None and policy.mode is Mode.LIVE:
        return f"a new run, and it reached out ({', '.join(saw)}) in run {valid.run}: `--ttl 1d` on its line keeps that"
    return ""


FAILED_CALLS = "failed_calls"
"""In ``Entry.ambient``: how many durable calls of the step failed and were kept (``on_error="keep"``)."""


def owing(entry: Entry) -> str:
    """What a step that ended well still owes: calls whose failures were kept. Empty if it owes nothing."""
    count = entry.ambient.get(FAILED_CALLS, 0)
    return f"{count} of its calls failed in run {entry.run} and were kept: those are tried again" if count else ""


RESULT = "_"
"""The name under which the value of the last expression is kept; a record may lack it."""


def lacking(entry: Entry, needed: frozenset[str]) -> str:
    """The needed names that the step made and the record does not hold, with their types; empty if it holds all."""
    lost = (item for item in entry.not_stored if item.name in needed and item.name != RESULT)
    return ", ".join(f"{item.name} ({item.type})" for item in lost)


def _first_valid(facts: Facts, usable: Sequence[Entry], newest_ok: Entry | None, now: float) -> Entry | None:
    for entry in usable:
        if entry.status is not Status.OK or differences(facts, entry, now=now):
            continue
        # An older record is replayed only if its step saw nothing of the outside world (DESIGN 5).
        if entry is newest_ok or not entry.ambient.get("saw", ("unknown",)):
            return entry
    return None


def _not_replayable(facts: Facts, valid: Entry | None, newest_ok: Entry | None, now: float) -> str:
    if facts.rerun:
        return "a rerun was asked for, and nothing executes here"
    if valid is not None:
        return f"{lacking(valid, facts.needed)} is not in its record, and nothing executes here"
    if newest_ok is None:
        return "there is no record of it, and nothing executes here"
    return "; ".join(map(str, differences(facts, newest_ok, now=now)))


def _first_time(facts: Facts, recorded: Recorded) -> str:
    own = [entry for entry in recorded.entries if _same_set(facts, entry)]
    if recorded.entries and not own:
        return "there is no record of it with these parameters"
    match own[0].status if own else None:
        case Status.FAILED:
            return "it failed last time"
        case Status.INTERRUPTED:
            return "it was interrupted last time"
        case _:
            return recorded.rejected or "there is no record of it"
