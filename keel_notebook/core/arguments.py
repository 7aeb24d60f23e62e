"""Whether what a person gives to ``keel.call`` and its like can be what it stands for; else words that say what can.

Pure. Python itself would say only that some object is not callable, from within keel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any


def check_function(where: str, fn: Any, reads: str) -> None:
    """Raises TypeError where ``fn`` is no function. ``reads``: what the call is to look like."""
    __tracebackhide__ = True  # a person wants to see their own lines
    if not callable(fn):
        what = f"{where} takes a function first, and this is of type {type(fn).__name__}"
        raise TypeError(f"{what}: {reads}, the function itself, without calling it")


def check_items(where: str, items: Any, reads: str) -> None:
    """Raises TypeError where there is nothing to go through in ``items``."""
    __tracebackhide__ = True
    if not isinstance(items, Iterable) and not hasattr(items, "__getitem__"):
        raise TypeError(f"{where} goes through items, and a value of type {type(items).__name__} has none: {reads}")


def check_wait(where: str, duration: Any) -> None:
    """Raises TypeError where ``duration`` is neither a text nor a number, ValueError for a number that is no time."""
    __tracebackhide__ = True
    if isinstance(duration, str):
        return
    if not isinstance(duration, Real):
        raise TypeError(f'{where} takes seconds or a text like "2h", not a value of type {type(duration).__name__}')
    if not 0 <= float(duration) < math.inf:
        raise ValueError(f"{where} takes 0 seconds or more, not {duration}")
