"""One journal for several threads: durable calls may come from any of them (DESIGN 3.2).

The port allows the main thread only. Calls of worker threads and the session's own writing therefore take turns on
one lock; nothing long happens under it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from keel_notebook.core.model import Blob, Digest, Entry, FlowId
from keel_notebook.core.ports import FlowRecords, Journal


class SharedJournal:
    """Implements ``core.ports.Journal`` by handing on to another one, one thread at a time."""

    def __init__(self, journal: Journal) -> None:
        self.inner: Any = journal
        self.lock = threading.RLock()

    @property
    def run(self) -> int:
        """This kernel's run number."""
        return int(self.inner.run)

    @run.setter
    def run(self, _: int) -> None:
        raise AttributeError("a run keeps its number")

    @property
    def salt(self) -> bytes:
        """The salt of the journal's folder."""
        return bytes(self.inner.salt)

    @salt.setter
    def salt(self, _: bytes) -> None:
        raise AttributeError("a journal keeps its salt")

    @property
    def fence(self) -> int:
        """The fence of the lease that this kernel holds; goes into every frame."""
        return int(self.inner.fence)

    @fence.setter
    def fence(self, fence: int) -> None:
        self.inner.fence = fence

    @property
    def claims(self) -> frozenset[Digest]:
        """Objects that were put here and that no entry names yet."""
        return frozenset(self.inner.claims)

    def next_seq(self) -> int:
        """The seq of the next entry."""
        with self.lock:
            return int(self.inner.next_seq())

    def append(self, entry: Entry, *, synced: bool = False) -> None:
        """Write the entry."""
        with self.lock:
            self.inner.append(entry, synced=synced)

    def records(self, flow: FlowId) -> FlowRecords:
        """What is recorded of a flow."""
        with self.lock:
            found: FlowRecords = self.inner.records(flow)
            return found

    def put(self, parts: Iterable[memoryview | bytes]) -> Digest:
        """Write one object."""
        with self.lock:
            return Digest(self.inner.put(parts))

    def blob(self, content: bytes | memoryview) -> Blob:
        """Small content inline, larger content as an object."""
        with self.lock:
            made: Blob = self.inner.blob(content)
            return made

    def read(self, blob: Blob) -> bytes:
        """The content of a blob."""
        with self.lock:
            return bytes(self.inner.read(blob))

    def map(self, digest: Digest) -> memoryview:
        """An object as private memory."""
        with self.lock:
            return memoryview(self.inner.map(digest))

    def flush(self, timeout_s: float | None = None) -> bool:
        """Make everything written so far power-safe."""
        with self.lock:
            return bool(self.inner.flush(timeout_s))

    def trust(self, flow: FlowId) -> int:
        """Add the owner's seal to every entry of a flow that lacks it."""
        with self.lock:
            return int(self.inner.trust(flow))

    def request_shutdown(self) -> None:
        """Note that the kernel was asked to stop: never waits for a thread that is writing."""
        self.inner.request_shutdown()

    def close(self, *, clean: bool) -> None:
        """End the run."""
        with self.lock:
            self.inner.close(clean=clean)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)  # what a real journal has beside the port: problem, unsynced, check
