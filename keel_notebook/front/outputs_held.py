"""One ``keel run`` at a time writes an executed notebook: the claim on its file (docs/headless.md).

The claim is the lock of a small file beside it: the system drops it on any death, so a file that nobody holds is free.
Who gets the lock of one that was unlinked meanwhile has no claim, and looks again.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from keel_notebook.core.units import local_second
from keel_notebook.errors import OutputHeldError
from keel_notebook.journal import liveness

_TRIES: Final = 50


@contextlib.contextmanager
def claimed(output: Path) -> Iterator[None]:
    """Have the file to ourselves. Raises OutputHeldError (E035) where another run writes it; nothing is touched then.

    On a drive without locks nobody can be kept away. Where no file can be made beside it, none can be written there
    either: that is said by whoever writes.
    """
    target = os.path.realpath(output)
    path = os.path.join(os.path.dirname(target), f".{os.path.basename(target)}.lock")
    try:
        fd = _locked(path, target)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        os.close(fd)


def _locked(path: str, target: str) -> int:
    for _ in range(_TRIES):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if liveness.take_now(fd) is False:
                raise OutputHeldError(output=target, **_holder(fd))
            if _is_still(fd, path):
                os.ftruncate(fd, 0)
                os.pwrite(fd, json.dumps(_me()).encode(), 0)
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
    raise OutputHeldError(output=target, pid="?", host="?", since="?")


def _me() -> dict[str, Any]:
    began = time.time()  # noqa: TID251 - the command line's own clock
    return {"pid": os.getpid(), "host": liveness.host(), "since": local_second(began)}


def _holder(fd: int) -> dict[str, str]:
    try:
        found = json.loads(os.pread(fd, 4096, 0))
        return {name: str(found[name]) for name in ("pid", "host", "since")}
    except (ValueError, KeyError, TypeError):  # it is being written right now
        return {}


def _is_still(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False
