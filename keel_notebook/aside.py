"""Text that the tap does not record: what keel itself says in a cell is about this run, and no part of a record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_OWN = "keel: "


def own_line(line: str) -> bool:
    """Whether a line on stderr is one that keel itself says."""
    return line.startswith(_OWN)


STRAY = "keel_stray"
"""Marks, in the parent header, text that is shown with the running cell and is none of its own output."""


@contextmanager
def parent_of(stream: Any, header: dict[str, Any]) -> Iterator[None]:
    """Give what is written into a kernel's stream inside another parent header."""
    token = stream._parent_header.set(header)
    try:
        yield
    finally:
        stream._parent_header.reset(token)


def write_aside(stream: Any, text: str) -> None:
    """Write a text into one of the kernel's streams or a tee over another one: shown as always, but not recorded.

    What was written before it comes before it: the stream keeps one buffer per parent.
    """
    own = getattr(stream, "keel_beneath", None)
    if own is not None:
        stream = own
    elif hasattr(getattr(stream, "_parent_header", None), "reset"):
        stream.flush()
        with parent_of(stream, {**stream.parent_header, STRAY: True}):
            stream.write(text)
            stream.flush()
        return
    stream.write(text)
    stream.flush()
