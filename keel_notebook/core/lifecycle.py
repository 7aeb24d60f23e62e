"""What the entries of a flow say about one step: which count, which are retired, how often its kernel died.

Pure: the journal's entries go in, ``decide``'s ``Recorded`` comes out (DESIGN 5, Deaths).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from keel_notebook.core.decide import Recorded
from keel_notebook.core.dotted import PATCHED
from keel_notebook.core.entries import RECORDS, about, came_back, is_made, is_replay
from keel_notebook.core.fileholds import same
from keel_notebook.core.model import Digest, Effect, Entry, EntryId, Input, Kind, Status
from keel_notebook.core.ports import FlowRecords, RunEnd

_SAYS = RECORDS | {Kind.RETIRE}

FORGET, RERUN, REVIVE, NEW_KEY = "forget", "rerun", "revive", "new-key"
"""What a retiring entry says in its ``key``: reject every record, reject this fingerprint, count deaths anew, do a
guarded effect anew under a new idempotency key."""

UNDONE = "undone"
"""What the ``why`` of a retiring entry says where an undo wrote it."""

OPEN = frozenset({Status.RUNNING, Status.INTENT})
"""What the newest entry of an attempt says that goes on, or whose kernel went away."""


class Fingerprint(Struct, frozen=True):
    """What makes attempts count as attempts of the same thing: code and inputs.

    Unlike validity, two unknown inputs are equal here: a step that kills its kernel must be stopped even if
    one of its inputs cannot be digested.
    """

    code: Digest | None
    inputs: tuple[tuple[str, Digest | None], ...]


def fingerprint(code: Digest | None, inputs: Mapping[str, Input]) -> Fingerprint:
    """The fingerprint of a step as it stands now."""
    return Fingerprint(code, tuple(sorted((name, item.digest) for name, item in inputs.items())))


def fingerprint_of(entry: Entry) -> Fingerprint:
    """The fingerprint under which an entry was written."""
    return Fingerprint(entry.code, tuple(sorted((item.name, item.digest) for item in entry.inputs)))


def steps_in(records: FlowRecords) -> dict[str, list[Entry]]:
    """The flow's entries by step, each list newest first."""
    found: dict[str, list[Entry]] = {}
    for entry in reversed(records.entries):
        if entry.kind in RECORDS or entry.kind is Kind.RETIRE:
            found.setdefault(entry.step, []).append(entry)
    return found


def of_step(records: FlowRecords, step: str) -> list[Entry]:
    """The entries of one step that say something about its records, newest first."""
    found = [entry for entry in about(records, step) if entry.kind in _SAYS]
    found.reverse()
    return found


def recorded(records: FlowRecords, step: str, now: Fingerprint, *, root: str = "") -> Recorded:
    """What ``decide`` needs to know of a step whose fingerprint is ``now``.

    ``root`` separates the notebooks of a folder where nobody tells which one runs: records are shared by
    content, deaths are not (DESIGN 5, Which flow).
    """
    tried = [entry for entry in about(records, step) if entry.kind in _SAYS or _is_retry(entry)]
    tried.reverse()
    entries = [entry for entry in tried if entry.kind is not Kind.AUDIT]
    own = [entry for entry in tried if entry.ambient.get("root", "") == root]
    live = tuple(_not_retired(entries))
    anew = sum(entry.kind is Kind.RETIRE and entry.key == NEW_KEY for entry in entries)
    tries, deaths, memory = _unfinished(own, records, now)
    untrusted = frozenset(entry.entry for entry in live if entry.entry in records.untrusted)
    ended = tuple(entry for entry in live if entry.status not in OPEN)
    newest = next((entry for entry in entries if entry.key != REVIVE), None)
    why = rejection(newest) if newest is not None and newest.kind is Kind.RETIRE else ""
    last = in_force(came_back(records, step))
    return Recorded(ended, tries, deaths, memory, untrusted, generation=anew, last=last, rejected=why)


def in_force(newest_first: Iterable[Entry]) -> EntryId:
    """Of the entries of one step: the record that was made or put back last; empty where there is none."""
    for entry in newest_first:
        if is_made(entry):
            return entry.entry
        if is_replay(entry):
            return EntryId(str(entry.ambient.get("entry", "")))
    return EntryId("")


def _is_retry(entry: Entry) -> bool:
    # An ambiguous effect that is fired again writes no second intent (Z21): its audit says that it was tried.
    return entry.kind is Kind.AUDIT and not entry.call and entry.ambient.get("on_ambiguous") == "rerun"


def _not_retired(newest_first: list[Entry]) -> Iterator[Entry]:
    rejected: list[Fingerprint] = []
    for entry in newest_first:
        if entry.kind is not Kind.RETIRE:
            if not any(_covers(asked, fingerprint_of(entry)) for asked in rejected):
                yield entry
        elif entry.key in {FORGET, NEW_KEY}:
            return
        elif entry.key == RERUN:
            rejected.append(fingerprint_of(entry))


