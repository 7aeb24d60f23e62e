"""Files that this process holds locked, such as an open database: they must not be opened and closed here.

Closing *any* handle of a file drops all locks (POSIX) that the process has on it: SQLite and DuckDB would go on writing
without the lock that keeps other programs out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

_PIECE = 8 << 20
_PAGE = 512
"""Files of databases are made of whole pages, of this size at least."""


def is_held(found: os.stat_result) -> bool:
    """Whether this process may hold a lock on a file, as on an open database."""
    if found.st_size % _PAGE:
        return False
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            locks = file.read()
    except OSError:
        return True  # not Linux: nobody tells
    mine = f" {os.getpid()} "
    inode = f":{found.st_ino} "
    return any(mine in line and inode in line for line in locks.splitlines())


def content_through_another(full: str, *, samples_at: Sequence[int] = ()) -> Iterator[bytes]:
    """The content of a file, or its size and samples of it, read by a child process. Raises OSError."""
    command = [sys.executable, "-ISc", _READ, full, *map(str, samples_at)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:  # noqa: S603
        assert child.stdout is not None
        while piece := child.stdout.read(_PIECE):
            yield piece
    if child.returncode != 0:
        raise OSError("the file could not be read")


_READ = """
import os, shutil, sys
with open(sys.argv[1], "rb") as file:
    if not sys.argv[2:]:
        shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
    else:
        sys.stdout.buffer.write(os.fstat(file.fileno()).st_size.to_bytes(8, "big"))
    for at in map(int, sys.argv[2:]):
        file.seek(at)
        sys.stdout.buffer.write(file.read(64 << 10))
"""
