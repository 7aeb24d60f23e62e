"""Content by reference: memory that is hashed and written in place, never copied as a whole.

A ``Memory`` stands for the bytes of an array, a column or a long text. The digester reads it, the codec hands it to
the journal; both in pieces, so that a gigabyte needs no second gigabyte beside it (DESIGN 10).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from blake3 import blake3
from msgspec import Struct

LARGE = 1 << 20
"""From here on content is an object of its own in the journal, named by its digest (DESIGN 6)."""
PIECE = 4 << 20
"""How much is copied at a time where content must be copied to be read in order."""

_THREADS = min(4, os.cpu_count() or 1)

Region = tuple[int, int]
"""Address and length of memory, as long as its owner is kept alive."""


class Memory(Struct, frozen=True, eq=False):
    """Bytes in order, in pieces. ``pieces`` may be called more than once."""

    size: int
    pieces: Callable[[], Iterable[memoryview | bytes]]
    regions: tuple[Region, ...] = ()
    """Where the content lies if it lies somewhere as it is: content at the same place is the same content."""
    keep: Any = None
    """Whatever must live while ``regions`` mean something."""

    def __bytes__(self) -> bytes:
        return b"".join(self.pieces())


def memory_of(view: memoryview | bytes, *, address: int | None = None, keep: Any = None) -> Memory:
    """The memory behind a flat view of bytes."""
    regions = () if address is None or not len(view) else ((address, len(view)),)
    return Memory(len(view), lambda: (view,), regions, view if keep is None else keep)


def text_memory(text: str) -> Memory:
    """A long text as UTF-8 (lone surrogates kept), encoded piece by piece."""

    def pieces() -> Iterator[bytes]:
        for at in range(0, len(text), PIECE):
            yield text[at : at + PIECE].encode("utf-8", "surrogatepass")

    return Memory(sum(map(len, pieces())), pieces)


class Contents:
    """Digests of large content, remembered by place for as long as this object lives.

    Only for one pass over values that nobody changes meanwhile: what the codec just wrote need not be read again
    to know its digest.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Region, ...], str] = {}
        self._alive: list[Memory] = []

    def learn(self, memory: Memory, digest: str) -> None:
        """Remember the digest that the journal gave to ``memory``."""
        if memory.regions:
            self._known[memory.regions] = digest
            self._alive.append(memory)  # no other object may come to lie at its address

    def recall(self, memory: Memory) -> str | None:
        """The digest if this place was seen before."""
        return self._known.get(memory.regions) if memory.regions else None

    def digest(self, memory: Memory) -> str:
        """The content address of ``memory``: blake3 of its bytes, as ``Journal.put`` names objects."""
        known = self.recall(memory)
        if known is None:
            known = content_digest(memory.pieces(), memory.size)
            self.learn(memory, known)
        return known


def content_digest(pieces: Iterable[memoryview | bytes], size: int) -> str:
    """blake3 over the joined pieces, in hex."""
    # Threads of its own: a forked child would wait for blake3's shared ones without end.
    state = blake3(max_threads=_THREADS if size >= PIECE else 1)
    for piece in pieces:
        state.update(piece)
    return state.hexdigest()
