"""The writing side of a kernel: its run number, its segment, and what happens when the folder is not usable."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Final, NoReturn

from keel_notebook.core.ports import Clock, RunStart, Seal
from keel_notebook.errors import JournalUnreachableError, KeelError
from keel_notebook.journal import heads, liveness
from keel_notebook.journal.damage import note, set_aside
from keel_notebook.journal.faults import in_words
from keel_notebook.journal.folder import SALT_BYTES, Folder
from keel_notebook.journal.frames import Mark
from keel_notebook.journal.segment import GroundLostError, Segment, claim, claim_run

_AGAIN_S: Final = 2.0


class StartedOverError(Exception):
    """The folder had been deleted or changed by somebody else; it was made anew, and what it held is gone."""


class Writer:
    """Appends frames to this kernel's segment. ``lock`` lets the flush thread write into it as well."""

    def __init__(self, place: Folder, *, clock: Clock, seal: Seal, notebook: str, cwd: str) -> None:
        self.run = 0
        self.fence = 0
        self.salt = b""
        self.problem: KeelError | None = None
        """Why nothing can be written, while that is so."""
        self.segment: Segment | None = None
        self.lock = threading.Lock()
        self.written = 0
        """Offset behind the last frame that is not about safety itself."""
        self.gone_runs = {0}
        """Run numbers that this kernel had to give up: entries that carry them are refused."""
        self._place = place
        self._clock = clock
        self._seal = seal
        self._about = (notebook, cwd)
        self._stamp = 0
        self._start: RunStart | None = None
        self._tried_at = float("-inf")
        self.open()
        if not self.salt:
            self.salt = self._salt_for_now()

    def open(self) -> None:
        """Make the folder and claim a run; on failure set ``problem``. Tried at most every two seconds."""
        if self.segment is not None:
            return
        now = self._clock.monotonic()
        if now - self._tried_at < _AGAIN_S:
            return
        self._tried_at = now
        try:
            self._place.create()
            self._settle_salt()
            self._begin(claim(self._place, floor=self._highest_run, seal=self._seal))
        except OSError as error:
            self.problem = in_words(error, self._place.path)
        except KeelError as error:
            self.problem = error

    def ground(self) -> Segment:
        """The segment, checked. Raises KeelError where there is none, StartedOverError where there is a new one."""
        self.open()
        if self.segment is None:
            raise self.problem or JournalUnreachableError(
                journal=self._place.path, detail="it is not open", case="closed"
            )
        try:
            with self.lock:
                self.segment.check_ground()
        except GroundLostError as error:
            self._start_over(str(error))
        except OSError as error:
            raise self.failed(error) from error
        return self.segment

    def write(self, mark: Mark, body: bytes, *, step: str = "", copies: int = 1) -> tuple[int, int]:
        """Write a frame; the offset behind it, and its stamp. Raises as ``ground`` does."""
        if self.segment is None:
            self.ground()
        assert self.segment is not None
        try:
            with self.lock:
                written = self.write_locked(mark, body, copies=copies)
                self.written = written[0]
        except GroundLostError as error:
            self._start_over(str(error))
        except OSError as error:
            raise self.failed(error, step=step) from error
        self.problem = None
        return written

    def write_locked(self, mark: Mark, body: bytes, *, copies: int = 1) -> tuple[int, int]:
        """``write`` for who holds the lock. Raises OSError and GroundLostError."""
        assert self.segment is not None
        self._stamp = stamp = max(int(self._clock.now() * 1e6), self._stamp + 1)
        return self.segment.append(mark, body, fence=self.fence, stamp=stamp, copies=copies), stamp

    def see(self, stamp: int) -> None:
        """What is written from now on is newer than ``stamp``, whatever the wall clock does."""
        self._stamp = max(self._stamp, stamp)

    def finish(self, *, clean: bool, release: bool) -> None:
        """End the segment, ``clean`` with its closing frame; ``release`` gives the lock back."""
        assert self.segment is not None
        # Where this fails, the run counts as one that died: no more can be said.
        with contextlib.suppress(OSError, GroundLostError), self.lock:
            if clean:
                self.write_locked(Mark.END, b"")
            if release:
                self.segment.sync()
            self.segment.tell()
        if release:
            self.segment.close()

    def failed(self, error: OSError, *, step: str = "") -> KeelError:
        """Keep what the system refused as the problem, and return it."""
        self.problem = in_words(error, self._place.path, step=step)
        return self.problem

    @property
    def size(self) -> int:
        """Bytes in the segment."""
        return 0 if self.segment is None else self.segment.size

    def start(self) -> RunStart:
        """Who writes."""
        if self._start is None or self._start.run != self.run:
            notebook, cwd = self._about
            born = liveness.born(os.getpid()) or 0.0
            self._start = RunStart(self.run, liveness.host(), os.getpid(), liveness.boot(), born, notebook, cwd)
        return self._start

    def _begin(self, segment: Segment) -> None:
        self.run = segment.run
        try:
            segment.begin(self.start())
        except BaseException:
            os.unlink(self._place.segment(segment.run))
            segment.close()
            self.run = 0
            raise
        self.segment = segment
        self.written = 0
        self.problem = None

    def _start_over(self, why: str) -> NoReturn:
        # StartedOverError, or a KeelError where the folder cannot be made anew.
        assert self.segment is not None
        run, old = self.run, self.segment
        self.segment = None
        detail = f"the segment of run {run} was lost while its kernel used it ({why})"
        try:
            self._place.create()
            if old.is_at_its_place():
                set_aside(self._place, [self._place.segment(run), self._place.side(run)], f"{detail}.")
            else:
                note(self._place, f"{detail}; what this kernel had recorded before is gone.")
            self._settle_salt()
            try:
                segment = claim_run(self._place, run, seal=self._seal)
            except FileExistsError:  # another kernel made the folder anew first, and has this number now
                self.gone_runs.add(run)
                segment = claim(self._place, floor=self._highest_run, seal=self._seal)
            self._begin(segment)
        except (OSError, KeelError) as error:
            self.gone_runs.add(run)
            self.run = 0
            self.problem = error if isinstance(error, KeelError) else in_words(error, self._place.path)
            raise self.problem from error
        finally:
            old.close()
        raise StartedOverError(why)

    def _settle_salt(self) -> None:
        try:
            found = self._place.make_salt(self.salt or os.urandom(SALT_BYTES))
        except ValueError:
            set_aside(self._place, [self._place.salt], "The salt was not whole: every recorded input differs now.")
            found = self._place.make_salt(self.salt or os.urandom(SALT_BYTES))
        if self.salt and found != self.salt:
            detail = "its folder was replaced while this kernel used it; restart the kernel"
            raise JournalUnreachableError(journal=self._place.path, detail=detail, case="closed")
        self.salt = found

    def _salt_for_now(self) -> bytes:
        # The folder cannot be written to. Its salt makes the records in it usable; without one there are none.
        try:
            return self._place.read_salt() or os.urandom(SALT_BYTES)
        except (OSError, ValueError):
            return os.urandom(SALT_BYTES)

    def _highest_run(self) -> int:
        try:
            return heads.read_index(self._place.index).top
        except (FileNotFoundError, heads.Unreadable):
            return 0  # the highest segment is never deleted, so the listing is enough
