"""Waits for the disk, and no longer than its patience (Z24).

A sync of a disk that stands still cannot be called off. So a thread of its own waits for it; who needs the
acknowledgement waits beside it, and goes on without one when that takes too long.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final

from keel_notebook.errors import JournalUnreachableError, KeelError

PATIENCE_S: Final = 5.0


class Barrier:
    """One thread that syncs, started when it is first needed, for whoever asks. ``sync`` must not raise."""

    def __init__(self, sync: Callable[[], None], folder: str) -> None:
        self.patience_s = PATIENCE_S
        self.stalls = 0
        """How often an acknowledgement did not come in time."""
        self._sync = sync
        self._folder = folder
        self._asked: SimpleQueue[Any] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._late: Any = None

    @property
    def stands(self) -> bool:
        """Whether the disk has still not answered what it did not answer in time."""
        return self._late is not None and self._late.locked()

    @property
    def problem(self) -> KeelError | None:
        """The same as an error that says it."""
        if not self.stands:
            return None
        detail = f"the disk has not answered for {self.patience_s:g} s; a power cut would lose the newest records"
        return JournalUnreachableError(journal=self._folder, detail=detail)

    def wait(self) -> bool:
        """Sync what is written now; whether that was acknowledged. Never waits for a disk that is known to stand."""
        if self.stands:
            return False
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name="keel-sync", daemon=True)
            self._thread.start()
        answer = threading.Lock()  # an Event costs three times as much, and this is on the way of every guarded call
        answer.acquire()
        self._asked.put(answer)
        if answer.acquire(timeout=self.patience_s):
            return True
        self._late = answer
        self.stalls += 1
        return False

    def close(self) -> bool:
        """End the thread; whether it answers."""
        if self._thread is not None:
            self._asked.put(None)
        return not self.stands

    def _loop(self) -> None:
        while (answer := self._asked.get()) is not None:
            self._sync()
            answer.release()
