"""All entries of one flow, merged from its head and from the segments of any number of kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from keel_notebook.core.entries import Entries, Index, indexed
from keel_notebook.core.model import Digest, Entry, EntryId, FlowId
from keel_notebook.core.ports import RunSeen, Seal
from keel_notebook.journal import wire
from keel_notebook.journal.cursor import Cursor
from keel_notebook.journal.frames import NO_MAC, Fault, Frame, Mark


class Written(NamedTuple):
    """An entry with what was written around it. ``body`` and ``macs`` are kept as they were, so that seals hold."""

    stamp: int
    fence: int
    macs: tuple[bytes, ...]
    body: bytes
    entry: Entry


class FlowLog:
    """The entries of a flow in the order written. A later one with the same id supersedes (core.model.Entry)."""

    def __init__(self, flow: FlowId, *, seal: Seal | None, keep_bodies: bool) -> None:
        self.flow = flow
        self.runs: dict[int, RunSeen] = {}
        self.vouched: dict[Digest, int] = {}
        """Objects that are power-safe, and sound if nobody touched them since the stamp."""
        self.untrusted: set[EntryId] = set()
        self.changes = 0
        """Grows with every change."""
        self.newest = 0
        self._entries: dict[EntryId, Entry] = {}
        self._stamps: dict[EntryId, int] = {}
        self._raw: dict[EntryId, Written] = {}
        self._in_order = True
        self._index: Index | None = None
        """Of ``_entries``, once somebody asked for them."""
        self._seal = seal
        self._keep_bodies = keep_bodies

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> Entries:
        """The entries, oldest first."""
        if not self._in_order:
            self._entries = {
                ident: self._entries[ident] for ident in sorted(self._entries, key=self._stamps.__getitem__)
            }
            self._in_order = True
            self._index = None
        if self._index is None:
            self._index = Index(self._entries.values())
        return indexed(self._entries.values(), self._index)

    def written(self) -> list[Written]:
        """The entries with their bodies, oldest first. Only where bodies are kept."""
        return [self._raw[entry.entry] for entry in self.entries()]

    def add(self, new: Written) -> None:
        """Take an entry in, unless a later one under its id is there, or it was moved here from another flow."""
        if new.entry.flow != self.flow:
            return
        ident = new.entry.entry
        old_stamp = self._stamps.get(ident, -1)
        if old_stamp > new.stamp:
            return
        if self._keep_bodies:
            old = self._raw.get(ident)
            if old is not None and old.stamp == new.stamp and old.body == new.body:
                new = new._replace(macs=tuple(dict.fromkeys(old.macs + new.macs)))
            self._raw[ident] = new
        if self._trusts(new.body, new.macs):
            self.untrusted.discard(ident)
        elif old_stamp != new.stamp:
            self.untrusted.add(ident)
        self._put(new.entry, new.stamp)

    def add_own(self, entry: Entry, stamp: int) -> None:
        """Take in an entry that this kernel has just written: the newest of all, and trusted."""
        self.untrusted.discard(entry.entry)
        self._put(entry, stamp)

    def _put(self, entry: Entry, stamp: int) -> None:
        ident = entry.entry
        if stamp < self.newest:
            self._in_order = False
        else:
            self.newest = stamp
        old = self._entries.pop(ident, None)  # it moves to the end
        self._entries[ident] = entry
        if self._index is not None:
            self._index.add(entry) if old is None else self._index.supersede(old, entry)
        self._stamps[ident] = stamp
        self.changes += 1

    def add_seal(self, entry: Entry, body: bytes, mac: bytes) -> None:
        """Take in another owner's seal on an entry that is there."""
        if self._entries.get(entry.entry) != entry:
            return  # a seal on what was superseded since
        if self._keep_bodies:
            old = self._raw[entry.entry]
            self._raw[entry.entry] = old._replace(macs=tuple(dict.fromkeys((*old.macs, mac))))
        if entry.entry in self.untrusted and self._trusts(body, (mac,)):
            self.untrusted.discard(entry.entry)
        self.changes += 1

    def vouch(self, objects: Iterable[Digest], stamp: int) -> None:
        """Note that objects are power-safe, and sound if nobody touched them since ``stamp``."""
        for digest in objects:
            if self.vouched.get(digest, 0) < stamp:
                self.vouched[digest] = stamp
                self.changes += 1

    def see(self, run: int, seen: RunSeen) -> None:
        """Note what is known of a run now."""
        if self.runs.get(run) != seen:
            self.runs[run] = seen
            self.changes += 1

    def _trusts(self, body: bytes, macs: tuple[bytes, ...]) -> bool:
        if self._seal is None:
            return True
        if len(macs) == 1:  # nearly every entry
            return macs[0] != NO_MAC and self._seal.verify(body, macs[0])
        return any(self._seal.verify(body, mac) for mac in macs if mac != NO_MAC)


LogOf = Callable[[FlowId], FlowLog | None]


class News(NamedTuple):
    """What a batch of frames brought."""

    written: list[tuple[int, Written]]
    """Each with the offset behind its frame."""
    seals: list[tuple[Entry, bytes, bytes]]


def take_in(batch: Iterable[Frame], cursor: Cursor, log_of: LogOf, *, seal: Seal | None) -> News:
    """Put the frames that a cursor read into the logs that want them. Unreadable bodies become its faults."""
    news = News([], [])
    for frame in batch:
        try:
            match frame.mark:
                case Mark.ENTRY | Mark.SEAL:
                    _take_entry(frame, cursor, log_of, news)
                case Mark.SYNCED if seal is None or seal.verify(frame.body, frame.mac):
                    _take_synced(wire.upto_of(frame.body), cursor, log_of)
                case Mark.CHECKED if seal is None or seal.verify(frame.body, frame.mac):
                    flow, checked = wire.unpack(frame.body)
                    if (log := log_of(flow)) is not None:
                        for digest, stamp in checked:
                            log.vouch((digest,), stamp)
                case _:
                    pass  # the cursor's own, or of a newer version
        except (wire.BodyError, TypeError, ValueError) as error:
            fault = Fault(frame.end - len(frame.body), frame.end, f"a frame that cannot be read ({error})")
            if fault not in cursor.faults:
                cursor.faults.append(fault)
    return news


def _take_entry(frame: Frame, cursor: Cursor, log_of: LogOf, news: News) -> None:
    try:
        entry = wire.entry_in(frame.body)
    except wire.BodyError:
        flow = wire.flow_in(frame.body)
        cursor.flows.add(flow)
        if log_of(flow) is None:
            return  # whoever reads that flow says it
        raise
    flow = entry.flow
    log = log_of(flow)
    cursor.flows.add(flow)
    if log is None:
        return
    if frame.mark == Mark.SEAL:
        log.add_seal(entry, frame.body, frame.mac)
        news.seals.append((entry, frame.body, frame.mac))
        return
    written = Written(frame.stamp, frame.fence, (frame.mac,), frame.body, entry)
    log.add(written)
    news.written.append((frame.end, written))
    if objects := wire.objects_of(entry):
        cursor.unsynced.append((frame.end, flow, objects, frame.stamp))


def _take_synced(upto: int, cursor: Cursor, log_of: LogOf) -> None:
    # Vouched for as of the entry, not of the sync: whatever touched an object in between is noticed.
    while cursor.unsynced and cursor.unsynced[0][0] <= upto:
        _, flow, objects, stamp = cursor.unsynced.popleft()
        if (log := log_of(flow)) is not None:
            log.vouch(objects, stamp)
