"""Reads a journal without being a kernel: what the command line and the widget see.

Works beside live kernels and on folders that cannot be written to, never opens DuckDB in this process, and never
unpickles.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.core.model import Blob, Digest, Entry, FlowId
from keel_notebook.core.ports import FlowRecords, Seal
from keel_notebook.errors import JournalUnreachableError
from keel_notebook.journal import heads, spawn, wire
from keel_notebook.journal.cursor import Cursor
from keel_notebook.journal.faults import spoken
from keel_notebook.journal.flowlog import FlowLog, take_in
from keel_notebook.journal.flows import FlowSeen, known_flows
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.heads import Index
from keel_notebook.journal.liveness import Life
from keel_notebook.journal.objects import Objects
from keel_notebook.journal.views import FlowView

_HEAL_S = 60.0


class Sizes(Struct, frozen=True):
    """Bytes on disk."""

    objects: int
    segments: int
    duckdb: int


def read_journal(folder: Path, *, seal: Seal | None) -> JournalReader:
    """A reader of the journal in ``folder``. Without a seal nothing counts as untrusted: for who never unpickles."""
    return JournalReader(Folder(folder), seal)


class JournalReader:
    """Built by ``read_journal``. Methods raise JournalUnreachableError (E054) where the folder cannot be read."""

    def __init__(self, place: Folder, seal: Seal | None) -> None:
        self._place = place
        self._seal = seal
        self._views: dict[FlowId, FlowView] = {}
        self._objects = Objects(place, run=0, vouched=lambda _: 0)

    def flows(self) -> list[FlowSeen]:
        """Every flow that has a notebook, a name or an entry; the most recently active first."""
        with spoken(self._place.path):
            found = {flow.id: flow for flow in known_flows(self._place.path)}
            index = self._index()
            newest = {flow: line.newest for flow, line in index.flows.items()}
            runs = {flow: set(line.runs) for flow, line in index.flows.items()}
            for flow, stamp, run in self._in_segments(index):
                newest[flow] = max(newest.get(flow, 0), stamp)
                runs.setdefault(flow, set()).add(run)
        for flow, stamp in newest.items():
            known = found.get(flow, FlowSeen(flow))
            found[flow] = replace(known, newest=stamp / 1e6, runs=tuple(sorted(runs[flow])))
        return sorted(found.values(), key=lambda flow: (-(flow.newest or 0.0), flow.id))

    def records(self, flow: FlowId) -> FlowRecords:
        """What a kernel would see of a flow now."""
        with spoken(self._place.path):
            return self._view(flow).records()

    def history(self, flow: FlowId, step: str | None = None) -> Sequence[Entry]:
        """Every entry of a flow (of one step), old attempts included, oldest first."""
        with spoken(self._place.path):
            entries = self._view(flow).records().entries
            line = self._index().flows.get(flow)
        if line is not None and line.kept < line.total:
            stored = spawn.everything(self._place.path, flow)
            entries = [wire.entry_in(item.body) for item in stored]
        return [entry for entry in entries if step in {None, entry.step}]

    def read(self, blob: Blob) -> bytes:
        """The content of a blob. Raises DamagedError (E051) where it is not what was written."""
        with spoken(self._place.path):
            return self._objects.content(blob)

    def map(self, digest: Digest) -> memoryview:
        """An object as private writable memory, checked. Raises DamagedError (E051)."""
        with spoken(self._place.path):
            return self._objects.map(digest)

    def check(self, digest: Digest) -> None:
        """Compare an object with its digest. Raises DamagedError (E051)."""
        with spoken(self._place.path):
            self._objects.check(digest)

    def sizes(self) -> Sizes:
        """Bytes in objects, segments and the record file."""
        with spoken(self._place.path):
            segments = _bytes_under(self._place.inbox)
            record = sum(_bytes(self._place.record + ending) for ending in ("", ".wal"))
            return Sizes(_bytes_under(self._place.objects), segments, record)

    def close(self) -> None:
        """Let go of all files."""
        for view in self._views.values():
            view.close()
        self._views = {}

    def _view(self, flow: FlowId) -> FlowView:
        view = self._views.get(flow)
        if view is None:
            view = FlowView(self._place, flow, seal=self._seal, heal=self._heal)
            view.attach(own=None)
            self._views[flow] = view
        return view

    def _heal(self) -> None:
        spawn.ingest_now(self._place.path, _HEAL_S)

    def _index(self) -> Index:
        refusal: JournalUnreachableError | None = None
        for healed in (False, True):
            try:
                return heads.read_index(self._place.index)
            except FileNotFoundError:
                if not os.path.exists(self._place.record):
                    return Index()
            except heads.Unreadable:
                pass
            if not healed:
                try:
                    self._heal()
                except JournalUnreachableError as found:
                    refusal = found  # it may have rebuilt the heads all the same
        detail = "the index of its heads cannot be rebuilt"
        raise refusal or JournalUnreachableError(journal=self._place.path, detail=detail, case="heads")

    def _in_segments(self, index: Index) -> list[tuple[FlowId, int, int]]:
        # Flow, newest stamp and run of what is in the inbox only.
        found: dict[tuple[FlowId, int], FlowLog] = {}
        for run in self._place.runs():
            resume = index.resumes.get(run)
            try:
                cursor = Cursor(self._place, run, [] if resume is None else [resume])
            except FileNotFoundError:
                continue  # ingested meanwhile: the next look finds it in the index

            def log_of(flow: FlowId, run: int = run) -> FlowLog:
                return found.setdefault((flow, run), FlowLog(flow, seal=None, keep_bodies=False))

            for batch in cursor.read(dead=cursor.life() is Life.GONE):
                take_in(batch, cursor, log_of, seal=None)
            cursor.close()
        return [(flow, log.newest, run) for (flow, run), log in found.items()]


def _bytes_under(folder: str) -> int:
    return sum(_bytes(os.path.join(place, name)) for place, _, names in os.walk(folder) for name in names)


def _bytes(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
