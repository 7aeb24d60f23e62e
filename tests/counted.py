"""What a piece of work does, counted: calls of Python and C functions, the same on every machine, however busy."""

from __future__ import annotations

import gc
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def counted(*, threads: bool = False) -> Iterator[Counter[str]]:
    """The calls within the block by qualified name: of this thread, and with ``threads`` of new ones."""
    found: Counter[str] = Counter()

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            found[frame.f_code.co_qualname] += 1
        elif event == "c_call":
            found[argument.__qualname__] += 1

    before = sys.getprofile()
    threading.setprofile(note if threads else None)  # type: ignore[arg-type]
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()  # others hang functions of theirs on it
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)
        if collecting:
            gc.enable()
        threading.setprofile(None)  # type: ignore[arg-type]


def calls(action: Callable[[], object]) -> int:
    """How many functions of Python and C ``action`` calls."""
    with counted() as found:
        action()
    return found.total()
