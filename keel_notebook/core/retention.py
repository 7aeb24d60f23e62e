"""Which records are let go to make room (``keel gc``): pure, so that a dry run is the real run (DESIGN 7, Size).

Only payloads and outputs go; entries stay, so that nobody is told "never ran". A step whose payload is gone executes
when it is asked for. Three tiers:

0. *needed*: what must never happen twice, what takes something back, what a kernel at work has put back, and the newest
   record of every step and call of a flow with its newest parameters, with all that these refer to. Never let go.
1. *other*: the newest records of other parameter sets and lanes. Let go only where the budget asks for it.
2. *old*: superseded records. Let go when they are older than the retention, or where the budget asks for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from msgspec import Struct

from keel_notebook.core.model import Digest, Effect, Entry, EntryId, FlowId, Kind, Status
from keel_notebook.core.units import size_b
from keel_notebook.errors import SettingsError

KEEP_S = 30 * 86_400.0
"""Seconds for which superseded records are kept where nobody says otherwise."""
ORPHAN_S = 86_400.0
"""Seconds after which an object that no entry names is let go: its kernel died before the entry was written."""
_RECORDS = frozenset({Kind.STEP, Kind.ACCEPT, Kind.ADOPT})
_NEVER = frozenset({Kind.PROMISE, Kind.UNDO, Kind.RETIRE, Kind.LOOP, Kind.FOLD})


class Held(Struct, frozen=True):
    """An object in the folder."""

    bytes: int
    touched: float
    """When its file was last changed, seconds since the epoch."""


class Wishes(Struct, frozen=True):
    """What is to be kept."""

    keep_s: float = KEEP_S
    budget: int | None = None
    """Bytes that the objects may take together; None: as many as there are."""
    orphans: bool = True
    """Whether objects that no entry names may go: not where a part of the journal could not be read."""
    keep: frozenset[EntryId] = frozenset()
    """Records that are needed whatever their age: a kernel that is at work has put them back."""
    claimed: frozenset[Digest] = frozenset()
    """Objects that a kernel at work has put and that no entry names yet."""


class Plan(Struct, frozen=True):
    """What goes."""

    objects: tuple[Digest, ...]
    bytes: int
    """That these take on disk."""
    left: int
    """Bytes that the other objects take."""
    entries: tuple[tuple[FlowId, EntryId], ...]
    """Records that lose their values or outputs."""
    orphans: int
    """Objects among ``objects`` that no entry names."""
    over: int
    """Bytes above the budget that are needed all the same; 0 where it holds."""


def plan(flows: Mapping[FlowId, Sequence[Entry]], held: Mapping[Digest, Held], wishes: Wishes, *, now: float) -> Plan:
    """What goes. ``flows``: every entry of every flow, oldest first; ``now``: wall time, seconds."""
    tiers = {(f, ident): tier for f, entries in flows.items() for ident, tier in _tiers(entries, wishes.keep).items()}
    named = {(flow, entry.entry): _objects(entry) for flow, entries in flows.items() for entry in entries}
    age = {
        (flow, e.entry): now - (e.ended_at or e.started_at or now) for flow, entries in flows.items() for e in entries
    }
    users = Counter(digest for objects in named.values() for digest in objects)
    users.update(wishes.claimed)
    gone = {d for d, one in held.items() if wishes.orphans and not users[d] and now - one.touched >= ORPHAN_S}
    orphans = len(gone)
    left = sum(one.bytes for one in held.values()) - sum(held[digest].bytes for digest in gone)
    # Oldest first, superseded ones before others: what the budget takes is what is missed least.
    may_go = sorted(
        (key for key, tier in tiers.items() if tier and named[key]), key=lambda key: (-tiers[key], -age[key])
    )
    entries = []
    for key in may_go:
        too_old = tiers[key] == 2 and age[key] >= wishes.keep_s
        if not too_old and (wishes.budget is None or left <= wishes.budget):
            continue
        freed = [digest for digest in named[key] if users[digest] == 1 and digest in held and digest not in gone]
        users.subtract(named[key])
        gone.update(freed)
        left -= sum(held[digest].bytes for digest in freed)
        if freed:
            entries.append(key)
    over = 0 if wishes.budget is None else max(0, left - wishes.budget)
    return Plan(tuple(sorted(gone)), sum(held[d].bytes for d in gone), left, tuple(sorted(entries)), orphans, over)


def _objects(entry: Entry) -> frozenset[Digest]:
    payload, outputs = entry.payload, entry.outputs
    named = [] if payload is None else [payload.head.object, *payload.buffers]
    if outputs is not None:
        named.append(outputs.object)
    return frozenset(digest for digest in named if digest is not None)


def _tiers(oldest_first: Sequence[Entry], keep: frozenset[EntryId] = frozenset()) -> dict[EntryId, int]:
    newest = next((e for e in reversed(oldest_first) if e.kind in _RECORDS and e.status is Status.OK), None)
    current = (newest.lane, _parameters(newest)) if newest is not None else ("", "")
    tiers: dict[EntryId, int] = {}
    met: set[Hashable] = set()
    for entry in reversed(oldest_first):
        tier = _tier(entry, met, current)
        tiers[entry.entry] = 0 if entry.entry in keep else tier
    _with_refs(tiers, oldest_first)
    return tiers


def _tier(entry: Entry, met: set[Hashable], current: tuple[Hashable, str]) -> int:
    if entry.effect is not Effect.IDEMPOTENT or entry.kind in _NEVER:
        return 0
    group = "step" if entry.kind in _RECORDS else entry.kind
    own = (entry.lane, _parameters(entry)) if group == "step" else current
    key = "" if group == "step" else entry.key
    identity: tuple[Hashable, ...] = (group, own, entry.step, entry.call, key, entry.occurrence)
    if entry.kind is Kind.COPY:  # each keeps what one name held before a step changed it
        identity = (*identity, *(write.name for write in entry.writes))
    if entry.status is not Status.OK:
        return 2 if identity in met else 1
    if identity in met:
        return 2
    met.add(identity)
    return 0 if own == current else 1


def _parameters(entry: Entry) -> str:
    return str(entry.ambient.get("parameters", ""))


def _with_refs(tiers: dict[EntryId, int], entries: Iterable[Entry]) -> None:
    """What an entry refers to is kept for as long as the entry itself."""
    by_id = {entry.entry: entry for entry in entries}
    waiting = [ident for ident, tier in sorted(tiers.items(), key=lambda item: -item[1])]
    while waiting:  # lower tiers last popped first: each reference takes the lowest tier that reaches it
        ident = waiting.pop()
        payload = by_id[ident].payload
        for ref in payload.refs if payload is not None else ():
            if ref in tiers and tiers[ref] > tiers[ident]:
                tiers[ref] = tiers[ident]
                waiting.append(ref)


def budget_of(setting: str) -> str:
    """``Keel.budget`` as the journal takes it: bytes, ``default``, or empty for none. Raises SettingsError (E001)."""
    if setting in {"", "off"}:
        return "" if setting else "default"
    try:
        return str(size_b(setting))
    except ValueError as error:
        raise SettingsError(where="Keel.budget", detail=str(error)) from None
