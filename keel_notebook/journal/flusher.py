"""The flush thread: makes what was written power-safe, samples memory, and starts ingests at rest (DESIGN 7).

It never touches the notebook's objects and never opens DuckDB, so it can be left behind at any moment.
"""

from __future__ import annotations

import os
import subprocess  # only the type of the child that spawn started
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

from msgspec import Struct

from keel_notebook.core.ports import Clock
from keel_notebook.journal import spawn

GATHER_S: Final = 0.004
"""How long a group gathers before it is made safe: small entries are safe within 10 ms."""
LAZY_S: Final = 0.1
"""The same where nothing is lost with what was written: a Run All of replays has a group in each cell otherwise."""
ACTIVE_S: Final = 1.0
"""After a group the thread looks by itself for so long: to be woken costs a cell more than all that it writes."""
SAMPLE_S: Final = 1.0
RETRY_S: Final = 60.0
BUSY_PAUSE_S: Final = 5.0
"""Between two ingests while something is running: the processor belongs to the notebook."""
_REAP_S: Final = 0.1
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Duties(Struct, frozen=True):
    """What the thread does for a journal. Each takes the journal's lock itself where it needs it."""

    sync: Callable[[], None]
    running: Callable[[], bool]
    """Whether something is being run right now: then memory is sampled."""
    sampled: Callable[[int], None]
    """Takes the kernel's memory in bytes."""
    failed: Callable[[Exception], None]
    """Takes what should never have happened: the thread ends, and nothing is made safe by itself any more."""


class Flusher:
    """One thread per journal, started with the first append."""

    def __init__(self, duties: Duties, *, clock: Clock, folder: str, rest_s: float | None, budget: str = "") -> None:
        self._duties = duties
        self._clock = clock
        self._folder = folder
        self._rest_s = rest_s
        self._more = [f"--budget={budget}"] if budget else []
        self._wake: SimpleQueue[None] = SimpleQueue()  # may be put to from inside itself: signals, finalizers
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._touched = self._hurried = False
        self._looks_at = float("-inf")
        """When the thread, as it waits, looks by itself."""
        self._quiet_since = float("-inf")
        self._sampled_at = 0.0
        self._ingest_due = False
        self._not_before = 0.0
        self._started_at = float("-inf")
        self._backoff_s = 1.0
        self._child: subprocess.Popen[bytes] | None = None

    def touch(self, *, hurry: bool = True) -> None:
        """Something was written. Without ``hurry`` it may wait for a group that others are in a hurry for."""
        if not self._touched or (hurry and not self._hurried):
            self._hurried = self._hurried or hurry
            self._touched = True
            if hurry or not 0 <= self._looks_at - self._clock.monotonic() <= LAZY_S:
                self._wake.put(None)
            if not self._started() and not self._stopping:
                self._thread = threading.Thread(target=self._loop, name="keel-flush", daemon=True)
                self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """End the thread; whether it ended in time. It may be inside one slow sync."""
        self._stopping = True
        self._wake.put(None)
        if self._thread is None or not self._started() or self._thread is threading.current_thread():
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _started(self) -> bool:
        # An interrupt may have come between making the thread and starting it.
        return self._thread is not None and self._thread.ident is not None

    def last_ingest(self, *, wanted: bool) -> None:
        """After ``stop``: start the ingest that outlives the kernel, if one is wanted or was still due."""
        if self._child is not None:
            running = self._child.poll() is None
            spawn.leave(self._child)
            # A running one may have listed the inbox before the last frames; the next waits for its lock.
            wanted = wanted or running
        if self._rest_s is not None and (wanted or self._ingest_due):
            try:
                spawn.leave(spawn.start_ingest(self._folder, *self._more))
            except OSError:
                return  # everything is in the segments; the next kernel's ingest takes it up
            finally:
                self._ingest_due = False

    def _loop(self) -> None:
        try:
            while not self._stopping:
                woken = self._waits(self._pause())
                if not self._stopping:
                    self._once(woken=woken)
        except Exception as error:  # noqa: BLE001 - a thread that ended silently would look like one with nothing to do
            self._duties.failed(error)

    def _waits(self, pause_s: float | None) -> bool:
        """Whether somebody woke the thread before it looks by itself."""
        self._looks_at = float("inf") if pause_s is None else self._clock.monotonic() + pause_s
        try:
            self._wake.get(timeout=pause_s)
        except Empty:
            return False
        return True

    def _once(self, *, woken: bool) -> None:
        if self._touched and not self._hurried and woken:
            self._waits(LAZY_S)
        if self._touched:
            time.sleep(GATHER_S)
            self._hurried = self._touched = False  # in this order: who hurries in between is in this group
            self._quiet_since = self._clock.monotonic()
            self._ingest_due = self._rest_s is not None
            self._duties.sync()
        if self._duties.running():
            self._sample()
        self._ingest_at_rest()

    def _pause(self) -> float | None:
        # Seconds until something is due without being woken.
        pauses = []
        if self._touched:
            return 0.0 if self._hurried else LAZY_S
        now = self._clock.monotonic()
        if now - self._quiet_since < ACTIVE_S:
            pauses.append(LAZY_S)
        if self._duties.running():
            pauses.append(self._sampled_at + SAMPLE_S - now)
        if self._child is not None:
            pauses.append(_REAP_S)
        elif self._ingest_due:
            pauses.append(self._rest_ends() - now)
        return max(0.001, min(pauses)) if pauses else None

    def _rest_ends(self) -> float:
        rested = max(self._quiet_since + (self._rest_s or 0.0), self._not_before)
        return max(rested, self._started_at + BUSY_PAUSE_S) if self._duties.running() else rested

    def _sample(self) -> None:
        now = self._clock.monotonic()
        if now - self._sampled_at >= SAMPLE_S:
            self._sampled_at = now
            self._duties.sampled(resident_bytes())

    def _ingest_at_rest(self) -> None:
        now = self._clock.monotonic()
        if self._child is not None:
            code = self._child.poll()
            if code is None:
                return
            self._child = None
            if code == spawn.Exit.DONE:
                self._backoff_s = 1.0
            else:  # a viewer has the file open, the disk is full, …: later, and nobody is bothered
                self._ingest_due = True
                self._not_before = now + self._backoff_s
                self._backoff_s = min(RETRY_S, self._backoff_s * 2)
        if self._ingest_due and now >= self._rest_ends():
            self._ingest_due = False
            self._started_at = now
            try:
                self._child = spawn.start_ingest(self._folder)
            except OSError:
                self._ingest_due = True
                self._not_before = now + RETRY_S


def resident_bytes() -> int:
    """Memory that this process has in RAM now."""
    try:
        fd = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(fd, 256).split()[1]) * _PAGE
        finally:
            os.close(fd)
    except OSError:
        import psutil  # noqa: PLC0415 - 25 ms, and only needed where there is no /proc

        return int(psutil.Process().memory_info().rss)
