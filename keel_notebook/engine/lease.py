"""The lease of a flow: one holder at a time for what must not happen twice (DESIGN 5, Lease; O12, Z18).

Two files in ``leases/``: ``<flow>.lock``, whose ``flock`` the operating system drops on any death, and
``<flow>.json`` with holder, fence and expiry. The fence grows on every acquire, so that a kernel which was
stopped and woke up late carries an old number and can be told apart. Neither file is ever unlinked.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from keel_notebook.core.model import FlowId
from keel_notebook.core.ports import Clock
from keel_notebook.core.record import as_dict
from keel_notebook.core.units import local_second
from keel_notebook.errors import LeaseError

TTL_S = 30.0
_ROOM = 512
"""Bytes of the lease file: one sector, so that it is written as a whole."""
_LOOKS = 20
_NO_LOCKS = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS})


class Holder(Struct, frozen=True):
    """Who holds a lease."""

    host: str
    pid: int
    boot: str


class LeaseSeen(Struct, frozen=True):
    """The lease file as it was read. ``expires_at`` and ``since`` are wall time, seconds."""

    fence: int
    holder: Holder | None
    since: float
    expires_at: float


_NEVER = LeaseSeen(0, None, 0.0, 0.0)


class Lease:
    """The lease of one flow, as one kernel sees it."""

    def __init__(  # noqa: PLR0913 - all by name
        self, folder: Path, flow: FlowId, *, holder: Holder, clock: Clock, title: str = "", locks: bool = True
    ) -> None:
        """``title``: what people call the flow. ``locks``: False on a drive whose locks do not reach other hosts; then
        the expiry alone decides."""
        self._folder = folder
        self._lock_path = f"{folder}/{flow}.lock"
        self._file_path = f"{folder}/{flow}.json"
        self._title = title or flow
        self._holder = holder
        self._clock = clock
        self._locks = locks
        self._fd: int | None = None
        self._wrote: tuple[bytes, LeaseSeen] = (b"", _NEVER)
        """What this kernel last wrote: who finds it again need not read what it means."""
        self.fence = 0

    @property
    def held(self) -> bool:
        """Whether this kernel took the lease and has not released it."""
        return self._fd is not None

    def seen(self) -> LeaseSeen:
        """What the lease file says. Raises ValueError where it cannot be read: that is not "free"."""
        for left in reversed(range(_LOOKS)):
            try:
                text = _content(self._file_path)
                if text and text == self._wrote[0]:
                    return self._wrote[1]
                found: dict[str, Any] = json.loads(text) if text else {}
                check = found.pop("check", None)
                if check is not None and check != _check(found):
                    raise ValueError("the lease file does not hold what was written to it")
                break
            except FileNotFoundError:
                return _NEVER
            except ValueError:  # read while somebody wrote it
                if not left:
                    raise
        if not found:
            return _NEVER  # made, and its kernel died before the first word
        holder = found["holder"]
        return LeaseSeen(
            fence=int(str(found["fence"])),
            holder=Holder(**holder) if isinstance(holder, dict) else None,
            since=float(str(found["since"])),
            expires_at=float(str(found["expires_at"])),
        )

    def elsewhere(self) -> LeaseSeen | None:
        """Who else holds the lease now, as far as the file tells; nothing is taken. Raises OSError, ValueError."""
        seen = self.seen()
        if seen.holder is None or seen.holder == self._holder:
            return None
        if (seen.holder.host, seen.holder.boot) == (self._holder.host, self._holder.boot):
            return seen if _there(seen.holder.pid) else None
        return seen if seen.expires_at > self._clock.now() else None

    def acquire(self) -> int:
        """Take the lease and return its fence, larger than every earlier one.

        The same holder may take it again and keeps its fence. Raises LeaseError (E030) naming who holds it.
        """
        if self._fd is not None:
            return self.fence
        fd = self._open_lock()
        try:
            locked = self._flock(fd)
            seen = self.seen()
            if locked is False or self._alive_elsewhere(seen, locked=bool(locked)):
                raise self._refusal(seen)
            self.fence = seen.fence + 1
            now = self._clock.now()
            self._write(LeaseSeen(self.fence, self._holder, now, now + TTL_S))
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        return self.fence

    def take(self) -> int:
        """Take the lease over from a holder that is stopped, or on another host (`%keel flow --take`).

        The holder keeps its lock, if it has one; what it writes from now on carries an old fence and is void. Raises
        LeaseError where another process runs that holds it, unless that one is stopped (SIGSTOP).
        """
        try:
            return self.acquire()
        except LeaseError:
            seen = self.seen()
            if seen.holder is None or not self._may_take_from(seen.holder):
                raise
        fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.fence = seen.fence + 1  # O12: larger than what the stopped one carries
        now = self._clock.now()
        self._write(LeaseSeen(self.fence, self._holder, now, now + TTL_S))
        self._fd = fd
        return self.fence

    def _may_take_from(self, holder: Holder) -> bool:
        if (holder.host, holder.boot) != (self._holder.host, self._holder.boot):
            return True  # nobody here can see it; a person said so
        return _stopped(holder.pid)

    def lost(self) -> LeaseError | None:
        """The loss, if another holder or another fence stands in the file (K34). Raises OSError, ValueError."""
        seen = self.seen()
        gone = seen.fence == 0  # a missing file is not a loss
        mine = seen.fence == self.fence and seen.holder == self._holder
        return None if mine or gone else self._refusal(seen)

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
        with contextlib.suppress(OSError):  # a drive without locks
            fcntl.flock(self._fd, fcntl.LOCK_UN)  # a forked child may still have the descriptor
        os.close(self._fd)
        self._fd = None

    def forget_in_child(self) -> None:
        """Close the inherited lock in a forked child: it must not outlive the holder (feasibility A)."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open_lock(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(self._lock_path, flags, 0o600)
        except FileNotFoundError:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self._lock_path, flags, 0o600)

    def _flock(self, fd: int) -> bool | None:
        """True if locked, False if another process holds it, None where the file system has no locks."""
        if not self._locks:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return None
            raise
        return True

    def _alive_elsewhere(self, seen: LeaseSeen, *, locked: bool) -> bool:
        if seen.holder is None or seen.holder == self._holder or seen.expires_at <= self._clock.now():
            return False
        if not locked:
            return True
        # We have the lock and the file names another: it died, or it took over from one that was stopped (``take``).
        here = (seen.holder.host, seen.holder.boot) == (self._holder.host, self._holder.boot)
        return here and not _stopped(seen.holder.pid)

    def _refusal(self, seen: LeaseSeen) -> LeaseError:
        who = f"pid {seen.holder.pid} on {seen.holder.host}" if seen.holder else "another kernel"
        return LeaseError(flow=self._title, holder=who, since=local_second(seen.since))

    def _write(self, lease: LeaseSeen) -> None:
        # In place: a rename over a file waits for the disk, at every guarded step. Who reads in the middle sees that
        # the check does not fit, and looks again.
        text = _text(lease)
        fd = os.open(self._file_path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            text = text.ljust(max(_ROOM, os.fstat(fd).st_size))
            os.pwrite(fd, text, 0)
        finally:
            os.close(fd)
        self._wrote = (text, lease)


def _text(lease: LeaseSeen) -> bytes:
    # By hand: this is written twice at every guarded call. As ``_check`` reads it, keys are in order.
    holder = "null" if lease.holder is None else _holder_text(lease.holder)
    fields = f'"expires_at": {lease.expires_at!r}, "fence": {lease.fence}, "holder": {holder}, "since": {lease.since!r}'
    return f'{{{fields}, "check": {zlib.crc32(f"{{{fields}}}".encode())}}}'.encode()


@functools.lru_cache(maxsize=8)
def _holder_text(holder: Holder) -> str:
    return json.dumps(as_dict(holder), sort_keys=True)


def _content(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 1 << 16)
    finally:
        os.close(fd)


def _check(content: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def _there(pid: int) -> bool:
    """Whether there is a process of this number."""
    import psutil  # noqa: PLC0415 - only who looks at a lease that another holds asks

    return bool(psutil.pid_exists(pid))


def _stopped(pid: int) -> bool:
    """Whether a process of this host is stopped (SIGSTOP, a debugger), or is not there at all."""
    import psutil  # noqa: PLC0415 - only who takes a lease over asks

    try:
        status: str = psutil.Process(pid).status()
    except psutil.NoSuchProcess:
        return True
    return status in {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE}
