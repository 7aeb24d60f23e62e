"""The lock of whoever ingests: one at a time per folder, also on drives that have no locks."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from typing import Final

from keel_notebook.journal import liveness

_POLL_S: Final = 0.02
_STALE_S: Final = 900.0


class StillLockedError(Exception):
    """Somebody else held the lock all the time."""


@contextlib.contextmanager
def hold(path: str, *, wait_s: float) -> Iterator[None]:
    """Hold the lock at ``path``. Raises StillLockedError after ``wait_s``, and OSError."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if _locked(fd, wait_s):
            yield
        else:
            with _by_presence(path + ".held", wait_s):
                yield
    finally:
        os.close(fd)


def _locked(fd: int, wait_s: float) -> bool:
    # False where the drive has no locks.
    for last in _tries(wait_s):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if last:
                raise StillLockedError from None
        except OSError as error:
            if error.errno in liveness.NO_LOCKS:
                return False
            raise
        else:
            return True
    raise StillLockedError


@contextlib.contextmanager
def _by_presence(path: str, wait_s: float) -> Iterator[None]:
    me = {"host": liveness.host(), "boot": liveness.boot(), "pid": os.getpid(), "born": liveness.born(os.getpid())}
    for last in _tries(wait_s):
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if _left_behind(path):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
            elif last:
                raise StillLockedError from None
            continue
        os.write(fd, json.dumps(me).encode())
        os.close(fd)
        try:
            yield
        finally:
            os.unlink(path)
        return
    raise StillLockedError


def _left_behind(path: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            holder = json.load(file)
        if holder["host"] == liveness.host() and holder["boot"] == liveness.boot():
            return bool(liveness.born(holder["pid"]) != holder["born"])
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        pass  # being written right now, or torn: old enough says which
    with contextlib.suppress(FileNotFoundError):
        return time.time_ns() / 1e9 - os.stat(path).st_mtime > _STALE_S
    return False


def _tries(wait_s: float) -> Iterator[bool]:
    tries = max(1, int(wait_s / _POLL_S))
    for number in range(1, tries + 1):
        yield number == tries
        time.sleep(_POLL_S)
