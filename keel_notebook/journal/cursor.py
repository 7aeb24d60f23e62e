"""Reads one segment, again and again, from where it stopped the last time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from keel_notebook.core.model import Digest, FlowId
from keel_notebook.core.ports import RunSeen, RunStart
from keel_notebook.errors import JournalUnreachableError
from keel_notebook.journal import frames, liveness, wire
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.frames import Fault, Frame, Mark
from keel_notebook.journal.liveness import Life
from keel_notebook.journal.sidefile import Side, read_side

_WINDOW: Final = 16 << 20
_FIRST: Final = 16 << 10
"""Bytes that hold a segment's head and first frame."""


class Resume(Struct, frozen=True):
    """Where a reader may go on in a segment, because everything before is in the heads."""

    ident: bytes
    at: int
    link: bytes
    seen: RunSeen
    """What the heads say of the run."""
    space: int
    asked: bool = False
    ended: bool = False
    flows: tuple[FlowId, ...] = ()
    """Flows that have entries before ``at``: their heads name this run."""

    def to_wire(self) -> list[Any]:
        """As a MessagePack-able list."""
        seen = wire.run_to_wire(self.seen)
        return [self.ident, self.at, self.link, seen, self.space, self.asked, self.ended, list(self.flows)]

    @classmethod
    def from_wire(cls, raw: Any) -> Resume:
        """The value behind ``to_wire``. Raises BodyError."""
        try:
            ident, at, link, seen, space, asked, ended, flows = raw
        except (TypeError, ValueError) as error:
            raise wire.BodyError(type(error).__name__) from error
        return cls(ident, at, link, wire.run_from_wire(seen), space, asked, ended, tuple(flows))


