"""Files as private copy-on-write memory: writable, and the file never changes (DESIGN 7)."""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import weakref
from typing import Any, Final

_FAILED: Final = ctypes.c_void_p(-1).value


def private(fd: int, size: int) -> memoryview:
    """``size`` bytes of the file behind ``fd``, which may be closed afterwards. Raises OSError.

    Not the ``mmap`` module: it keeps a file descriptor for as long as the memory lives, and a notebook may hold
    more mapped columns than a process may hold files.
    """
    if size == 0:
        return memoryview(bytearray())
    libc = _libc()
    address = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE, fd, 0)
    if address == _FAILED:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    memory = (ctypes.c_ubyte * size).from_address(address)
    ending = weakref.finalize(memory, libc.munmap, address, size)
    ending.atexit = False  # at exit the values on this memory may still be in use; it goes with the process
    return memoryview(memory).cast("B")


@functools.cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int64,
    ]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc
