"""The short-lived process that brings the record file and the heads up to date (DESIGN 7).

    python -P -m keel_notebook.journal.ingest FOLDER [--wait SECONDS] [--query | --history]

It is the only place in keel that opens DuckDB. It may be killed at any moment: whatever it had not finished, the
next one does. ``--query`` then answers one SELECT read from its input, ``--history`` gives a flow's entries.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import duckdb

from keel_notebook.core.model import FlowId
from keel_notebook.errors import JournalUnreachableError, KeelError
from keel_notebook.journal import collect, heads, locks, opening, wire
from keel_notebook.journal.damage import WAITING, set_aside
from keel_notebook.journal.flows import known_flows
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.heads import Index
from keel_notebook.journal.publish import clear_away, leaving, publish_heads
from keel_notebook.journal.record import NewerRecordError, RecordFile
from keel_notebook.journal.spawn import Exit
from keel_notebook.journal.takein import TakeIn, written_of
from keel_notebook.journal.wholefiles import replace_whole, write_all

_WAIT_S: Final = 60.0
_CANNOT_WRITE: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class QuestionError(Exception):
    """The SQL is not one SELECT that can be run."""


def ingest(place: Folder, *, wait_s: float) -> None:
    """Take everything in. Raises HeldError, StillLockedError, NewerRecordError, OSError, duckdb.Error."""
    if not place.exists():
        return
    with locks.hold(place.lock, wait_s=wait_s):
        index = _index(place)
        if index is None and not os.path.exists(place.record):
            # So that a kernel that attaches meanwhile does not take the missing index for a lost one.
            os.makedirs(place.heads, mode=0o700, exist_ok=True)
            replace_whole(place.index, heads.encode_index(index := Index()))
        try:
            _take_and_publish(place, index)
        except duckdb.Error as error:
            if opening.why(error) is not opening.Why.DAMAGED:
                raise
            _renew(place, index, error)
        except opening.HeldError:
            if _heads_lost(place, index):
                _rebuild_heads(place, index)  # whoever attaches must not wait for a viewer to be closed
            raise
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{place.damaged}/{WAITING}")


def answer(place: Folder, ask: Callable[[RecordFile], bytes], *, wait_s: float) -> bytes:
    """What ``ask`` finds in the record file after everything was taken in.

    Where the file is held, or the folder only readable, a local copy is brought up to date and asked instead. A
    damaged block may be met here first: then the file is set aside and rebuilt, and asked again.
    """
    try:
        ingest(place, wait_s=wait_s)
        with locks.hold(place.lock, wait_s=wait_s):
            record = RecordFile(place.record, read_only=True)
    except (opening.HeldError, OSError, duckdb.Error):
        return _answer_from_copy(place, ask)
    try:
        return _asked(record, ask)
    except duckdb.Error as error:
        if opening.why(error) is not opening.Why.DAMAGED:
            raise
        with locks.hold(place.lock, wait_s=wait_s):
            _renew(place, _index(place), error)
            record = RecordFile(place.record, read_only=True)
        return _asked(record, ask)


def _answer_from_copy(place: Folder, ask: Callable[[RecordFile], bytes]) -> bytes:
    with opening.local_copy(place) as copy:
        record = RecordFile(copy)
        taken = TakeIn(place, record, _readable_index(place))
        taken.run()
        taken.close()
        record.close(fold=True)
        return _asked(RecordFile(copy, read_only=True), ask)


def _take_and_publish(place: Folder, index: Index | None, saved: list[wire.Stored] | None = None) -> None:
    with _taking(place, index, saved) as taken:
        if leaving(taken) or not taken.heads_can_wait():
            publish_heads(place, taken, generation=taken.generation, totals=taken.totals, resumable=True)
            clear_away(place, taken)


@contextlib.contextmanager
def _taking(place: Folder, index: Index | None, saved: list[wire.Stored] | None) -> Iterator[TakeIn]:
    with opening.open_record(place) as record:
        taken = TakeIn(place, record, index)
        if saved:
            record.store([written_of(item) for item in saved])
        taken.run()
        taken.finish(known_flows(place.path))
    try:
        yield taken  # the record file is checkpointed and closed: what it holds may be deleted elsewhere
    finally:
        taken.close()


def _heads_lost(place: Folder, index: Index | None) -> bool:
    return index is None or not all(os.path.exists(place.head(flow)) for flow in index.flows)


def _rebuild_heads(place: Folder, index: Index | None) -> None:
    with opening.local_copy(place) as copy:
        record = RecordFile(copy)
        taken = TakeIn(place, record, index)
        taken.run()
        totals = record.totals(log.flow for log in taken.changed())
        generation = record.generation()
        record.close(fold=False)
        publish_heads(place, taken, generation=generation, totals=totals, resumable=False)
        taken.close()


def _renew(place: Folder, index: Index | None, error: duckdb.Error) -> None:
    moved = opening.put_aside(place, error)
    _take_and_publish(place, index, opening.salvage(place, moved))


def _index(place: Folder) -> Index | None:
    try:
        return heads.read_index(place.index)
    except FileNotFoundError:
        return None
    except heads.Unreadable as error:
        set_aside(place, [place.index], f"The index of the heads was damaged ({error}); all heads are rebuilt.")
        return None


def _readable_index(place: Folder) -> Index | None:
    try:
        return heads.read_index(place.index)
    except (OSError, heads.Unreadable):
        return None


def _asked(record: RecordFile, ask: Callable[[RecordFile], bytes]) -> bytes:
    try:
        return ask(record)
    finally:
        record.close(fold=False)


def _select(sql: str) -> Callable[[RecordFile], bytes]:
    def ask(record: RecordFile) -> bytes:
        try:
            columns, rows = record.select(sql)
        except (duckdb.ProgrammingError, duckdb.NotSupportedError, duckdb.PermissionException) as error:
            raise QuestionError(str(error).split("\n")[0]) from error
        except duckdb.DataError as error:
            # Its words may hold a value of the journal, which no message of keel ever does.
            raise QuestionError(f"a value does not fit ({type(error).__name__})") from error
        if not columns:
            raise QuestionError("there is no SELECT")
        return wire.pack({"columns": columns, "rows": [[_sendable(value) for value in row] for row in rows]})

    return ask


def _sendable(value: Any) -> Any:
    match value:
        case None | bool() | float() | str() | bytes():
            return value
        case int():
            return value if abs(value) < 1 << 63 else str(value)
        case list() | tuple():
            return [_sendable(item) for item in value]
        case dict():
            return {str(key): _sendable(item) for key, item in value.items()}
        case _:
            return value.isoformat(sep=" ") if hasattr(value, "hour") and hasattr(value, "year") else str(value)


def _history(flow: str) -> Callable[[RecordFile], bytes]:
    def ask(record: RecordFile) -> bytes:
        return wire.pack([list(item) for item in record.bodies(FlowId(flow))])

    return ask


def main(argv: list[str] | None = None) -> int:
    """The child's whole life; returns its exit code."""
    parser = argparse.ArgumentParser(prog="keel_notebook.journal.ingest")
    parser.add_argument("folder")
    parser.add_argument("--wait", type=float, default=_WAIT_S)
    parser.add_argument("--query", action="store_true")
    parser.add_argument("--history", action="store_true")
    parser.add_argument("--budget", default="")
    asked = parser.parse_args(argv)
    os.umask(0o077)
    place = Folder(asked.folder)
    try:
        if asked.query or asked.history:
            question = sys.stdin.buffer.read().decode("utf-8")
            ask = _select(question) if asked.query else _history(question)
            write_all(1, answer(place, ask, wait_s=asked.wait))
        else:
            ingest(place, wait_s=asked.wait)
            if asked.budget:
                _hold(place, asked.budget)
    except Exception as error:  # noqa: BLE001 - the top of a process: what went wrong becomes its exit code and a note
        return _ended(place, error, asked=asked.query or asked.history)
    return Exit.DONE