def _covers(asked: Fingerprint, recorded: Fingerprint) -> bool:
    """Whether a rerun that was asked for rejects a record: same code, and the inputs that the marker knew.

    Some inputs show only at the end of an attempt (I11), and one that turned out to be unknown loses its digest.
    """
    known = dict(recorded.inputs)
    return asked.code == recorded.code and all(
        known.get(name, digest) in (digest, None) for name, digest in asked.inputs
    )


def rejection(retire: Entry) -> str:
    """Why the records before a retiring entry do not count any more; empty where they still do (``revive``)."""
    if retire.key == FORGET:
        return "its records were forgotten"
    if retire.key == NEW_KEY and retire.why == UNDONE:
        return "it was undone"
    return "a rerun was asked for" if retire.key in {RERUN, NEW_KEY} else ""


def rejected(entries: Sequence[Entry]) -> dict[EntryId, str]:
    """The records that do not count any more, each with why. ``entries`` are a flow's, in the order written."""
    whole: dict[str, str] = {}
    alike: dict[tuple[str, Fingerprint], str] = {}
    found: dict[EntryId, str] = {}
    for entry in reversed(entries):
        if entry.kind is Kind.RETIRE and entry.key == RERUN:
            alike.setdefault((entry.step, fingerprint_of(entry)), rejection(entry))
        elif entry.kind is Kind.RETIRE and (why := rejection(entry)):
            whole.setdefault(entry.step, why)
        elif entry.kind in RECORDS and (whole or alike):
            why = whole.get(entry.step, "") or alike.get((entry.step, fingerprint_of(entry)), "")
            if why:
                found[entry.entry] = why
    return found


def _unfinished(newest_first: list[Entry], records: FlowRecords, now: Fingerprint) -> tuple[int, int, int]:
    tries = deaths = memory = 0
    progressed: set[int] | None = None
    for entry in newest_first:
        if entry.kind is Kind.RETIRE and entry.key in {REVIVE, FORGET, NEW_KEY}:
            break
        if entry.kind is Kind.RETIRE:
            continue
        seen = records.runs.get(entry.run)
        open_ = entry.status in OPEN or entry.kind is Kind.AUDIT
        if open_ and seen is not None and seen.end == RunEnd.OPEN:
            continue  # another kernel is running it right now
        if not open_ or fingerprint_of(entry) != now:
            break  # an ok attempt or an edit starts the count anew
        tries += 1
        if seen is not None and seen.end == RunEnd.DIED:
            deaths += 1
            memory = memory or seen.rss_last
            if progressed is None:
                progressed = _progressed(records, entry.step)
            if entry.run in progressed:
                break  # it came further than the attempts before it: they do not count any more
    return tries, deaths, memory


def _progressed(records: FlowRecords, step: str) -> set[int]:
    # Each call and loop turn is recorded once: an attempt that recorded one went on where the last one had stopped.
    kinds = {Kind.CALL, Kind.LOOP}
    return {e.run for e in records.entries if e.step == step and e.kind in kinds and e.status is Status.OK}


def newest_ok(records: FlowRecords, step: str) -> Entry | None:
    """The newest record of a step that holds something, whether it is valid or not."""
    return next((e for e in _not_retired(of_step(records, step)) if e.status is Status.OK), None)


def held_once(records: FlowRecords, step: str) -> str:
    """Why no wish but a new key makes a step execute again: its effect must not happen twice; empty where one does."""
    for entry in of_step(records, step):
        if entry.kind is Kind.RETIRE and entry.key == NEW_KEY:
            return ""
        if entry.kind is Kind.STEP:
            if entry.effect is not Effect.EXACTLY_ONCE or entry.status is Status.FAILED:
                return ""
            return "was done" if entry.status in {Status.OK, Status.SKIPPED} else "was begun"
    return ""


def known_step(records: FlowRecords, step: str) -> bool:
    """Whether the flow ever recorded a step of this name."""
    return bool(of_step(records, step))


def entry_named(records: FlowRecords, wanted: EntryId) -> Entry | None:
    """The entry with this id, if it is there."""
    return next((entry for entry in records.entries if entry.entry == wanted), None)


def holding(records: FlowRecords, name: str, digest: Digest | None) -> Entry | None:
    """The newest trusted entry whose payload holds this content under this name."""
    for entry in reversed(records.entries):
        if entry.payload is None or entry.status is not Status.OK or entry.entry in records.untrusted:
            continue
        if name in entry.ambient.get(PATCHED, ()):
            continue
        if any(item.name == name and same(item.digest, digest) for item in entry.writes):
            return entry
    return None
