"""What a forked child must not keep: the lock that says "the kernel lives", and the right to write.

Notebooks fork (multiprocessing, joblib, data loaders). A child that kept the segment open would hold its lock
after the kernel died, and one that wrote to it would write into the middle of the parent's frames.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Inert(Protocol):
    """Something that a forked child has to let go of."""

    def after_fork(self) -> None:
        """Called in the child, before any other code of it."""


_watched: weakref.WeakSet[Inert] = weakref.WeakSet()
_registered = False


def watch(thing: Inert) -> None:
    """Have ``thing.after_fork`` called in every forked child for as long as ``thing`` lives."""
    global _registered  # noqa: PLW0603 - the interpreter keeps such hooks for ever: register one
    _watched.add(thing)
    if not _registered:
        os.register_at_fork(after_in_child=_in_child)
        _registered = True


def _in_child() -> None:
    for thing in list(_watched):
        thing.after_fork()