class Cursor:
    """The reading end of one segment. Every method raises OSError where the segment cannot be read."""

    def __init__(self, place: Folder, run: int, resumes: Iterable[Resume] = ()) -> None:
        self.run = run
        self.at = 0
        self.faults: list[Fault] = []
        self.asked = self.ended = False
        self.flows: set[FlowId] = set()
        self.unsynced: deque[tuple[int, FlowId, tuple[Digest, ...], int]] = deque()
        """Entries with objects that no synced frame has vouched for yet: end offset, flow, objects, stamp."""
        self._place = place
        self._resumes = tuple(resumes)
        self._fd: int | None = os.open(place.segment(run), os.O_RDONLY)
        self._ident: bytes | None = None
        self._start: RunStart | None = None
        self._space = 0
        self._link = b""
        self._safe: tuple[int, bytes] = (0, b"")
        self._behind_safe: deque[tuple[int, bytes]] = deque()
        self._promised = 0
        self._seen_alive = False
        self._side = Side(b"", 0, 0)

    @property
    def ident(self) -> bytes | None:
        """The segment's id, once it was read."""
        return self._ident

    @property
    def closed(self) -> bool:
        """Whether nothing more is going to be read."""
        return self._fd is None

    def close(self) -> None:
        """Stop reading."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def size(self) -> int:
        """Bytes in the segment now."""
        return 0 if self._fd is None else os.fstat(self._fd).st_size

    def deleted(self) -> bool:
        """Whether the segment lost its name: it was ingested to its end, or a person deleted it."""
        return self._fd is not None and os.fstat(self._fd).st_nlink == 0

    def life(self) -> Life:
        """Whether the kernel that writes the segment lives."""
        if self._fd is None:
            return Life.GONE
        if self._ident is None:
            self._begin(os.fstat(self._fd).st_size)  # who writes is said in the first frame
        locked = liveness.held(self._fd)
        if locked and self._seen_alive and liveness.still_there(self.start.pid):
            return Life.ALIVE
        alive = liveness.life(self.start, self._space, locked)
        self._seen_alive = alive is Life.ALIVE and liveness.is_here(self.start, self._space)
        return alive

    @property
    def start(self) -> RunStart:
        """Who writes the segment."""
        return self._start or wire.unknown_start(self.run)

    def side(self) -> Side:
        """What the side file says, or said when it was last there."""
        found = read_side(self._place.side(self.run), self._ident or b"-")
        self._side = max(self._side, found, key=lambda side: side.sure) if found.rss == 0 else found
        return self._side

    def seen(self, alive: Life) -> RunSeen:
        """The run, given what is known of its kernel."""
        end = liveness.end_of(self.start, alive, asked=self.asked, ended=self.ended)
        if alive is Life.ALIVE:
            return RunSeen(self.start, end)
        side = self.side()
        return RunSeen(self.start, end, side.rss, side.at)

    def resume(self, seen: RunSeen) -> Resume | None:
        """Where the next reader may go on: behind the last entry that a synced frame vouches for.

        What lies behind is read twice, which changes nothing; so the synced frame finds its entries.
        """
        if self._ident is None:
            return None
        at, link = self._safe
        flows = tuple(sorted(self.flows))
        return Resume(self._ident, at, link, seen, self._space, self.asked, self.ended, flows)

    def resume_at_end(self) -> None:
        """Let the next reader go on behind everything read: what can be vouched for is vouched for."""
        self._safe = (self.at, self._link)
        self._behind_safe.clear()

    def read(self, *, dead: bool) -> Iterator[list[Frame]]:
        """New frames, in batches. ``dead``: no kernel writes any more, so that the tail can be judged."""
        while self._fd is not None:
            size = os.fstat(self._fd).st_size
            if self._ident is None and not self._begin(size):
                return
            window = _WINDOW
            while (batch := self._scan(size, window, dead=dead)) is None:
                window *= 2
            if not batch:
                return
            yield batch

    def _begin(self, size: int) -> bool:
        assert self._fd is not None
        raw = os.pread(self._fd, _FIRST, 0)
        ident = frames.read_head(raw)
        if ident is None or frames.first_frame(raw, ident=ident) is None:
            side = read_side(self._place.side(self.run), None)
            others = {side.ident, raw[8 : frames.HEAD_BYTES], *(resume.ident for resume in self._resumes)}
            known = next((other for other in others if frames.first_frame(raw, ident=other)), None)
            if known is not None:
                self.faults.append(Fault(0, frames.HEAD_BYTES, "its head is damaged"))
                ident = known
            elif ident is None:
                self._no_head(raw, max(size, side.sure))
        if ident is None:
            return False
        self._ident = ident
        if (first := frames.first_frame(raw, ident=ident)) is not None:
            self._note(first)
        self.at, self._link = frames.HEAD_BYTES, frames.first_link(ident)
        fitting = [resume for resume in self._resumes if resume.ident == ident]
        if fitting:
            found = max(fitting, key=lambda resume: resume.at)
            self.at, self._link = found.at, found.link
            self._start, self._space = found.seen.start, found.space
            self.asked = any(resume.asked for resume in fitting)
            self.ended = any(resume.ended for resume in fitting)
            self.flows.update(flow for resume in fitting for flow in resume.flows)
        self._promised = self.at
        self._safe = (self.at, self._link)
        return True

    def _no_head(self, raw: bytes, end: int) -> None:
        version = len(frames.SEGMENT_MAGIC) - 1
        ours = raw[:version] == frames.SEGMENT_MAGIC[:version]
        if ours and len(raw) > version and raw[version] != frames.SEGMENT_MAGIC[version]:
            raise JournalUnreachableError(
                journal=self._place.path, detail="a newer version of keel wrote it", case="newer"
            )
        if end >= frames.HEAD_BYTES and not self.faults:
            self.faults.append(Fault(0, end, "the beginning is missing"))

    def _scan(self, size: int, window: int, *, dead: bool) -> list[Frame] | None:
        # The frames of the next window; None where one frame is larger than the window.
        assert self._fd is not None
        assert self._ident is not None
        raw = os.pread(self._fd, window, self.at)
        last = self.at + len(raw) >= size
        sure = max(self.side().sure, self._promised) if dead and last else 0
        found = frames.scan(raw, base=self.at, link=self._link, seed=frames.seed_of(self._ident), sure=sure)
        if not found.frames and not last:
            return None
        self.faults += [fault for fault in found.faults if fault not in self.faults]
        for frame in found.frames:
            self._behind_safe.append((frame.end, frame.link))
            self._note(frame)
        self.at, self._link = found.end, found.link
        return found.frames

    def _note(self, frame: Frame) -> None:
        match frame.mark:
            case Mark.START:
                try:
                    self._start, self._space = wire.start_from_wire(wire.unpack(frame.body))
                except wire.BodyError as error:
                    self.faults.append(Fault(frames.HEAD_BYTES, frame.end, f"its first frame is unreadable ({error})"))
            case Mark.SYNCED:
                upto = wire.upto_of(frame.body)
                while self._behind_safe and self._behind_safe[0][0] <= upto:
                    self._safe = self._behind_safe.popleft()
            case Mark.ASKED:
                self.asked = True
            case Mark.END:
                self.ended = True
            case _:
                pass
