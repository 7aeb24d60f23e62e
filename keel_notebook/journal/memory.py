"""A journal in memory, for tests: the same port, the same answers, no files."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable

from msgspec import Struct, field

from keel_notebook.core.model import Blob, Digest, Entry, EntryId, FlowId
from keel_notebook.core.ports import Clock, FlowRecords, RunEnd, RunSeen, RunStart, Seal
from keel_notebook.errors import DamagedError, JournalUnreachableError, KeelError
from keel_notebook.journal import wire
from keel_notebook.journal.flowlog import FlowLog, Written
from keel_notebook.journal.folder import SALT_BYTES

_INLINE_MAX = 16 << 10


class _Run(Struct, dict=True):
    start: RunStart
    end: str = RunEnd.OPEN
    asked: bool = False


class MemoryFolder(Struct, dict=True):
    """What survives a kernel: give the same one to the next ``MemoryJournal``."""

    salt: bytes = field(default_factory=lambda: os.urandom(SALT_BYTES))
    objects: dict[Digest, bytes] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)
    runs: dict[int, _Run] = field(default_factory=dict)
    stamps: itertools.count[int] = field(default_factory=lambda: itertools.count(1))


class MemoryJournal:
    """Implements ``core.ports.Journal`` on a ``MemoryFolder``."""

    def __init__(
        self, folder: MemoryFolder | None = None, *, clock: Clock, seal: Seal, notebook: str = "", cwd: str = ""
    ) -> None:
        self.folder = folder or MemoryFolder()
        self.run = max(self.folder.runs, default=0) + 1
        self.salt = self.folder.salt
        self.fence = 0
        self.problem: KeelError | None = None
        """Set it to have every writing method raise it."""
        self.unsynced = False
        self.saving: frozenset[EntryId] = frozenset()
        self._seal = seal
        self._seq = itertools.count(1)
        self._closed = False
        start = RunStart(self.run, "memory", self.run, "memory", clock.now(), notebook, cwd)
        self._own = self.folder.runs[self.run] = _Run(start)

    def next_seq(self) -> int:
        """The seq of the next entry."""
        return next(self._seq)

    def append(self, entry: Entry, *, synced: bool = False) -> None:
        """Keep the entry."""
        self._usable()
        body = wire.pack_entry(entry)
        kept = wire.entry_in(body)  # what a reader of a real journal would find
        written = Written(next(self.folder.stamps), self.fence, (self._seal.sign(body),), body, kept)
        self.folder.written.append(written)
        self.unsynced = not synced
        self.saving = frozenset() if synced else self.saving | {entry.entry}

    def records(self, flow: FlowId) -> FlowRecords:
        """What is recorded of a flow."""
        self._open()
        log = FlowLog(flow, seal=self._seal, keep_bodies=False)
        for written in self.folder.written:
            if written.entry.flow == flow:
                log.add(written)
        named = {entry.run for entry in log.entries()}
        runs = {run: RunSeen(seen.start, seen.end) for run, seen in self.folder.runs.items() if run in named}
        return FlowRecords(flow, log.entries(), runs, frozenset(log.untrusted))

    def put(self, parts: Iterable[memoryview | bytes]) -> Digest:
        """Keep one object."""
        self._usable()
        content = b"".join(memoryview(part).cast("B") for part in parts)
        digest = Digest(hashlib.blake2b(content, digest_size=32).hexdigest())
        self.folder.objects[digest] = content
        self.unsynced = True
        return digest

    def blob(self, content: bytes | memoryview) -> Blob:
        """Small content inline, larger content as an object."""
        raw = bytes(content)
        if len(raw) <= _INLINE_MAX:
            return Blob(len(raw), inline=raw)
        return Blob(len(raw), object=self.put([raw]))

    def read(self, blob: Blob) -> bytes:
        """The content of a blob."""
        content = blob.inline
        if content is None:
            content = self._object(blob.object)
        if len(content) != blob.size:
            raise DamagedError(what="a payload", detail=f"{len(content)} bytes instead of {blob.size}")
        return content

    def map(self, digest: Digest) -> memoryview:
        """An object as private writable memory."""
        return memoryview(bytearray(self._object(digest)))

    def check(self, digest: Digest) -> None:
        """Compare an object with its digest."""
        self._object(digest)

    def flush(self, timeout_s: float | None = None) -> bool:  # noqa: ARG002 - the port's name
        """Nothing to wait for."""
        self.unsynced = False
        self.saving = frozenset()
        return True

    def trust(self, flow: FlowId) -> int:
        """Add the owner's seal to every entry of a flow that lacks it."""
        foreign = self.records(flow).untrusted
        for at, written in enumerate(self.folder.written):
            if written.entry.entry in foreign:
                macs = (*written.macs, self._seal.sign(written.body))
                self.folder.written[at] = written._replace(macs=macs)
        return len(foreign)

    def request_shutdown(self) -> None:
        """Note that the kernel was asked to stop."""
        self._own.asked = True

    def close(self, *, clean: bool) -> None:
        """End the run; without ``clean`` as a kernel that died."""
        if not self._closed:
            self._closed = True
            lost = RunEnd.ASKED if self._own.asked else RunEnd.DIED
            self._own.end = RunEnd.CLEAN if clean else lost

    def _open(self) -> None:
        if self._closed:
            raise JournalUnreachableError(journal="memory", detail="it was closed")

    def _usable(self) -> None:
        self._open()
        if self.problem is not None:
            raise self.problem

    def _object(self, digest: Digest | None) -> bytes:
        content = None if digest is None else self.folder.objects.get(digest)
        if content is None:
            raise DamagedError(what="a payload", detail="an object is missing")
        if hashlib.blake2b(content, digest_size=32).hexdigest() != digest:
            raise DamagedError(what="a payload", detail="an object is not what was written")
        return content
