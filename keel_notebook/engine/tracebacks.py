"""What a person sees of an error in one of many calls: their own lines, which item it was, and with what.

An executor runs a call below frames of its own, and a process sends the error back with a traceback of text in which
those stand first. Neither tells anything about the person's code.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

_INTERNAL = tuple(
    f"{Path(file).parent}/" for file in (concurrent.futures.__file__, asyncio.__file__, str(Path(__file__).parent))
)
_FILES = frozenset({threading.__file__})


def own_lines(error: BaseException) -> BaseException:
    """The error, with the frames above the person's own taken away; as it is where none of them is theirs."""
    first = error.__traceback__
    while first is not None and _internal(first):
        first = first.tb_next
    return error if first is None else error.with_traceback(first)


def _internal(here: TracebackType) -> bool:
    file = here.tb_frame.f_code.co_filename
    return file in _FILES or file.startswith(_INTERNAL)


class WorkerTraceback(Exception):
    """Stands behind an error that happened in another process: the lines that it passed through there."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)

    def __str__(self) -> str:
        return f"\n{self.text}"


def in_text(error: BaseException) -> str:
    """The person's own part of a traceback, to be sent to another process."""
    own_lines(error)
    return "".join(traceback.format_exception(error)).rstrip()


def note(error: BaseException, text: str) -> None:
    """Add a note to an error, once."""
    if text not in getattr(error, "__notes__", ()):
        error.add_note(text)


def which(at: int, of: int, shown: Any) -> str:
    """Which of many calls: ``item 17 of 1,000, called with 'text'``. ``shown`` is what may be seen of its arguments."""
    return f"item {at:,} of {of:,}" + (f", called with {shown}" if shown else "")
