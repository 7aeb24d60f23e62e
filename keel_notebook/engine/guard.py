"""Holds a flow's lease while guarded work runs (DESIGN 5, Lease; K32-K36, O12-O15, O19).

The lease is taken at the first guarded step or call and given back after the last one that runs. While it is held a
thread of its own renews it (an event-loop timer starves while a cell blocks), and before every result is recorded
the holder is looked up again: who lost it records nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from keel_notebook.engine.lease import TTL_S, Lease
from keel_notebook.errors import LeaseError

BEAT_S: Final = TTL_S / 3


class Guard:
    """The lease of one flow, for whoever in this kernel needs it. Any thread."""

    def __init__(self, lease: Lease, *, journal: Any, beat_s: float = BEAT_S) -> None:
        self._lease = lease
        self._journal = journal
        self._beat_s = beat_s
        self._holds = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.said: list[str] = []
        """Renewals that failed, for the log (K36): the check before every record is what protects."""

    @contextmanager
    def hold(self) -> Iterator[int]:
        """Have the lease for as long as the block runs; gives its fence. Raises LeaseError (E030)."""
        self.take()
        try:
            yield self._lease.fence
        finally:
            self.give_back()

    def take(self) -> bool:
        """Take the lease, or count one more user of it; whether another may have held it since we last did.

        Then what was read before may be out of date. Raises LeaseError (E030).
        """
        with self._lock:
            others = False
            if self._holds == 0:
                before = self._lease.fence
                fence = self._lease.acquire()  # O16: before anything is written under it
                others = before == 0 or fence != before + 1
                self._holding(fence)
            self._holds += 1
            return others

    def take_over(self) -> None:
        """Take the lease from a holder that is stopped or on another host, and keep it until ``close``.

        Raises LeaseError (E030) where the holder runs.
        """
        with self._lock:
            if self._holds == 0:
                self._holding(self._lease.take())
            self._holds += 1

    def close(self) -> None:
        """Give the lease back, whoever still needs it: the kernel ends."""
        with self._lock:
            self._holds = min(self._holds, 1)
        if self._holds:
            self.give_back()
        with self._lock:
            self._stop.set()
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(timeout=5)

    def forget_in_child(self) -> None:
        """In a forked child: nothing is held here, and no thread of the parent's will ever let go of a lock."""
        self._lock = threading.Lock()
        self._holds, self._thread = 0, None
        self._lease.forget_in_child()

    def _holding(self, fence: int) -> None:
        self._journal.fence = fence  # O12: every frame from now on carries it
        if self._thread is None:
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._beat, args=(self._stop,), name="keel-lease", daemon=True)
            self._thread.start()

    def give_back(self) -> None:
        """One user less; the last one releases the lease (O15), and nothing is renewed any more (O19)."""
        with self._lock:
            self._holds -= 1
            if not self._holds:
                self._journal.fence = 0
                self._lease.release()

    def check(self) -> None:
        """Raise LeaseError (E030) if the lease was definitely lost (K34, K35, O14).

        Definite is: another holder or another fence stands in the file. That it cannot be read, or that a renewal is
        late, is no loss: a C call that keeps the interpreter starves the heartbeat of a perfectly live holder.
        """
        try:
            lost = self._lease.lost()
        except (OSError, ValueError) as error:
            self.said.append(type(error).__name__)
            return
        if lost is not None:
            raise lost

    def _beat(self, stop: threading.Event) -> None:
        # It outlives the single call, because starting a thread takes longer than a call; not the time between steps.
        while not stop.wait(self._beat_s):
            with self._lock:
                if stop.is_set():
                    return
                if not self._holds:
                    self._thread = None
                    return
                try:
                    self._lease.renew()
                except (LeaseError, OSError, ValueError) as error:
                    self.said.append(type(error).__name__)
