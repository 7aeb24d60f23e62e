"""Where large content goes: memory and arrays of one payload, numbered, written to the journal and mapped again.

Arrays whose memory overlaps are put on one piece of memory, whoever owns it, so that a view of an array comes back
as a view of that array (C49), and a frame around an array as a frame around it. A strided array that stands alone is
packed. Content is written where it lies.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from keel_notebook.core.model import Digest
from keel_notebook.core.ports import Journal
from keel_notebook.payload.kinds.numpy import build_dtype, content, describe, locked
from keel_notebook.payload.memory import LARGE, Contents, Memory

_MOST_SPANS = 1000
_MOST_COLUMNS = 200


_LOCKED = "locked"
"""Of an array that somebody made read-only, on memory that could be written to."""


class BufferWriter:
    """Collects the memory and the arrays of one payload."""

    def __init__(self) -> None:
        self._memories: list[Memory] = []
        self._arrays: list[Any] = []
        self._columns: set[int] = set()
        self._spans: list[tuple[int, int]] = []
        self.bytes = 0
        """Bytes of everything so far, what lies in the same memory counted once."""

    def memory(self, memory: Memory) -> int:
        """The number of a piece of memory."""
        self._memories.append(memory)
        self.bytes += memory.size
        return len(self._memories) - 1

    def array(self, array: Any) -> int | None:
        """The number of an array, or None for one whose content is not plain bytes."""
        if array.dtype.hasobject or describe(array.dtype) is None:
            return None
        self._arrays.append(array)
        low, high = bounds(array)
        if not any(begin <= low and high <= end for begin, end in self._spans[:_MOST_SPANS]):
            self.bytes += array.nbytes
            self._spans.append((low, high))
        return len(self._arrays) - 1

    def column(self, array: Any) -> int | None:
        """The number of an array of a frame, or None for one whose content is not plain bytes."""
        if array.dtype.hasobject or describe(array.dtype) is None:
            return None
        self._arrays.append(array)
        self._columns.add(len(self._arrays) - 1)
        self.bytes += array.nbytes
        return len(self._arrays) - 1

    def has_columns_on(self, arrays: list[Any]) -> bool:
        """Whether a column may lie on the memory of one of these arrays."""
        if not self._columns or not arrays:
            return False
        every = [self._arrays[at] for at in self._columns] + arrays
        first = len(self._columns)
        return any(min(group) < first <= max(group) for group in _overlapping(range(len(every)), every))

    def write(self, journal: Journal, contents: Contents) -> tuple[dict[str, Any], dict[Digest, int]]:
        """Write everything. Gives the tables for the head, and the objects that it refers to with their sizes."""
        arrays = self._rows()
        objects: dict[Digest, int] = {}
        numbers: dict[Digest, int] = {}
        memories: list[bytes | tuple[int]] = []
        for memory in self._memories:
            if memory.size < LARGE:
                memories.append(bytes(memory))
                continue
            digest = _put(journal, memory, contents)
            objects[digest] = memory.size
            memories.append((numbers.setdefault(digest, len(numbers)),))
        return {"arrays": arrays, "memories": memories}, objects

    def _rows(self) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = [()] * len(self._arrays)
        for group in self._groups():
            if len(group) == 1:
                at = group[0]
                array = self._arrays[at]
                packed = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
                rows[at] = self._row(at, self._place(content(array, order=packed)), 0, packed)
                continue
            low = min(bounds(self._arrays[at])[0] for at in group)
            high = max(bounds(self._arrays[at])[1] for at in group)
            number = self._place(_raw(low, high - low, [self._arrays[at] for at in group]))
            for at in group:
                array = self._arrays[at]
                rows[at] = self._row(at, number, _address(array) - low, array.strides)
        return rows

    def _groups(self) -> list[list[int]]:
        """The numbers of the arrays, together where they come back on one piece of memory.

        A column comes back alone where no array lies on it, and where a second frame has its memory: pandas copies
        before it writes into one of the two, and would not know that it has to.
        """
        groups: list[list[int]] = []
        for whole in _overlapping(range(len(self._arrays)), self._arrays):
            columns = [at for at in whole if at in self._columns]
            if len(whole) == 1 or not columns:
                groups.append(whole)
                continue
            alone = set(columns) if len(columns) == len(whole) else _crossing(columns, self._arrays)
            groups += [[at] for at in columns if at in alone]
            groups += _overlapping([at for at in whole if at not in alone], self._arrays)
        return groups

    def _place(self, memory: Memory) -> int:
        self._memories.append(memory)
        return len(self._memories) - 1

    def _row(self, at: int, memory: int, offset: int, layout: Any) -> tuple[Any, ...]:
        array = self._arrays[at]
        access = at in self._columns or (_LOCKED if locked(array) else array.flags.writeable)
        return describe(array.dtype), array.shape, memory, offset, layout, access


class BufferReader:
    """Gives the memory and the arrays back, each array once, on private memory of the journal."""

    def __init__(self, tables: Any, buffers: Sequence[Digest], journal: Journal) -> None:
        self._rows = tables["arrays"]
        self._memories = tables["memories"]
        self._buffers = buffers
        self._journal = journal
        self._mapped: dict[int, memoryview] = {}
        self._arrays: dict[int, Any] = {}

    def memory(self, number: int) -> memoryview:
        """A piece of memory, writable, for whoever asks first and alone."""
        stored = self._memories[number]
        if isinstance(stored, bytes):
            return memoryview(bytearray(stored))
        return self._journal.map(self._buffers[stored[0]])

    def array(self, number: int) -> Any:
        """An array. Arrays that shared memory share it."""
        built = self._arrays.get(number)
        if built is None:
            described, shape, memory, offset, layout, access = self._rows[number]
            if memory not in self._mapped:
                self._mapped[memory] = self.memory(memory)
            import numpy as np  # noqa: PLC0415 - needed when an array comes back, not before

            strides = layout if isinstance(layout, tuple) else None
            order: Any = layout if strides is None else "C"
            built = np.ndarray(shape, build_dtype(described), self._mapped[memory], offset, strides, order)
            if access is not True:
                built = built if access == _LOCKED else built.view()  # a view that is read-only: nobody made it so
                built.flags.writeable = False
            self._arrays[number] = built
        return built


def _put(journal: Journal, memory: Memory, contents: Contents) -> Digest:
    known = contents.recall(memory)
    if known is None:
        # In place it is handed over whole, so that equal content is found before a byte is written.
        known = journal.put(list(memory.pieces()) if memory.regions else memory.pieces())
        contents.learn(memory, known)
    return Digest(known)


def _address(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def bounds(array: Any) -> tuple[int, int]:
    """The first byte of an array's memory, and the one after the last."""
    low = high = _address(array)
    if 0 in array.shape:
        return low, high
    for length, stride in zip(array.shape, array.strides, strict=True):
        if stride > 0:
            high += (length - 1) * stride
        else:
            low += (length - 1) * stride
    return low, high + array.itemsize


def _overlapping(numbers: Iterable[int], arrays: list[Any]) -> list[list[int]]:
    """The numbers of arrays, together where their memory overlaps."""
    order = sorted((*bounds(arrays[at]), at) for at in numbers)
    groups: list[list[int]] = []
    end = -1
    for low, high, at in order:
        if groups and low < end and low < high:
            groups[-1].append(at)
            end = max(end, high)
        else:
            groups.append([at])
            end = high
    return groups


def _crossing(columns: list[int], arrays: list[Any]) -> set[int]:
    """The numbers of columns that share bytes with another column; all of them where there are too many to ask."""
    if len(columns) > _MOST_COLUMNS:
        return set(columns)
    import numpy as np  # noqa: PLC0415 - only where there are arrays

    pairs = combinations(columns, 2)
    return {at for one, other in pairs if np.shares_memory(arrays[one], arrays[other]) for at in (one, other)}


def _raw(address: int, size: int, keep: Any) -> Memory:
    """Memory by address: between views that overlap every byte belongs to the array that they are views of."""
    view = memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")
    return Memory(size, lambda: (view,), ((address, size),), keep)
