"""Python's cycle collector, told to wait while many values are made that all stay."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def quiet_gc() -> Iterator[None]:
    """Without the cycle collector, which would look through the whole notebook again and again (feasibility C)."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
