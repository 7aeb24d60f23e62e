"""Files that are read and replaced as a whole: whoever looks sees the old content or the new, never a part."""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import sys
from typing import Final

_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_serial = itertools.count(1)


def read_whole(path: str) -> bytes:
    """All bytes of a file. Raises OSError."""
    fd = os.open(path, os.O_RDONLY)
    try:
        parts = []
        while part := os.read(fd, 1 << 24):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(fd)


def write_all(fd: int, content: bytes | memoryview) -> None:
    """Write every byte. Raises OSError."""
    done = os.write(fd, content)
    rest = memoryview(content)[done:]
    while rest:
        rest = rest[os.write(fd, rest) :]


def scratch_name(path: str) -> str:
    """A name beside ``path`` that nobody else uses and no listing takes for the real thing."""
    place, name = os.path.split(path)
    return f"{place}/.{name.lstrip('.')}.{os.getpid()}.{next(_serial)}.tmp"


def write_scratch(path: str, content: bytes | memoryview, *, safe: bool = True) -> str:
    """Write ``content`` (power-safe, if ``safe``) under a scratch name beside ``path``, and return that name.

    Raises OSError.
    """
    scratch = scratch_name(path)
    fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        write_all(fd, content)
        if safe:
            os.fsync(fd)
    except BaseException:
        os.close(fd)
        os.unlink(scratch)
        raise
    os.close(fd)
    return scratch


def replace_whole(path: str, content: bytes | memoryview) -> None:
    """Put ``content`` at ``path``: a reader sees the old file or the new one, also after a power cut."""
    os.replace(write_scratch(path, content), path)
    sync_folder(os.path.dirname(path))


def create_whole(path: str, content: bytes, *, safe: bool = True) -> bool:
    """Put ``content`` at ``path`` unless something is there; whether it was put. Raises OSError.

    The file appears with all of its content, except on file systems without hard links. Without ``safe`` it is
    for the caller to make it power-safe.
    """
    scratch = write_scratch(path, content, safe=safe)
    try:
        os.link(scratch, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _create_in_place(path, content)
    finally:
        os.unlink(scratch)
    if safe:
        sync_folder(os.path.dirname(path))
    return True


def _create_in_place(path: str, content: bytes) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    try:
        write_all(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)
    return True


def sync_file(fd: int) -> None:
    """Make the content behind ``fd`` power-safe. Raises OSError."""
    if sys.platform == "darwin":
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # fsync alone leaves it in the drive's own memory
    else:
        os.fdatasync(fd)


def sync_folder(path: str) -> None:
    """Make the names in a folder power-safe. Raises OSError, except where the file system cannot do that."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}:
            raise
    finally:
        os.close(fd)
