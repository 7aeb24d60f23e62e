"""The lease of a flow: one holder at a time for what must not happen twice (DESIGN 5, Lease; O12, Z18).

Two files in ``leases/``: ``<flow>.lock``, whose ``flock`` the operating system drops on any death, and
``<flow>.json`` with holder, fence and expiry. The fence grows on every acquire, so that a kernel which was
stopped and woke up late carries an old number and can be told apart. Neither file is ever unlinked.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from keel_notebook.core.model import FlowId
from keel_notebook.core.ports import Clock
from keel_notebook.errors import LeaseError

TTL_S = 30.0
_NO_LOCKS = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS})


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lease."""

    host: str
    pid: int
    boot: str


@dataclass(frozen=True, slots=True)
class LeaseSeen:
    """The lease file as it was read. ``expires_at`` and ``since`` are wall time, seconds."""

    fence: int
    holder: Holder | None
    since: float
    expires_at: float


_NEVER = LeaseSeen(0, None, 0.0, 0.0)


class Lease:
    """The lease of one flow, as one kernel sees it."""

    def __init__(self, folder: Path, flow: FlowId, *, holder: Holder, clock: Clock) -> None:
        self._lock_path = folder / f"{flow}.lock"
        self._file_path = folder / f"{flow}.json"
        self._flow = flow
        self._holder = holder
        self._clock = clock
        self._fd: int | None = None
        self.fence = 0

    @property
    def held(self) -> bool:
        """Whether this kernel took the lease and has not released it."""
        return self._fd is not None

    def seen(self) -> LeaseSeen:
        """What the lease file says. Raises ValueError where it cannot be read: that is not "free"."""
        try:
            text = self._file_path.read_text("utf-8")
        except FileNotFoundError:
            return _NEVER
        found: Mapping[str, object] = json.loads(text)
        holder = found["holder"]
        return LeaseSeen(
            fence=int(str(found["fence"])),
            holder=Holder(**holder) if isinstance(holder, dict) else None,
            since=float(str(found["since"])),
            expires_at=float(str(found["expires_at"])),
        )

    def acquire(self) -> int:
        """Take the lease and return its fence, larger than every earlier one.

        The same holder may take it again and keeps its fence. Raises LeaseError (E030) naming who holds it.
        """
        if self._fd is not None:
            return self.fence
        self._lock_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            locked = self._flock(fd)
            seen = self.seen()
            if not locked or (locked is None and self._alive_elsewhere(seen)):
                raise self._refusal(seen)
            self.fence = seen.fence + 1
            now = self._clock.now()
            self._write(LeaseSeen(self.fence, self._holder, now, now + TTL_S))
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        return self.fence

    def renew(self) -> None:
        """Move the expiry on; never the fence (O13). Raises LeaseError where another holder took over (K34)."""
        seen = self.seen()
        if self._fd is None or seen.fence != self.fence or seen.holder != self._holder:
            raise self._refusal(seen)
        expires = max(seen.expires_at, self._clock.now() + TTL_S)
        self._write(LeaseSeen(self.fence, self._holder, seen.since, expires))

    def release(self) -> None:
        """Give the lease back. The fence stays in the file, so that the next one is larger."""
        if self._fd is None:
            return
        seen = self.seen()
        if seen.fence == self.fence and seen.holder == self._holder:
            self._write(LeaseSeen(self.fence, None, seen.since, 0.0))
        os.close(self._fd)
        self._fd = None

    def forget_in_child(self) -> None:
        """Close the inherited lock in a forked child: it must not outlive the holder (feasibility A)."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _flock(self, fd: int) -> bool | None:
        """True if locked, False if another process holds it, None where the file system has no locks."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return None
            raise
        return True

    def _alive_elsewhere(self, seen: LeaseSeen) -> bool:
        return seen.holder not in (None, self._holder) and seen.expires_at > self._clock.now()

    def _refusal(self, seen: LeaseSeen) -> LeaseError:
        who = f"pid {seen.holder.pid} on {seen.holder.host}" if seen.holder else "another kernel"
        return LeaseError(flow=self._flow, holder=who, since=f"{seen.since:.0f}")

    def _write(self, lease: LeaseSeen) -> None:
        temporary = self._file_path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps(asdict(lease)), "utf-8")
        temporary.chmod(0o600)
        temporary.replace(self._file_path)
