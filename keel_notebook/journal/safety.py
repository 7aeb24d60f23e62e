"""What is power-safe: groups of entries are synced after their objects, and a synced frame says so (DESIGN 7)."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable

from keel_notebook.core.model import Digest, FlowId
from keel_notebook.errors import KeelError
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
        self._waiting: deque[tuple[int, FlowId, tuple[Digest, ...]]] = deque()
        self._vouched: deque[tuple[FlowId, tuple[Digest, ...], int]] = deque()
        self._stamp = 0

    def entry_written(self, end: int, flow: FlowId, objects: tuple[Digest, ...]) -> None:
        """An entry that names objects now ends at offset ``end``."""
        self._waiting.append((end, flow, objects))

    def forget(self) -> None:
        """The segment is another one now."""
        self.upto = 0
        self._waiting.clear()
        self._vouched.clear()

    def settle(self, log_of: Callable[[FlowId], FlowLog | None]) -> None:
        """Tell the logs of this kernel what has become power-safe."""
        while self._waiting and self._waiting[0][0] <= self.upto:
            _, flow, objects = self._waiting.popleft()
            self._vouched.append((flow, objects, self._stamp))
        while self._vouched:
            flow, objects, stamp = self._vouched.popleft()
            if (log := log_of(flow)) is not None:
                log.vouch(objects, stamp)

    def sync(self) -> None:
        """Make everything written until now power-safe: objects, then entries, then the frame that vouches.

        A failure is kept in ``failure``: the system may have dropped what it could not write, so that nothing
        of this run may be vouched for any more.
        """
        with self._one_at_a_time:
            segment = self._writer.segment
            if segment is None or segment.closed or self.failure is not None:
                return
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
                    self._vouch(upto, tuple(checked))
                    segment.tell()

    def _vouch(self, upto: int, checked: tuple[Digest, ...]) -> None:
        _, self._stamp = self._writer.write_locked(Mark.SYNCED, wire.pack(upto))
        for flow in self._flows() if checked else ():
            _, stamp = self._writer.write_locked(Mark.CHECKED, wire.pack([flow, list(checked)]))
            self._vouched.append((flow, checked, stamp))
