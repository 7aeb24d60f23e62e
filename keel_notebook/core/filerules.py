"""What a file is to the step that met it: one pure function, ``kept_as`` (DESIGN 6, Files).

What was seen goes in (by the audit hook, by the system's own watch on folders, by the file's stamp before and after,
by its mention in the code), and out comes how the record keeps it. *Not sure* is kept as such, and never equal.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from keel_notebook.core.filetexts import NOTHING_ASKED, Asks

Stamp = tuple[int, ...]
"""(size, mtime_ns, ctime_ns, inode): equal where a file was left alone."""

CHANGING = frozenset({"write", "remove", "rename"})
"""What the audit hook calls the doings that change a file, but for appending to it."""


class Kept(StrEnum):
    """How a record keeps a file: the roles of ``FileSeen``, and four that become others."""

    NOTHING = "nothing"
    UNSURE = "unsure"
    """An input, but nobody can tell with which content: kept as ``read`` without a digest."""
    APPEND = "append"
    """A log: no input and no product; it counts where a cell of this kernel removes it or writes it anew."""
    LEFT = "left"
    """Written where nobody's work is kept: it counts where a cell of this kernel wrote it too."""
    BASE = "base"
    """A database that was written: it counts where a cell of this kernel removes it or puts another in its place."""
    READ = "read"
    STAT = "stat"
    """Asked about, not opened: size and time of the last change count."""
    THERE = "there"
    """Only whether it is there counts."""
    ABSENT = "absent"
    LIST = "list"
    GLOB = "glob"
    WRITE = "write"
    """A product: it must be there."""
    CHANGED = "changed"
    """Read and then written: kept as ``found`` and ``write``."""
    GONE = "gone"
    """Removed: kept as a ``write`` that left nothing."""


class Observed(Struct, frozen=True):
    """One path, as far as anybody saw."""

    ways: tuple[str, ...] = ()
    """What the audit hook saw done with it, in order (``FileTouch.how``)."""
    before: Stamp | None = None
    """Its stamp when it was first met, None where it was not there."""
    after: Stamp | None = None
    known_before: bool = True
    """Whether ``before`` was looked at; of a file that only the system's watch saw it was not."""
    folder: bool = False
    mentioned: bool = False
    """Whether code or values name it."""
    asks: Asks = NOTHING_ASKED
    """What the code that names it does with files."""
    remembered: bool = False
    """Whether a function that keeps its results may have read it before: it then opens it no second time."""
    watched: bool = False
    """Whether the system would have told of any open."""
    opened: bool = False
    """Whether the system told that it was opened."""
    written: bool = False
    """Whether the system told that it was written."""
    read_first: bool = False
    """Whether it was opened and closed before anything was written to it."""
    made_inside: bool = False
    """A folder in which the step itself may have made or removed something."""
    ours: bool = False
    """Whether the step, as far as its code tells, writes it: else another program may have."""
    only_written: bool = False
    """Whether the code names it for nothing but writing."""
    home: bool = True
    """Whether it lies below the notebook's folder."""
    temporary: bool = False
    """Whether it lies where programs keep temporary files."""
    cache: bool = False
    """Whether it lies where programs keep what is their own affair."""


def kept_as(seen: Observed) -> Kept:
    """What the record says of this path."""
    if seen.cache and not seen.mentioned:
        return Kept.NOTHING
    if "append" in seen.ways and "write" not in seen.ways:
        return Kept.APPEND if seen.after is not None else Kept.NOTHING
    if "database" in seen.ways:
        same = seen.before == seen.after if seen.known_before else not seen.written
        if seen.after is None:
            return Kept.NOTHING
        return Kept.READ if same else Kept.BASE
    if not seen.folder and _was_changed(seen):
        return _changed(seen)
    through_python = _through_python(seen) if seen.ways else Kept.NOTHING
    if through_python is not Kept.NOTHING:
        return through_python
    if seen.opened:
        return Kept.LIST if seen.folder else _as_it_was(seen)
    return _mentioned(seen) if seen.mentioned else Kept.NOTHING


def _was_changed(seen: Observed) -> bool:
    return not CHANGING.isdisjoint(seen.ways) or seen.written or (seen.known_before and seen.before != seen.after)


def _changed(seen: Observed) -> Kept:
    by_python = not CHANGING.isdisjoint(seen.ways)
    ours = by_python or seen.ours
    made = seen.known_before and seen.before is None
    if made and _first_way(seen) == "read" and (seen.after is None or not ours):
        return Kept.ABSENT
    if not made and _read_too(seen, by_python=by_python):
        return Kept.CHANGED if ours else Kept.UNSURE
    if seen.after is None:
        return Kept.NOTHING if made or not seen.known_before else Kept.GONE
    if not (by_python or (seen.mentioned and seen.ours)):
        return Kept.NOTHING
    return Kept.WRITE if seen.home and not seen.temporary else Kept.LEFT


def _read_too(seen: Observed, *, by_python: bool) -> bool:
    if _first_way(seen) == "read" or (seen.read_first and (seen.mentioned or seen.ours)):
        return True
    # Native code opens a file in the same way to read it and to write it anew.
    return not by_python and seen.mentioned and not seen.only_written


def _first_way(seen: Observed) -> str:
    return next((way for way in seen.ways if way == "read" or way in CHANGING), "")


def _as_it_was(seen: Observed) -> Kept:
    """An input, if it stayed the same from when it was first met to the end."""
    return Kept.READ if not seen.known_before or seen.before == seen.after else Kept.UNSURE


def _through_python(seen: Observed) -> Kept:
    if "glob" in seen.ways:
        return Kept.GLOB
    if seen.after is None:
        return Kept.ABSENT if {"read", "list"} & set(seen.ways) else Kept.NOTHING
    if seen.folder and "list" in seen.ways:
        if seen.before != seen.after and not seen.made_inside:
            return Kept.UNSURE
        return Kept.READ if seen.mentioned and not seen.watched else Kept.LIST  # native code may read what it holds
    if "read" in seen.ways and not seen.folder:
        return _as_it_was(seen)
    return Kept.NOTHING


def _mentioned(seen: Observed) -> Kept:
    if seen.after is None:
        return Kept.ABSENT if seen.asks.looks or seen.asks.tries else Kept.NOTHING
    if seen.asks.stamps and not seen.folder:
        return Kept.STAT
    if seen.asks.looks and (seen.watched or seen.folder):
        return Kept.THERE
    if seen.watched and not seen.remembered:
        return Kept.NOTHING  # a native reader would have been seen to open it
    return Kept.READ
