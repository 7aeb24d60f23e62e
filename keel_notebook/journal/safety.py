"""What is power-safe: groups of entries are synced after their objects, and a synced frame says so (DESIGN 7)."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable

from keel_notebook.core.model import Digest, FlowId
from keel_notebook.errors import InternalError, KeelError
from keel_notebook.journal import wire
from keel_notebook.journal.faults import in_words
from keel_notebook.journal.flowlog import FlowLog
from keel_notebook.journal.frames import Mark
from keel_notebook.journal.objects import Objects
from keel_notebook.journal.segment import GroundLostError
from keel_notebook.journal.writer import Writer


class Safety:
    """Makes one kernel's writing power-safe. ``sync`` may run in any thread; the rest is for the main thread."""

    def __init__(self, writer: Writer, objects: Objects, *, folder: str, flows: Callable[[], Iterable[FlowId]]) -> None:
        self.upto = 0
        """Offset in the segment up to which everything is power-safe, payloads included."""
        self.failure: KeelError | None = None
        """Why nothing can be made power-safe any more."""
        self._writer = writer
        self._objects = objects
        self._folder = folder
        self._flows = flows
        self._one_at_a_time = threading.Lock()
        self._told = 0
        self._waiting: deque[tuple[int, FlowId, tuple[Digest, ...], int]] = deque()
        self._checked: deque[tuple[FlowId, Digest, int]] = deque()

    def entry_written(self, end: int, flow: FlowId, objects: tuple[Digest, ...], stamp: int) -> None:
        """An entry of this stamp that names objects now ends at offset ``end``."""
        self._waiting.append((end, flow, objects, stamp))

    def failed(self, error: Exception) -> None:
        """Nothing of this run can be vouched for any more, and why."""
        self.failure = InternalError(doing="made the journal power-safe", kind=type(error).__name__)

    def is_safe(self) -> bool:
        """Whether everything written is power-safe, and vouched for."""
        return self._writer.written <= self.upto and not self._objects.unsafe and not self._objects.checked

    def forget(self) -> None:
        """The segment is another one now."""
        self.upto = self._told = 0
        self._waiting.clear()
        self._checked.clear()

    def settle(self, log_of: Callable[[FlowId], FlowLog | None]) -> None:
        """Tell the logs of this kernel what has become power-safe."""
        while self._waiting and self._waiting[0][0] <= self.upto:
            _, flow, objects, stamp = self._waiting.popleft()
            if (log := log_of(flow)) is not None:
                log.vouch(objects, stamp)
        while self._checked:
            flow, digest, stamp = self._checked.popleft()
            if (log := log_of(flow)) is not None:
                log.vouch((digest,), stamp)

    def sync(self, *, vouch: bool = True) -> None:
        """Make everything written until now power-safe: objects, then entries, then the frame that vouches.

        ``vouch``: False leaves that frame to ``vouch``, where no objects are waiting for it. A failure is kept in
        ``failure``: the system may have dropped what it could not write, so that nothing
        of this run may be vouched for any more.
        """
        with self._one_at_a_time:
            segment = self._writer.segment
            if segment is None or segment.closed or self.failure is not None:
                return
            if self.is_safe():
                return  # another thread has just done it
            with self._writer.lock:
                upto = segment.size
            unsafe = dict(self._objects.unsafe)
            checked, self._objects.checked = self._objects.checked, []
            try:
                self._objects.make_safe(unsafe)
                segment.sync()
            except OSError as error:
                if segment is self._writer.segment:
                    self.failure = in_words(error, self._folder)
                return
            for digest, number in unsafe.items():
                if self._objects.unsafe.get(digest) == number:
                    del self._objects.unsafe[digest]
            with contextlib.suppress(OSError, GroundLostError), self._writer.lock:
                # Safe also without its frame, which only saves the next kernel a look at the objects.
                if segment is self._writer.segment:
                    self.upto = upto
                    if vouch or self._waiting or checked:
                        self._vouch(upto, checked)
                    segment.tell()  # at once: a tail that is lost from here on was safe, and that is to be noticed

    def group(self, *, own: int) -> None:
        """What follows a group of entries: they are synced, unless a synced append that ends at ``own`` does it."""
        if self._objects.unsafe or self._objects.checked or self._writer.written != own:
            self.sync()
        self.vouch()

    def vouch(self) -> None:
        """Write that what was synced without a word is power-safe. Nothing is synced for it."""
        segment = self._writer.segment
        if segment is None or segment.closed or self._told >= self.upto:
            return
        with contextlib.suppress(OSError, GroundLostError), self._writer.lock:
            if segment is self._writer.segment:
                self._vouch(self.upto, [])
                segment.tell()

    def _vouch(self, upto: int, checked: list[tuple[Digest, int]]) -> None:
        self._told = upto
        self._writer.write_locked(Mark.SYNCED, wire.pack(upto))
        for flow in self._flows() if checked else ():
            self._writer.write_locked(Mark.CHECKED, wire.pack([flow, checked]))
            self._checked.extend((flow, digest, stamp) for digest, stamp in checked)
