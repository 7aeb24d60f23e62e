"""Which entries of a flow a head keeps: everything, until there are many; then what may still be asked for.

What a head leaves out is still in the record file. A kernel that misses an old record executes again; so what
must never happen twice (guarded effects) and what takes something back (retirements) is always kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final

from keel_notebook.core.model import Effect, Entry, EntryId, Kind, Status
from keel_notebook.journal.flowlog import Written

MANY: Final = 10_000
"""Entries: up to here nothing is left out."""
MOST: Final = 200_000
"""Entries of which only the newest of its identity is worth keeping."""
_TRAILING: Final = 16
_ALWAYS: Final = frozenset({Kind.RETIRE, Kind.ACCEPT, Kind.PROMISE, Kind.UNDO, Kind.FOLD})


def pruned(written: Sequence[Written], *, many: int = MANY, most: int = MOST) -> list[Written]:
    """What of ``written`` (oldest first) a head keeps, in the same order."""
    if len(written) <= many:
        return list(written)
    tiers = _tiers(written)
    kept = {ident for ident, tier in tiers.items() if tier == 0}
    for limit, tier in ((most, 1), (many, 2), (many, 3)):
        for item in reversed(written):
            if len(kept) >= limit:
                break
            if tiers[item.entry.entry] == tier:
                kept.add(item.entry.entry)
    _with_refs(kept, written)
    return [item for item in written if item.entry.entry in kept]


def _tiers(written: Sequence[Written]) -> dict[EntryId, int]:
    # 0 always · 1 the newest of its identity, and what failed since · 2 an older version · 3 superseded
    tiers: dict[EntryId, int] = {}
    done: set[Hashable] = set()
    versions: set[Hashable] = set()
    trailing: Counter[Hashable] = Counter()
    for item in reversed(written):
        entry = item.entry
        who = (entry.kind, entry.step, entry.occurrence, entry.lane, entry.call, entry.key)
        version = (who, _content(entry))
        trailing[who] += 1
        if entry.effect is not Effect.IDEMPOTENT or entry.kind in _ALWAYS:
            tier = 0
        elif who not in done and trailing[who] <= _TRAILING:
            tier = 1
        elif entry.status is Status.OK and version not in versions:
            tier = 2
        else:
            tier = 3
        if entry.status is Status.OK:
            done.add(who)
            versions.add(version)
        tiers[entry.entry] = tier
    return tiers


def _content(entry: Entry) -> Hashable:
    return entry.code, tuple((item.name, item.digest) for item in entry.inputs)


def _with_refs(kept: set[EntryId], written: Sequence[Written]) -> None:
    # A payload may refer to values that earlier entries hold: those are kept with it.
    by_id = {item.entry.entry: item.entry for item in written}
    open_ones = list(kept)
    while open_ones:
        entry = by_id.get(open_ones.pop())
        if entry is None or entry.payload is None:
            continue
        for ref in entry.payload.refs:
            if ref not in kept and ref in by_id:
                kept.add(ref)
                open_ones.append(ref)
