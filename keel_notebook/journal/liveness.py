"""Is the kernel behind a segment alive, and if not, how did it end? (DESIGN 5: Runs, Deaths)

The answer is the segment's ``flock``: the operating system drops it with the kernel, whatever kills it. Where
locks do not work (some network drives) host, boot, pid and start time of the process answer instead.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
import socket
import sys
from enum import Enum
from typing import Final

from keel_notebook.core.ports import RunEnd, RunStart

NO_LOCKS: Final = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL})


class Life(Enum):
    """What is known of a kernel."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"
    """It ran on another host, and its drive has no locks: it may live."""


@functools.cache
def host() -> str:
    """This machine's name."""
    return socket.gethostname()


@functools.cache
def boot() -> str:
    """An id of this boot of this machine: a pid says nothing after a reboot."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
    import psutil  # noqa: PLC0415 - 25 ms, and only needed where there is no /proc

    return f"t{int(psutil.boot_time())}"


def born(pid: int) -> float | None:
    """When the process with this pid started, in seconds of an origin fixed per boot; None if there is none."""
    if sys.platform.startswith("linux"):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                # The name in parentheses may hold anything, so count from behind it: state is 0, start time 19.
                after = file.read().rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if after[0] in b"ZX" else int(after[19]) / os.sysconf("SC_CLK_TCK")
    import psutil  # noqa: PLC0415 - 25 ms, and only needed where there is no /proc

    try:
        seen = psutil.Process(pid)
        return None if seen.status() == psutil.STATUS_ZOMBIE else float(seen.create_time())
    except psutil.NoSuchProcess:
        return None


def pid_space() -> int:
    """Which set of pids this process lives in: containers on one machine have their own. 0 if unknown."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def take(fd: int) -> bool | None:
    """Lock a new segment for as long as ``fd`` is open; None where the drive has no locks. Waits for probes."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno in NO_LOCKS:
            return None
        raise
    return True


def take_now(fd: int) -> bool | None:
    """Lock a segment unless somebody else does; None where the drive has no locks."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in NO_LOCKS:
            return None
        raise
    return True


def held(fd: int) -> bool | None:
    """Whether another open file holds the segment's lock; None where the drive has no locks.

    Probes take the shared lock, so that two of them never take each other for the owner.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno in NO_LOCKS:
            return None
        raise
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False


def is_here(start: RunStart, space: int) -> bool:
    """Whether a pid in ``start`` means something to this process."""
    return start.host == host() and start.boot == boot() and space == pid_space()


def life(start: RunStart, space: int, locked: bool | None) -> Life:
    """Whether the kernel that wrote ``start`` in the pid space ``space`` lives; ``locked`` is what ``held`` said."""
    if locked is False:
        return Life.GONE
    if is_here(start, space):
        # Also with the lock held: a child that was forked behind Python's back may have outlived its kernel.
        return Life.ALIVE if born(start.pid) == start.started else Life.GONE
    return Life.ALIVE if locked else Life.UNKNOWN


def still_there(pid: int) -> bool:
    """Whether some process has this pid: a quick look between two calls of ``life``."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def end_of(start: RunStart, alive: Life, *, asked: bool, ended: bool) -> str:
    """The ``RunEnd`` of a run, from what is known of its kernel and from its last frames."""
    if alive is Life.ALIVE:
        return RunEnd.OPEN
    if ended:
        return RunEnd.CLEAN
    if asked:
        return RunEnd.ASKED
    here = start.host == host() and start.boot == boot()
    return RunEnd.DIED if here else RunEnd.VANISHED
