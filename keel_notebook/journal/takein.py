"""Takes segments into the record file and into heads; the ingest's middle part, without its order of publishing.

Every step may be repeated: an entry that is there already, in the record file or in a head, changes nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field

from keel_notebook.core.model import FlowId
from keel_notebook.core.ports import RunSeen
from keel_notebook.journal import heads, liveness, wire
from keel_notebook.journal.cursor import Cursor
from keel_notebook.journal.damage import note
from keel_notebook.journal.flowlog import FlowLog, News, Written, take_in
from keel_notebook.journal.flows import FlowSeen
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.heads import Head, Index
from keel_notebook.journal.liveness import Life
from keel_notebook.journal.objects import Objects
from keel_notebook.journal.record import RecordFile
from keel_notebook.journal.wire import Stored

_WORTH: Final = 20
"""A head is rewritten once a twentieth of it is new: writing it costs as much as all of it."""


class Taken(Struct, dict=True):
    """One segment after reading."""

    cursor: Cursor
    life: Life
    seen: RunSeen
    size: int
    """Bytes in it when it was read."""


class TakeIn(Struct, dict=True):
    """What one ingest reads and stores. ``index`` is None where the heads have to be rebuilt."""

    place: Folder
    record: RecordFile
    index: Index | None
    logs: dict[FlowId, FlowLog] = field(default_factory=dict)
    segments: dict[int, Taken] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    top: int = 0
    """The highest run number seen anywhere."""
    generation: int = 0
    totals: dict[FlowId, int] = field(default_factory=dict)
    """Entries in the record file, per flow that changed."""
    news: int = 0
    """Entries that were read beyond what the heads hold."""
    _at_load: dict[FlowId, int] = field(default_factory=dict)
    _upto: dict[tuple[int, bytes], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._objects = Objects(self.place, run=0, vouched=lambda _: 0)

    def run(self) -> None:
        """Read everything new and store it. Raises OSError and duckdb.Error."""
        runs = self.place.runs()
        if self.index is None:
            self._merge_everything(Index())
        elif self.record.generation() < self.index.generation:
            note(self.place, "The record file was older than the heads; what it lacked was put back from them.")
            self._merge_everything(self.index)
        else:
            for flow in self.index.flows:
                if not os.path.exists(self.place.head(flow)):
                    self._log(flow)
        self.top = max([self.top, 0 if self.index is None else self.index.top, *runs])
        self._upto = self.record.upto()
        for run in runs:
            self._segment(run)

    def finish(self, flows: Iterable[FlowSeen]) -> None:
        """Bring what lies beside the entries up to date, if anything is new. Raises duckdb.Error."""
        before = 0 if self.index is None else self.index.generation
        self.generation = max(self.record.generation(), before)
        logs = self.changed()
        self.totals = self.record.totals(log.flow for log in logs)
        seen = {run: segment.seen for run, segment in self.segments.items()}
        known = self.record.runs()
        if logs or self.index is None or any(known.get(run) != found for run, found in seen.items()):
            self.generation += 1
            self.record.finish(generation=self.generation, runs=seen, flows=flows, objects=self.sizes)

    def changed(self) -> list[FlowLog]:
        """The logs that differ from their heads."""
        return [log for flow, log in self.logs.items() if log.changes != self._at_load[flow]]

    def heads_can_wait(self) -> bool:
        """Whether so little is new, compared with the heads it would go into, that readers take it from segments."""
        if self.index is None or any(self._at_load[log.flow] < 0 for log in self.changed()):
            return False
        lines = self.index.flows
        kept = sum(lines[log.flow].kept for log in self.changed() if log.flow in lines)
        return self.news * _WORTH < kept

    def close(self) -> None:
        """Let go of all segments."""
        for taken in self.segments.values():
            taken.cursor.close()

    def _segment(self, run: int) -> None:
        resume = None if self.index is None else self.index.resumes.get(run)
        try:
            cursor = Cursor(self.place, run, [] if resume is None else [resume])
        except FileNotFoundError:
            return  # given back by the kernel that had just claimed it
        alive = cursor.life()  # before reading: what a dead kernel wrote is there by now
        news = False
        for batch in cursor.read(dead=alive is Life.GONE):
            self._store(take_in(batch, cursor, self._log, seal=None), cursor)
            news = True
        if alive is Life.GONE:
            self._make_safe(cursor)
        seen = cursor.seen(alive)
        if news or resume is None or resume.seen != seen:
            for flow in cursor.flows:
                self._log(flow).see(run, seen)
        self.segments[run] = Taken(cursor, alive, seen, cursor.size())
        if alive is Life.GONE:
            cursor.close()

    def _store(self, fresh: News, cursor: Cursor) -> None:
        assert cursor.ident is not None
        there = self._upto.get((cursor.run, cursor.ident), 0)
        new = [written for end, written in fresh.written if end > there]
        if cursor.at > there:
            self.record.store(new, taken=(cursor.run, cursor.ident, cursor.at))
        for entry, body, mac in fresh.seals:
            self.record.add_mac(entry.entry, body, mac)
        self.news += len(fresh.written)
        for written in new:
            for digest in wire.objects_of(written.entry):
                with contextlib.suppress(FileNotFoundError):
                    self.sizes[digest] = os.stat(self._objects.path(digest)).st_size

    def _make_safe(self, cursor: Cursor) -> None:
        # Its kernel cannot any more. On this boot nothing written was lost, so syncing it now is as good; after a
        # reboot it may have been, so its objects stay unvouched and are checked before use.
        start = cursor.start
        if start.host == liveness.host() and start.boot == liveness.boot():
            self._objects.make_safe({digest: None for _, _, objects, _ in cursor.unsynced for digest in objects})
            for _, flow, objects, stamp in cursor.unsynced:
                self._log(flow).vouch(objects, stamp)
        cursor.unsynced.clear()
        cursor.resume_at_end()

    def _log(self, flow: FlowId) -> FlowLog:
        log = self.logs.get(flow)
        if log is None:
            log = self.logs[flow] = FlowLog(flow, seal=None, keep_bodies=True)
            known = self.index is not None and (flow in self.index.flows or os.path.exists(self.place.head(flow)))
            head = self._head(flow) if known else None
            if head is not None:
                _add_head(log, head)
            elif known:
                self._add_record(log)
            self._at_load[flow] = log.changes if head is not None or not known else -1
        return log

    def _head(self, flow: FlowId) -> Head | None:
        try:
            return heads.read_head(self.place.head(flow), flow)
        except (FileNotFoundError, heads.Unreadable):
            return None

    def _add_record(self, log: FlowLog) -> None:
        for item in self.record.bodies(log.flow):
            log.add(written_of(item))
        named = {entry.run for entry in log.entries()}
        for run, seen in self.record.runs().items():
            if run in named:
                log.see(run, seen)

    def _merge_everything(self, index: Index) -> None:
        # One side lost something that the other may have: put both together, on both sides.
        found = self._all_heads()
        for head in found.values():
            self.record.store([written_of(item) for item in head.entries])
        for flow in {*self.record.flows(), *found}:
            log = self.logs[flow] = FlowLog(flow, seal=None, keep_bodies=True)
            self._at_load[flow] = -1
            self._add_record(log)
            if flow in found:
                _add_head(log, found[flow])
            self.top = max([self.top, *log.runs])
        self.top = max([self.top, *self.record.runs()])
        there = self.record.totals(index.flows)
        for flow, line in index.flows.items():
            if there.get(flow, 0) < line.total:
                note(self.place, f"Flow {flow}: {line.total - there.get(flow, 0)} old entries are lost for good.")

    def _all_heads(self) -> dict[FlowId, Head]:
        found = {}
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self.place.heads):
                if not name.startswith("."):
                    with contextlib.suppress(heads.Unreadable):
                        head = heads.read_head(f"{self.place.heads}/{name}")
                        found[head.flow] = head
        return found


def written_of(item: Stored) -> Written:
    """The entry behind what was stored. Raises BodyError."""
    return Written(item.stamp, item.fence, item.macs, item.body, wire.entry_in(item.body))


def _add_head(log: FlowLog, head: Head) -> None:
    for item in head.entries:
        log.add(written_of(item))
    for run, seen in head.runs.items():
        log.see(run, seen)
    for digest, stamp in head.vouched.items():
        log.vouch((digest,), stamp)
