"""Objects without a digest that lead nowhere out of this process: locks and their like (DESIGN 5, Runs).

A client or a connection may bring something else tomorrow, and nobody sees what it does. A lock brings nothing. Only
types of the standard library are known here, and exactly those: whatever else has no digest may be a client.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from keel_notebook.core.harmless import words
from keel_notebook.payload.typename import type_name

_LOCKS = ("Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event")
_NOWHERE = words(
    """
    _thread.lock _thread.RLock random.SystemRandom mmap.mmap posix.DirEntry nt.DirEntry _struct.Struct
    _hashlib.HASH _hashlib.HASHXOF _hashlib.HMAC _blake2.blake2b _blake2.blake2s zlib.Compress zlib.Decompress
    _bz2.BZ2Compressor _bz2.BZ2Decompressor _lzma.LZMACompressor _lzma.LZMADecompressor
    """
) | {f"{module}.{name}" for module in ("threading", "multiprocessing.synchronize") for name in _LOCKS}
_INSIDE: dict[str, Callable[[Any], Iterable[Any]]] = {
    "queue.Queue": lambda value: value.queue,
    "queue.LifoQueue": lambda value: value.queue,
    "queue.PriorityQueue": lambda value: value.queue,
    "threading.Barrier": lambda value: (value._action,),
    "weakref.ReferenceType": lambda value: (value(),),
    "_contextvars.Context": lambda value: tuple(value.values()),
    "_contextvars.Token": lambda value: (value.old_value,),
    # Its threads do what cells give them, and what they reach is seen; what a first call made for each is not.
    "concurrent.futures.thread.ThreadPoolExecutor": lambda value: (value._initializer,),
}
"""What the others hold: they lead where that leads."""
_DATA = frozenset({"numpy", "pandas", "polars", "pyarrow", "scipy"})
"""Libraries whose objects are data, generators of random numbers among them."""


def is_foreign(cls: type) -> bool:
    """Whether objects of a class that have a digest may be clients all the same: sessions forget what is open."""
    root = cls.__module__.partition(".")[0]
    return root not in sys.stdlib_module_names and root not in _DATA


def leads_nowhere(value: Any, held_leads: Callable[[Any], bool], met: dict[int, Any]) -> bool:
    """Whether an object that has no digest surely leads to nothing outside of this process.

    Args:
        value: the object.
        held_leads: the same of something that it holds.
        met: objects that are being asked about, by identity: one that holds itself leads nowhere else by that.
    """
    name = type_name(type(value))
    if name in _NOWHERE or id(value) in met:
        return True
    met[id(value)] = value
    if name == "_queue.SimpleQueue":
        return bool(value.empty())  # there is no looking into it
    if name not in _INSIDE:
        return False
    try:
        held = list(_INSIDE[name](value))
    except (AttributeError, RuntimeError):  # another Python keeps it elsewhere; a thread puts something in
        return False
    return all(map(held_leads, held))
