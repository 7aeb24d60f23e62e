"""A quick hash of large plain values, to know a value again that was digested before.

Python's own pickler writes lists, dicts, tuples, sets and scalars in C. Its bytes tell which objects are one, so two
values that are equal may differ in them: they are no digest. But whoever has the same bytes is the same value, so that
its digest need not be found out again. Nothing of the value is kept.
"""

from __future__ import annotations

import pickle
from typing import Any

from blake3 import blake3


class _OtherTypeError(Exception):
    """Something that has code of its own, or that counts by more than what pickle would write."""


class _Plain(pickle.Pickler):
    def reducer_override(self, _: Any) -> Any:  # asked for everything but those types
        raise _OtherTypeError


class _Sink:
    def __init__(self, state: blake3) -> None:
        self._state = state

    def write(self, part: Any) -> int:
        self._state.update(part)
        return len(part)


def stamp(value: Any, key: bytes) -> bytes | None:
    """Bytes that no other value has; None for a value that is not plain, or nested too deeply."""
    state = blake3(b"streamed;", key=key)
    try:
        _Plain(_Sink(state), 5).dump(value)
    except (_OtherTypeError, RecursionError):
        return None
    return state.digest()