class _SystemClock:
    def now(self) -> float:
        return time.time()  # noqa: TID251 - the child's own clock

    def monotonic(self) -> float:
        return time.monotonic()  # noqa: TID251 - as above


def _hold(place: Folder, budget: str) -> None:
    limit = int(budget) if budget.isdecimal() else None
    with contextlib.suppress(JournalUnreachableError):  # a kernel has come meanwhile: whoever ends last looks
        collect.hold_budget(Path(place.path), limit, clock=_SystemClock())


def _ended(place: Folder, error: Exception, *, asked: bool) -> Exit:
    match error:
        case QuestionError():
            code, words = Exit.REFUSED, str(error)
        case opening.HeldError() | locks.StillLockedError():
            code, words = Exit.BUSY, str(error) or "another process is working on the record file"
        case NewerRecordError():
            code, words = Exit.FAULT, "the record file was written by a newer version of keel"
        case OSError() if error.errno == errno.ENOSPC:
            code, words = Exit.FULL, "the disk is full"
        case OSError() if error.errno in _CANNOT_WRITE:
            code, words = Exit.UNWRITABLE, f"the folder cannot be used ({os.strerror(error.errno or 0)})"
        case KeelError():
            code, words = Exit.FAULT, str(error)
        case _:
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{os.path.basename(last.filename)}:{last.lineno}"
            code, words = Exit.FAULT, f"{type(error).__name__} at {where}"
    print(words, file=sys.stderr)  # noqa: T201 - whoever waits for this process reads it
    if not asked:
        with contextlib.suppress(OSError):
            os.makedirs(place.damaged, mode=0o700, exist_ok=True)
            line = f"The record file is not up to date: {words}. What is recorded waits in the inbox; nothing is lost."
            replace_whole(f"{place.damaged}/{WAITING}", line.encode() + b"\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
