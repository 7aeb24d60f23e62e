"""Pickle notes down in each class which slots its instances have (``__slotnames__``): no trace of keel's looking."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

_NOTE = "__slotnames__"


@contextlib.contextmanager
def classes_left_alone(classes: Callable[[], Iterable[type]]) -> Iterator[None]:
    """What happens inside adds no such note to any of the classes."""
    noted = {cls for cls in classes() if _NOTE in vars(cls)}
    try:
        yield
    finally:
        for cls in classes():
            if cls not in noted and _NOTE in vars(cls):
                type.__delattr__(cls, _NOTE)
