"""A journal that is only read, with a throw-away one on top (KEEL_MODE=verify, DESIGN 3.5).

What is recorded is seen as in any kernel; what this kernel writes lies in a temporary folder and in memory, and is gone
with it. The journal below stays as it is, to the byte.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable
from pathlib import Path

from keel_notebook.core.model import Blob, Digest, Entry, EntryId, FlowId
from keel_notebook.core.ports import Clock, FlowRecords, RunEnd, RunSeen, RunStart, Seal
from keel_notebook.errors import JournalUnreachableError, KeelError
from keel_notebook.journal import liveness
from keel_notebook.journal.faults import in_words
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.objects import INLINE_MAX, Objects
from keel_notebook.journal.reader import read_journal


class OverlayJournal:
    """Implements ``core.ports.Journal``. Raises JournalUnreachableError (E054) where there is nothing to read."""

    def __init__(self, folder: Path, *, clock: Clock, seal: Seal, notebook: str = "", cwd: str = "") -> None:
        place = Folder(folder)
        salt = place.read_salt()
        if salt is None:
            raise JournalUnreachableError(
                journal=place.path, detail="it is not there; nothing was recorded here yet", case="missing"
            )
        self.salt = salt
        self.fence = 0
        self.problem: KeelError | None = None
        self.saving: frozenset[EntryId] = frozenset()  # nothing of it is meant to last
        self.unsynced = False
        self._below = read_journal(folder, seal=seal)
        self.run = 1 + max((run for flow in self._below.flows() for run in flow.runs), default=0)
        self._scratch = tempfile.TemporaryDirectory(prefix="keel-", ignore_cleanup_errors=True)
        self.scratch = Path(self._scratch.name)
        above = Folder(self.scratch / "journal")
        above.create()
        self._path = above.path
        self._objects = Objects(above, run=self.run, vouched=lambda _: 0)
        self._seq = itertools.count(1)
        self._written: dict[EntryId, Entry] = {}
        self._own = RunSeen(RunStart(self.run, "", 0, liveness.boot(), clock.now(), notebook, cwd), RunEnd.OPEN)

    def next_seq(self) -> int:
        """The seq of the next entry."""
        return next(self._seq)

    def append(self, entry: Entry, *, synced: bool = False) -> None:  # noqa: ARG002 - the port's name
        """Keep the entry for as long as this kernel lives."""
        self._written.pop(entry.entry, None)
        self._written[entry.entry] = entry

    def records(self, flow: FlowId) -> FlowRecords:
        """What is recorded of a flow, and after it what this kernel wrote."""
        found = self._below.records(flow)
        own = [entry for entry in self._written.values() if entry.flow == flow]
        runs = {**found.runs, self.run: self._own}
        return FlowRecords(flow, [*found.entries, *own], runs, found.untrusted)

    def recorded(self, flow: FlowId) -> FlowRecords:
        """What is recorded of a flow, without what this kernel wrote."""
        return self._below.records(flow)

    def put(self, parts: Iterable[memoryview | bytes]) -> Digest:
        """Keep one object in the temporary folder."""
        try:
            return self._objects.put(parts)
        except OSError as error:
            raise self._failed(error) from error

    def blob(self, content: bytes | memoryview) -> Blob:
        """Small content inline, larger content as an object."""
        size = len(content) if isinstance(content, bytes) else content.nbytes
        if size <= INLINE_MAX:
            return Blob(size, inline=bytes(content))
        return Blob(size, object=self.put([content]))

    def read(self, blob: Blob) -> bytes:
        """The content of a blob, checked."""
        own = blob.object is not None and self._objects.holds(blob.object)
        return self._objects.content(blob) if own else self._below.read(blob)

    def map(self, digest: Digest) -> memoryview:
        """An object as private writable memory, checked."""
        return self._objects.map(digest) if self._objects.holds(digest) else self._below.map(digest)

    def check(self, digest: Digest) -> None:
        """Compare an object with its digest."""
        if self._objects.holds(digest):
            self._objects.check(digest)
        else:
            self._below.check(digest)

    def flush(self, timeout_s: float | None = None) -> bool:  # noqa: ARG002 - the port's name
        """Nothing is to survive."""
        return True

    def trust(self, flow: FlowId) -> int:  # noqa: ARG002 - the port's name
        """Nothing is written: nothing is sealed either."""
        return 0

    def request_shutdown(self) -> None:
        """Nothing waits for the end of this kernel."""

    def close(self, *, clean: bool) -> None:  # noqa: ARG002 - the port's name
        """Let go of the journal, and of everything that was written on top of it."""
        self._below.close()
        self._scratch.cleanup()

    def _failed(self, error: OSError) -> KeelError:
        return in_words(error, self._path)
