"""Why a value cannot be stored: which part of it is guilty, and what its owner can do (C50, C52, DESIGN 6)."""

from __future__ import annotations

import io
from typing import Any

from keel_notebook.core.model import NotStored
from keel_notebook.payload.paths import path_to
from keel_notebook.payload.shapes import one_way
from keel_notebook.payload.typename import type_name


class Refused(Exception):
    """A part that will not be stored although pickle might take it."""

    def __init__(self, part: Any, hint: str = "") -> None:
        super().__init__(hint)
        self.part = part
        self.hint = hint


class Secret(Exception):
    """A part that looks like a credential."""

    def __init__(self, part: Any) -> None:
        super().__init__("looks like a credential")
        self.part = part


_CREDENTIAL = "looks like a credential: never written. Its cell has to run again, or give it another name"
_HINTS = {
    "generator": "a generator is used up by reading it: make a list of it",
    "coroutine": "await it and keep the result",
}
_FILE = "an open file belongs to this process: open it where it is read, or keep its content"
_TEMPORARY = "its file or folder goes with this process: make it where it is used"
_LIVE = "it lives in this process only: make it in a cell of its own, marked --always"
_ITERATOR = "an iterator is used up by reading it: keep what it goes over"


def secret(name: str, value: Any) -> NotStored:
    """A name whose value looks like a credential, or holds one."""
    return NotStored(name, type_name(type(value)), _CREDENTIAL)


def not_stored(name: str, value: Any, part: Any, hint: str = "") -> NotStored:
    """A name that is left out, with the way to the guilty part: ``box.items[3] (generator): …``."""
    reason = hint or _hint(part)
    if part is not value:
        way = path_to(value, part)
        where = f"{name}{way}" if way is not None else f"something inside {name}"
        reason = f"{where} ({type_name(type(part))}): {reason}"
    return NotStored(name, type_name(type(value)), reason)


def _hint(part: Any) -> str:
    cls = type(part)
    if cls.__name__ in _HINTS:
        return _HINTS[cls.__name__]
    if cls.__module__ == "tempfile":
        return _TEMPORARY
    if issubclass(type(part), io.IOBase):
        return _FILE
    if one_way(cls):
        return _ITERATOR
    return _LIVE
