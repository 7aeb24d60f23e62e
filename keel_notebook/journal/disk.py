"""The journal of one kernel: appends to its own segment, reads everybody's, never opens DuckDB (DESIGN 7)."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from keel_notebook.core.entries import is_replay
from keel_notebook.core.model import Blob, Digest, Entry, EntryId, FlowId, Kind, Status
from keel_notebook.core.ports import Clock, FlowRecords, RunEnd, RunSeen, Seal
from keel_notebook.errors import JournalUnreachableError, KeelError
from keel_notebook.journal import forks, spawn, wire
from keel_notebook.journal.barrier import Barrier
from keel_notebook.journal.faults import spoken
from keel_notebook.journal.flowlog import FlowLog
from keel_notebook.journal.flusher import Duties, Flusher, resident_bytes
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.frames import Mark
from keel_notebook.journal.listing import RunsListed
from keel_notebook.journal.objects import INLINE_MAX, Objects
from keel_notebook.journal.safety import Safety
from keel_notebook.journal.segment import GroundLostError
from keel_notebook.journal.views import FlowView
from keel_notebook.journal.writer import StartedOverError, Writer

REST_S: Final = 0.7
_STOP_S: Final = 30.0
_HEAL_S: Final = 60.0
_BEGUN: Final = frozenset({Status.RUNNING, Status.INTENT})


def open_journal(  # noqa: PLR0913 - the one door, all by name
    folder: Path,
    *,
    clock: Clock,
    seal: Seal,
    notebook: str,
    cwd: str,
    rest_s: float | None = REST_S,
    budget: str = "",
) -> DiskJournal:
    """The journal in ``folder``, which is made if it is not there, under a run number of its own.

    Never raises for a folder that cannot be written to: ``problem`` says why, what is in it can be read, ``append``
    raises, and the folder is tried again from time to time. ``rest_s`` seconds after the last append an ingest
    is started; None: this kernel starts none. ``budget``: bytes that the objects may take after this kernel,
    ``default`` for the usual limit; empty: nobody looks.
    """
    place = Folder(folder)
    writer = Writer(place, clock=clock, seal=seal, notebook=notebook, cwd=cwd)
    return DiskJournal(place, writer, clock=clock, seal=seal, rest_s=rest_s, budget=budget)


class DiskJournal:
    """Implements ``core.ports.Journal`` on a folder. Built by ``open_journal``."""

    def __init__(  # noqa: PLR0913 - by name, from the one door
        self, place: Folder, writer: Writer, *, clock: Clock, seal: Seal, rest_s: float | None, budget: str
    ) -> None:
        self.salt = writer.salt
        self._place = place
        self._listed, self._now = RunsListed(place, clock), clock.now
        self._writer = writer
        self._seal = seal
        self._seq = itertools.count(1)
        self._views: dict[FlowId, FlowView] = {}
        self._running: set[str] = set()
        self._ends: deque[tuple[int, EntryId]] = deque()
        self._own_seen: RunSeen | None = None
        self._ask_unwritten = False
        self._acknowledging = 0
        self._closed = False
        self._forked: KeelError | None = None
        self._objects = Objects(place, run=writer.run, vouched=self._vouched, monotonic=clock.monotonic)
        self._safety = Safety(writer, self._objects, folder=place.path, flows=lambda: list(self._views))
        duties = Duties(self._settle, lambda: bool(self._running), self._sampled, self._safety.failed)
        self._barrier = Barrier(lambda: self._safety.sync(vouch=False), place.path)
        self._flusher = Flusher(duties, clock=clock, folder=place.path, rest_s=rest_s, budget=budget)
        forks.watch(self)
        self._at_exit = atexit.register(_close_at_exit(weakref.ref(self)))

    @property
    def run(self) -> int:
        """This kernel's run number; 0 while nothing can be recorded."""
        return self._writer.run

    @property
    def fence(self) -> int:
        """The fence of the lease that this kernel holds, 0 without one. Goes into every frame."""
        return self._writer.fence

    @fence.setter
    def fence(self, fence: int) -> None:
        self._writer.fence = fence

    @property
    def problem(self) -> KeelError | None:
        """Why nothing is recorded, or nothing is made power-safe; None while all is well."""
        return self._forked or self._writer.problem or self._safety.failure or self._barrier.problem

    @property
    def stalls(self) -> int:
        """How often the disk did not acknowledge in time what had to be power-safe (Z24)."""
        return self._barrier.stalls

    @property
    def unsynced(self) -> bool:
        """Whether something written is not power-safe yet."""
        return not self._safety.is_safe()

    @property
    def saving(self) -> frozenset[EntryId]:
        """Entries that are written and not power-safe yet (state ``saving``). Any thread may ask."""
        upto = self._safety.upto
        return frozenset(entry for end, entry in tuple(self._ends) if end > upto)

    @property
    def claims(self) -> frozenset[Digest]:
        """Objects that were put here and that no entry names yet. Any thread may ask."""
        return frozenset(self._objects.claims.copy())

    # Writing

    def next_seq(self) -> int:
        """The seq of the next entry (K3, K4). Also tries to open a folder that could not be used before."""
        if not self._closed and self._forked is None:
            self._writer.open()
        return next(self._seq)

    def append(self, entry: Entry, *, synced: bool = False) -> None:
        """Write the entry so that it survives ``kill -9``; with ``synced`` also a power cut (Z4).

        Raises as the port says. In a forked child, and once the journal is closed, nothing is ever written.
        """
        self._awake()
        body = wire.pack_entry(entry)
        view = self._views.get(entry.flow)
        was_whole = view is not None and view.whole
        if view is not None:
            view.whole = False
        try:
            end, stamp = self._write(entry, body)
        except KeelError:
            if view is not None:
                view.whole = was_whole
            raise
        self._ends.append((end, entry.entry))
        while self._ends and self._ends[0][0] <= self._safety.upto:
            self._ends.popleft()
        if objects := wire.objects_of(entry):
            self._objects.claims.difference_update(objects)
            self._safety.entry_written(end, entry.flow, objects, stamp)
        if view is not None and was_whole:
            view.add_own(entry, stamp, self._seen())
        self._begun(entry) if entry.status in _BEGUN else self._running.discard(entry.entry)
        if synced:
            self._acknowledge(entry, end)
        # That a step begins, or came back, holds no value.
        self._flusher.touch(hurry=not (is_replay(entry) or entry.status is Status.RUNNING))

    def put(self, parts: Iterable[memoryview | bytes]) -> Digest:
        """Write one object (the parts joined) and return its digest. Equal content is written once."""
        self._awake()
        try:
            self._writer.ground()
        except StartedOverError:
            self._begin_anew()
        self._objects.run = self._writer.run
        try:
            digest = self._objects.put(parts)
        except OSError as error:
            raise self._writer.failed(error) from error
        if self._objects.unsafe:
            self._flusher.touch()
        return digest

    def blob(self, content: bytes | memoryview) -> Blob:
        """Small content inline, larger content as an object."""
        size = len(content) if isinstance(content, bytes) else content.nbytes
        if size <= INLINE_MAX:
            return Blob(size, inline=bytes(content))
        return Blob(size, object=self.put([content]))

    def flush(self, timeout_s: float | None = None) -> bool:
        """Make everything written so far power-safe; False if that took longer than the timeout, or failed."""
        if self._closed or self._forked is not None:
            return not self.unsynced
        if timeout_s is None:
            self._sync()
        else:
            syncing = threading.Thread(target=self._sync, name="keel-flush-now", daemon=True)
            syncing.start()
            syncing.join(timeout_s)
        return not self.unsynced

    def request_shutdown(self) -> None:
        """Note that the kernel was asked to stop. May come from another thread, or from a signal."""
        if self._closed or self._forked is not None or self._writer.segment is None:
            return
        self._ask_unwritten = True
        # A signal may have come while this very thread holds the lock: then the flush thread writes the frame.
        if self._writer.lock.acquire(timeout=0.2):
            try:
                self._write_ask()
            finally:
                self._writer.lock.release()
        self._flusher.touch()

    def close(self, *, clean: bool) -> None:
        """End the run. ``clean`` writes the closing frame. Safe to call twice."""
        if self._closed or self._forked is not None:
            return
        self._closed = True
        atexit.unregister(self._at_exit)
        stopped = self._flusher.stop(_STOP_S) and self._barrier.close()
        if self._writer.segment is not None:
            if stopped:
                self._sync()
                self._safety.vouch()
            self._writer.finish(clean=clean, release=stopped)
            self._flusher.last_ingest(wanted=self._writer.written > 0)
        self._forget_views()

    # Reading

    def records(self, flow: FlowId) -> FlowRecords:
        """What is recorded of a flow, other kernels' newest entries included."""
        self._awake()
        with spoken(self._place.path):
            view = self._view(flow)
            records = view.records()
        self._writer.see(view.log.newest)
        return records

    def read(self, blob: Blob) -> bytes:
        """The content of a blob, checked against its digest."""
        with spoken(self._place.path):
            return self._objects.content(blob)

    def map(self, digest: Digest) -> memoryview:
        """An object as private copy-on-write memory: writable, the file is never changed.

        Checked first unless a synced frame vouches for it, on a local disk, and the file was not touched since
        (DESIGN 7). So never unpickle from it; for that there is ``read``.
        """
        self._safety.settle(self._log)
        with spoken(self._place.path):
            memory = self._objects.map(digest)
        self._checked_some()
        return memory

    def check(self, digest: Digest) -> None:
        """Compare an object with its digest, whoever vouches for it. Raises DamagedError (E051)."""
        with spoken(self._place.path):
            self._objects.check(digest)
        self._checked_some()

    def trust(self, flow: FlowId) -> int:
        """Add the owner's seal to every entry of a flow that lacks it; how many. The older seals stay valid.

        Raises what ``append`` raises.
        """
        self._awake()
        with spoken(self._place.path):
            foreign = self._view(flow).untrusted_bodies()
        for body in foreign:
            self._writer.write(Mark.SEAL, body)
        self._views.pop(flow).close()  # attached anew, it finds the seals
        self._flusher.touch()
        return len(foreign)

    # The ground under it

    def _write(self, entry: Entry, body: bytes) -> tuple[int, int]:
        # Losing a retirement would bring back what a person rejected: one flipped bit must not be able to.
        copies = 2 if entry.kind is Kind.RETIRE else 1
        self._still_mine(entry)
        try:
            return self._writer.write(Mark.ENTRY, body, step=entry.step, copies=copies)
        except StartedOverError as error:
            self._begin_anew()
            self._still_mine(entry)
            if not all(map(self._objects.holds, wire.objects_of(entry))):
                raise self._gone() from error
            return self._writer.write(Mark.ENTRY, body, step=entry.step, copies=copies)

    def after_fork(self) -> None:
        """In a forked child: let go of the lock and of all files, and never write again (DESIGN 7)."""
        detail = "this process was forked from the kernel; nothing is recorded in it"
        self._forked = JournalUnreachableError(journal=self._place.path, detail=detail, case="forked")
        self._running = set()
        if self._writer.segment is not None:
            self._writer.segment.close()
        self._forget_views()

    def _awake(self) -> None:
        if self._forked is not None:
            raise self._forked
        if self._closed:
            raise JournalUnreachableError(journal=self._place.path, detail="it was closed", case="closed")

    def _seen(self) -> RunSeen:
        if self._own_seen is None or self._own_seen.start.run != self.run:
            self._own_seen = RunSeen(self._writer.start(), RunEnd.OPEN)
        return self._own_seen

    def _acknowledge(self, entry: Entry, end: int) -> None:
        self._acknowledging = end
        answered = self._barrier.wait()
        # Z24: where the disk stands still, what has happened stays written; nothing new begins.
        if self._safety.upto < end and (answered or entry.status in _BEGUN or entry.kind is Kind.AUDIT):
            raise self.problem or self._gone()

    def _still_mine(self, entry: Entry) -> None:
        if entry.run in self._writer.gone_runs:
            raise self._writer.problem or self._gone()

    def _gone(self) -> KeelError:
        detail = "its folder was deleted while this kernel used it; what comes next is recorded in a new one"
        return JournalUnreachableError(journal=self._place.path, detail=detail, case="closed")

    def _forget_views(self) -> None:
        for view in self._views.values():
            view.close()
        self._views = {}

    def _begin_anew(self) -> None:
        self._forget_views()
        self._ends.clear()
        self._objects.unsafe, self._objects.claims = {}, set()
        self._safety.forget()
        self._acknowledging = 0

    def _view(self, flow: FlowId) -> FlowView:
        view = self._views.get(flow)
        if view is None:
            view = FlowView(self._place, flow, seal=self._seal, heal=self._heal, runs=self._listed.runs)
            view.attach(own=self.run or None)
            self._views[flow] = view
        self._safety.settle(self._log)
        return view

    def _log(self, flow: FlowId) -> FlowLog | None:
        view = self._views.get(flow)
        return None if view is None else view.log

    def _heal(self) -> None:
        spawn.ingest_now(self._place.path, _HEAL_S)

    def _vouched(self, digest: Digest) -> int:
        return max((view.log.vouched.get(digest, 0) for view in self._views.values()), default=0)

    def _checked_some(self) -> None:
        if self._objects.checked and self._writer.segment is not None and not self._closed and self._forked is None:
            self._flusher.touch()

    def _settle(self) -> None:
        if self._ask_unwritten:
            self._sync()
        self._safety.group(own=self._acknowledging)

    def _sync(self) -> None:
        with self._writer.lock:
            self._write_ask()
        self._safety.sync()

    def _write_ask(self) -> None:
        if self._ask_unwritten:
            self._ask_unwritten = False
            with contextlib.suppress(OSError, GroundLostError):  # the run then counts as one that nobody asked to stop
                self._writer.written, _ = self._writer.write_locked(Mark.ASKED, b"")

    def _begun(self, entry: Entry) -> None:
        first = not self._running
        self._running.add(entry.entry)
        segment = self._writer.segment  # the flush thread looks once a second: what begins may end the kernel sooner
        if first and segment is not None and not segment.sampled_lately(self._now()):
            self._sampled(resident_bytes())

    def _sampled(self, rss: int) -> None:
        segment = self._writer.segment
        if segment is not None and not segment.closed and segment.sample(rss, self._now()):
            with contextlib.suppress(OSError), self._writer.lock:  # only a hint
                segment.tell()


def _close_at_exit(journal: weakref.ref[DiskJournal]) -> Callable[[], None]:
    def close() -> None:
        found = journal()
        if found is not None:
            found.close(clean=True)

    return close
