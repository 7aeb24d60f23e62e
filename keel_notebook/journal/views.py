"""One flow as a kernel or reader sees it: attached to once from its head, then kept up with the segments.

The order that keeps every entry in sight: first list the inbox, then read the index, then the head, then the
segments. An ingest goes the other way: record file, heads, index, and only then are segments deleted. So an
entry is in the head, or its segment is still there; if neither is found, the look-up starts anew.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from typing import Final

from keel_notebook.core.model import Entry, FlowId
from keel_notebook.core.ports import FlowRecords, RunSeen, Seal
from keel_notebook.core.quiet import quiet_gc
from keel_notebook.errors import JournalUnreachableError
from keel_notebook.journal import heads, wire
from keel_notebook.journal.cursor import Cursor, Resume
from keel_notebook.journal.damage import note, set_aside
from keel_notebook.journal.flowlog import FlowLog, Written, take_in
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.frames import Fault
from keel_notebook.journal.heads import Head, Index
from keel_notebook.journal.listing import stamp_of
from keel_notebook.journal.liveness import Life

_TRIES: Final = 20
Heal = Callable[[], None]
"""Has the heads rebuilt from the record file. Raises JournalUnreachableError."""
Runs = Callable[[], list[int]]
"""The runs that have a segment."""


class FlowView:
    """Everything recorded of one flow. Methods raise OSError, and JournalUnreachableError where heads are lost."""

    def __init__(  # noqa: PLR0913 - all but the place by name
        self,
        place: Folder,
        flow: FlowId,
        *,
        seal: Seal | None,
        heal: Heal,
        runs: Runs | None = None,
        keep_bodies: bool = False,
    ) -> None:
        self.log = FlowLog(flow, seal=seal, keep_bodies=keep_bodies)
        self.total = 0
        """Entries of the flow that were in the record file when the head was written."""
        self._place = place
        self._flow = flow
        self._runs = runs or place.runs
        self._seal = seal
        self._heal = heal
        self._keep_bodies = keep_bodies
        self._own: int | None = None
        self._cursors: dict[int, Cursor] = {}
        self._finished: set[int] = set()
        self._top = 0
        self._listed: list[int] | None = None
        self._index_stamp: tuple[int, ...] = ()
        self._lost_sight = False
        self.whole = False
        """Whether ``log`` holds everything read so far: not if an interrupt came while it was being changed."""
        self._current: FlowRecords | None = None
        self._current_at = -1

    def attach(self, *, own: int | None) -> None:
        """Read the flow. ``own`` is the run whose entries this kernel adds by itself from now on."""
        self._own = own
        refusal: JournalUnreachableError | None = None
        healed = False
        for _ in range(_TRIES):
            self._forget()
            try:
                with quiet_gc():  # the entries all stay
                    self._read_all()
            except FileNotFoundError:
                continue  # a segment was ingested and deleted after the inbox was listed
            except heads.Unreadable as error:
                if healed:
                    detail = f"its heads cannot be rebuilt ({error})"
                    raise refusal or JournalUnreachableError(
                        journal=self._place.path, detail=detail, case="heads"
                    ) from error
                try:
                    self._heal()
                except JournalUnreachableError as found:
                    refusal = found  # it may have rebuilt the heads all the same
                healed = True
                continue
            if own is not None and own in self._cursors:
                self._cursors.pop(own).close()
            self.whole = True
            return
        raise JournalUnreachableError(
            journal=self._place.path, detail="it changes faster than it can be read", case="heads"
        )

    def records(self) -> FlowRecords:
        """What is recorded of the flow now."""
        if not self.whole:
            self.attach(own=self._own)
        self.whole = False
        self._keep_up()
        self.whole = True
        if self._current is None or self._current_at != self.log.changes:
            log = self.log
            self._current = FlowRecords(self._flow, log.entries(), dict(log.runs), frozenset(log.untrusted))
            self._current_at = log.changes
        return self._current

    def add_own(self, entry: Entry, stamp: int, seen: RunSeen) -> None:
        """Take in an entry that this kernel has just appended in its run ``seen``.

        ``whole`` is taken back before the append, so that an interrupt in between is no gap.
        """
        self.log.add_own(entry, stamp)
        self.log.see(seen.start.run, seen)
        self.whole = True

    def untrusted_bodies(self) -> list[bytes]:
        """What lacks the owner's seal, as it was written."""
        whole = FlowView(self._place, self._flow, seal=self._seal, heal=self._heal, keep_bodies=True)
        whole.attach(own=None)
        bodies = [written.body for written in whole.log.written() if written.entry.entry in whole.log.untrusted]
        whole.close()
        return bodies

    def close(self) -> None:
        """Let go of all files."""
        self._forget()

    def _keep_up(self) -> None:
        runs = self._runs()
        if self._passed_over(runs):
            self.attach(own=self._own)
            return
        for run in runs:
            if run not in self._cursors and run not in self._finished and run != self._own:
                try:
                    self._cursors[run] = Cursor(self._place, run)
                except FileNotFoundError:
                    self.attach(own=self._own)
                    return
        self._top = max(self._top, *runs, 0)
        self._read(self._cursors.values())
        if self._lost_sight:  # ended badly, ingested and deleted since the last look: its head knows how it ended
            self.attach(own=self._own)

    def _passed_over(self, runs: list[int]) -> bool:
        # Whether a run began, ended and was ingested since the last look: then only the head knows it.
        if runs is self._listed:
            return False  # the very list of the last look: the inbox has not changed, so no run began
        self._listed = runs
        stamp = stamp_of(self._place.index)
        if stamp == self._index_stamp:
            return False
        self._index_stamp = stamp
        index = self._index()
        there = set(runs)
        return any(run not in there and run != self._own for run in range(self._top + 1, index.top + 1))

    def _read_all(self) -> None:
        runs = self._place.runs()
        self._index_stamp = stamp_of(self._place.index)
        index = self._index()
        head = self._head(index)
        if head is not None:
            self._take_head(head)
        for run in runs:
            self._cursors[run] = Cursor(self._place, run, _resumes(run, index, head))
            self._read([self._cursors[run]])  # at once: those of dead kernels need not stay open
        self._top = max([index.top, *runs])

    def _read(self, cursors: Iterable[Cursor]) -> None:
        for cursor in list(cursors):
            faults = len(cursor.faults)
            alive = cursor.life()  # asked before reading: what a dead kernel wrote is there by now
            for batch in cursor.read(dead=alive is Life.GONE):
                take_in(batch, cursor, self._wanted, seal=self._seal)
            for fault in cursor.faults[faults:]:
                note(self._place, said(cursor.run, fault))
            if alive is Life.GONE and cursor.deleted() and not cursor.ended:
                self._lost_sight = self._lost_sight or self._flow in cursor.flows
            elif self._flow in cursor.flows:
                self.log.see(cursor.run, cursor.seen(alive))
            if alive is Life.GONE:
                cursor.close()
                self._finished.add(cursor.run)
                del self._cursors[cursor.run]

    def _wanted(self, flow: FlowId) -> FlowLog | None:
        return self.log if flow == self._flow else None

    def _index(self) -> Index:
        try:
            return heads.read_index(self._place.index)
        except FileNotFoundError:
            if os.path.exists(self._place.record):
                raise heads.Unreadable("the index is gone") from None
            return Index()

    def _head(self, index: Index) -> Head | None:
        path = self._place.head(self._flow)
        try:
            return heads.read_head(path, self._flow)
        except FileNotFoundError:
            if self._flow in index.flows:
                raise heads.Unreadable("the head is gone") from None
            return None
        except heads.Unreadable as error:
            with contextlib.suppress(OSError):  # an ingest rebuilds what is not there
                set_aside(self._place, [path], f"The head of flow {self._flow} was damaged ({error}).")
            raise

    def _take_head(self, head: Head) -> None:
        self.total = head.total
        try:
            for item in head.entries:
                entry = wire.entry_in(item.body)
                self.log.add(Written(item.stamp, item.fence, item.macs, item.body, entry))
        except wire.BodyError as error:
            raise JournalUnreachableError(
                journal=self._place.path,
                detail=f"the head of this flow holds what this version cannot read ({error})",
                case="newer",
            ) from error
        for run, seen in head.runs.items():
            self.log.see(run, seen)
        for digest, stamp in head.vouched.items():
            self.log.vouch((digest,), stamp)

    def _forget(self) -> None:
        for cursor in self._cursors.values():
            cursor.close()
        self._cursors.clear()
        self._finished.clear()
        changes = self.log.changes
        self.log = FlowLog(self._flow, seal=self._seal, keep_bodies=self._keep_bodies)
        self.log.changes = changes + 1
        self.whole = False
        self._lost_sight = False


def said(run: int, fault: Fault) -> str:
    """A fault of a segment, for people."""
    where = f"bytes {fault.start} to {fault.end} of its segment"
    return f"run {run}: {fault.detail} ({where}); the entries there are lost, all others are used."


def _resumes(run: int, index: Index, head: Head | None) -> list[Resume]:
    found = [index.resumes.get(run), None if head is None else head.resumes.get(run)]
    return [resume for resume in found if resume is not None]
