"""Opens the record file, whatever state it or its drive is in (C81, C82, C84)."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from enum import Enum
from typing import Final

import duckdb

from keel_notebook.journal.damage import note, set_aside
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.record import RecordFile
from keel_notebook.journal.wholefiles import scratch_name, sync_file, sync_folder
from keel_notebook.journal.wire import Stored


class Why(Enum):
    """Why DuckDB refuses."""

    HELD = "open in another program"
    NO_LOCKS = "a drive without locks"
    FULL = "disk full"
    UNWRITABLE = "not writable"
    MEMORY = "out of memory"
    DAMAGED = "damaged"


class HeldError(Exception):
    """The record file is open in another program."""


_SAID: Final = (
    (Why.NO_LOCKS, ("locks are not supported", "operation not supported", "no locks available")),
    (Why.NO_LOCKS, ("function not implemented",)),
    (Why.HELD, ("could not set lock", "conflicting lock", "resource temporarily unavailable")),
    (Why.FULL, ("no space left", "quota exceeded", "file too large")),
    (Why.UNWRITABLE, ("permission denied", "read-only file system", "operation not permitted")),
    (Why.MEMORY, ("out of memory", "cannot allocate memory", "too many open files")),
)


def why(error: duckdb.Error) -> Why:
    """What an error of DuckDB means. Its classes do not tell these apart, so its words have to."""
    words = str(error).lower()
    if isinstance(error, duckdb.OutOfMemoryException):
        return Why.MEMORY
    return next((reason for reason, marks in _SAID if any(mark in words for mark in marks)), Why.DAMAGED)


def raised(error: duckdb.Error) -> Exception:
    """The exception for an error that is no damage."""
    match why(error):
        case Why.HELD:
            pid = re.search(r"PID (\d+)", str(error))
            return HeldError(f"journal.duckdb is open in another program{f' (pid {pid[1]})' if pid else ''}")
        case Why.FULL:
            return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        case Why.UNWRITABLE:
            return OSError(errno.EACCES, os.strerror(errno.EACCES))
        case _:
            return error


@contextlib.contextmanager
def open_record(place: Folder) -> Iterator[RecordFile]:
    """The record file for writing; checkpointed and closed at the end, closed as it is on an error.

    On a drive without locks the work is done on a local copy, which replaces the file at the end. Raises
    HeldError, OSError, NewerRecordError, and duckdb.Error where the file is damaged.
    """
    _drop_empty(place.record)
    try:
        record = RecordFile(place.record)
    except duckdb.Error as error:
        if why(error) is Why.NO_LOCKS:
            _drop_empty(place.record)
            with local_copy(place) as copy:
                with _closing(RecordFile(copy)) as record:
                    yield record
                _copy_back(place, copy)
            return
        if why(error) is not Why.DAMAGED:
            raise raised(error) from error
        raise
    with _closing(record):
        yield record


@contextlib.contextmanager
def local_copy(place: Folder) -> Iterator[str]:
    """The path of a copy of the record file in a folder of its own, which is gone afterwards. Raises OSError."""
    folder = tempfile.mkdtemp(prefix="keel-")
    try:
        copy = folder + "/journal.duckdb"
        for ending in ("", ".wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(place.record + ending, copy + ending)
        yield copy
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def put_aside(place: Folder, error: duckdb.Error) -> list[str]:
    """Move a damaged record file and what DuckDB keeps beside it to ``damaged/``; the new paths. Raises OSError."""
    words = str(error).split("\n")[0][:200]
    return set_aside(place, [place.record, place.record + ".wal"], f"The record file was damaged ({words}).")


def salvage(place: Folder, moved: list[str]) -> list[Stored]:
    """What can still be read of a record file that was set aside: as ``RecordFile.bodies``."""
    found: list[Stored] = []
    with contextlib.suppress(duckdb.Error, IndexError):
        record = RecordFile(moved[0], read_only=True)
        try:
            found = record.readable_bodies()
        finally:
            with contextlib.suppress(duckdb.Error):
                record.close(fold=False)
        note(place, f"{len(found)} entries could be read from {os.path.basename(moved[0])} and were kept.")
    return found


@contextlib.contextmanager
def _closing(record: RecordFile) -> Iterator[RecordFile]:
    try:
        yield record
    except BaseException:
        with contextlib.suppress(duckdb.Error):
            record.close(fold=False)
        raise
    try:
        record.close(fold=True)
    except duckdb.Error as error:
        if why(error) is not Why.DAMAGED:
            raise raised(error) from error
        raise


def _drop_empty(path: str) -> None:
    # What is left where DuckDB was refused, or killed, before it wrote anything.
    with contextlib.suppress(FileNotFoundError):
        if os.stat(path).st_size == 0:
            os.unlink(path)


def _copy_back(place: Folder, copy: str) -> None:
    scratch = scratch_name(place.record)
    try:
        shutil.copyfile(copy, scratch)
        fd = os.open(scratch, os.O_RDWR)
        try:
            os.fchmod(fd, 0o600)
            sync_file(fd)
        finally:
            os.close(fd)
        # First the old file's log: beside the new file it would be replayed into it.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place.record + ".wal")
        os.replace(scratch, place.record)
        sync_folder(place.path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(scratch)
