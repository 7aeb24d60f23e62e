"""Frames: how entries lie in a segment, byte by byte (DESIGN 7). Pure: bytes in, values out.

A segment is a 16-byte head (magic and a random id) followed by frames. A frame is a fixed header and a body::

    magic 3 | mark 1 | length 4 | fence 8 | stamp 8 | chain 8 | mac 16 | check 4 | body

``check`` is a CRC-32 of all the rest, seeded with the segment's id, so that a frame copied from elsewhere is
not taken for one of this segment. ``chain`` is the digest of the frame before it: a frame that went missing
in between is noticed although every other one is whole. ``mac`` is the owner's seal on the body (DESIGN 8).
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

SEGMENT_MAGIC: Final = b"KEELSEG1"
HEAD_BYTES: Final = 16
NO_MAC: Final = bytes(16)

_MAGIC: Final = b"\xf7KF"
_HEADER: Final = struct.Struct("<3sBIQQ8s16s")
_CHECK: Final = struct.Struct("<I")
_FIXED: Final = _HEADER.size + _CHECK.size
MAX_BODY: Final = 1 << 30


class Mark(IntEnum):
    """What a frame says."""

    START = 1
    """Who writes this segment: the first frame."""
    ENTRY = 2
    SYNCED = 3
    """Everything before the offset in its body is power-safe, payloads included."""
    ASKED = 4
    """The kernel was asked to stop."""
    END = 5
    """The kernel ended in order: the last frame."""
    SEAL = 6
    """Another owner's seal on an entry: its body is that entry's body."""
    CHECKED = 7
    """Objects of a flow were read, found sound and made power-safe: ``[flow, [[digest, last touched at], …]]``."""


class Frame(NamedTuple):
    """One sound frame as it was read."""

    mark: int
    body: bytes
    fence: int
    stamp: int
    """Microseconds since the epoch, but never before anything that its kernel had read or written: the order
    in which entries were written, over all kernels of a folder."""
    chain: bytes
    mac: bytes
    end: int
    """Offset in the segment just behind the frame."""
    link: bytes
    """What the next frame's ``chain`` has to be."""


class Fault(NamedTuple):
    """A stretch of a segment that cannot be what was written there."""

    start: int
    end: int
    detail: str


class Scan(NamedTuple):
    """What a stretch of a segment holds."""

    frames: list[Frame]
    faults: list[Fault]
    end: int
    """Offset behind the last sound frame."""
    link: bytes
    """What the next frame's ``chain`` has to be."""


def segment_head(ident: bytes) -> bytes:
    """The first 16 bytes of a segment. ``ident`` is 8 random bytes."""
    return SEGMENT_MAGIC + ident


def read_head(raw: bytes) -> bytes | None:
    """The id in a segment's head, or None where the head is not whole or not one."""
    if len(raw) < HEAD_BYTES or raw[:8] != SEGMENT_MAGIC:
        return None
    return bytes(raw[8:HEAD_BYTES])


def first_link(ident: bytes) -> bytes:
    """What the first frame's ``chain`` has to be."""
    return link_of(segment_head(ident))


def link_of(raw: bytes) -> bytes:
    """What the ``chain`` of the frame behind ``raw`` has to be."""
    return hashlib.blake2b(raw, digest_size=8).digest()


def seed_of(ident: bytes) -> int:
    """The seed of every ``check`` in the segment with this id."""
    return zlib.crc32(ident)


def encode(  # noqa: PLR0913 - one argument for each field of the header
    mark: Mark, body: bytes, *, fence: int, stamp: int, chain: bytes, mac: bytes, seed: int
) -> bytes:
    """One frame as bytes. Raises ValueError where the body is larger than 1 GB."""
    if len(body) > MAX_BODY:
        raise ValueError(f"a frame of {len(body)} bytes")
    header = _HEADER.pack(_MAGIC, mark, len(body), fence, stamp, chain, mac)
    return header + _CHECK.pack(zlib.crc32(body, zlib.crc32(header, seed))) + body


def first_frame(raw: bytes, *, ident: bytes) -> Frame | None:
    """The first frame of the segment ``ident`` whose first bytes are ``raw``; None where it is not sound."""
    return _sound(raw[HEAD_BYTES:], 0, base=HEAD_BYTES, seed=seed_of(ident))


def scan(raw: bytes, *, base: int, link: bytes, seed: int, sure: int) -> Scan:
    """The sound frames in ``raw``, which lies at offset ``base`` of its segment.

    An unsound stretch with a sound frame behind it, or one that begins before offset ``sure`` (known to be
    power-safe), is a fault. Any other unsound rest is a torn tail: it ends the scan and is no fault.
    """
    frames: list[Frame] = []
    faults: list[Fault] = []
    at = 0
    expected: bytes | None = link
    while at < len(raw):
        frame = _sound(raw, at, base=base, seed=seed)
        if frame is None:
            behind = _resync(raw, at, base=base, seed=seed)
            if behind is not None:
                faults.append(Fault(base + at, base + behind, "bytes that are no frame"))
                at, expected = behind, None
                continue
            if base + at < sure:
                faults.append(Fault(base + at, base + len(raw), "bytes that are no frame"))
            break
        if expected is not None and frame.chain != expected:
            faults.append(Fault(base + at, base + at, "frames are missing here"))
        frames.append(frame)
        expected = frame.link
        at = frame.end - base
    assert expected is not None  # only None between a fault and the sound frame behind it
    end = base + at
    if end < sure and not (faults and faults[-1].end > end):
        faults.append(Fault(end, sure, "the end is missing"))
    return Scan(frames, faults, end, expected)


def _sound(raw: bytes, at: int, *, base: int, seed: int) -> Frame | None:
    begin = at + _FIXED
    if begin > len(raw):
        return None
    magic, mark, length, fence, stamp, chain, mac = _HEADER.unpack_from(raw, at)
    end = begin + length
    if magic != _MAGIC or end > len(raw):
        return None
    (check,) = _CHECK.unpack_from(raw, at + _HEADER.size)
    body = raw[begin:end]
    if zlib.crc32(body, zlib.crc32(raw[at : at + _HEADER.size], seed)) != check:
        return None
    return Frame(mark, body, fence, stamp, chain, mac, base + end, link_of(raw[at:end]))


def _resync(raw: bytes, at: int, *, base: int, seed: int) -> int | None:
    # Where the next sound frame begins, behind an unsound one at ``at``.
    return next((spot for spot in _spots(raw, at) if _sound(raw, spot, base=base, seed=seed) is not None), None)


def _spots(raw: bytes, at: int) -> Iterator[int]:
    spot = raw.find(_MAGIC, at + 1)
    while spot != -1:
        yield spot
        spot = raw.find(_MAGIC, spot + 1)
