"""The side file of a run: what its kernel last looked like, in a few bytes that are rewritten in place.

It is a hint, never a record: a torn or missing one costs only the hint. ``sure`` makes a lost tail visible: the
segment was power-safe up to there, so a shorter or unsound one is damage and not a torn tail.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import Final, NamedTuple

_FORM: Final = struct.Struct("<8sQQd")
_CHECK: Final = struct.Struct("<I")
_SIZE: Final = _FORM.size + _CHECK.size


class Side(NamedTuple):
    """What a side file says."""

    ident: bytes
    """Of the segment that it belongs to."""
    rss: int
    """Bytes of memory that the kernel was last seen to use; 0 if never seen."""
    sure: int
    """Length of the segment that is known to be power-safe."""
    at: float = 0.0
    """When the kernel was last seen to live, seconds since the epoch; 0 if never."""


def write_side(fd: int, side: Side) -> None:
    """Rewrite the file behind ``fd``. Raises OSError."""
    raw = _FORM.pack(*side)
    os.pwrite(fd, raw + _CHECK.pack(zlib.crc32(raw)), 0)


def read_side(path: str, ident: bytes | None) -> Side:
    """What the side file of segment ``ident`` (None: of any) says; zeros where there is no sound one.

    Raises OSError.
    """
    nothing = Side(ident or b"", 0, 0)
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return nothing
    try:
        raw = os.pread(fd, _SIZE, 0)
    finally:
        os.close(fd)
    if len(raw) != _SIZE or _CHECK.unpack_from(raw, _FORM.size)[0] != zlib.crc32(raw[: _FORM.size]):
        return nothing
    side = Side(*_FORM.unpack_from(raw))
    return side if ident in {None, side.ident} else nothing
