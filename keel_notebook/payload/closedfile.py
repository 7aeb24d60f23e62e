"""A closed file: what ``with open(…) as f`` leaves under its name. It comes back closed; an open one never does."""

from __future__ import annotations

import io
import os
from typing import Any

_BINARY: dict[str, tuple[Any, str]] = {
    "BufferedReader": (io.BufferedReader, "r"),
    "BufferedWriter": (io.BufferedWriter, "w"),
    "BufferedRandom": (io.BufferedRandom, "r+"),
}
Parts = tuple[str, str, str, str]
"""The class of the binary file, the name, the mode, and the encoding of a text file (empty for a binary one)."""


def take(value: Any) -> Parts | None:
    """What makes it again; None for a file that is open, or of another kind."""
    text = type(value) is io.TextIOWrapper
    if not (text or (type(value).__name__ in _BINARY and type(value).__module__ == "_io")) or not value.closed:
        return None
    binary = value.buffer if text else value
    name, mode = value.name, value.mode
    if type(name) is not str or type(mode) is not str or type(binary).__name__ not in _BINARY:
        return None
    return type(binary).__name__, name, mode, value.encoding if text else ""


def build(kind: str, name: str, mode: str, encoding: str) -> Any:
    """The file again, closed. No file of that name is opened."""
    make, access = _BINARY[kind]
    raw: Any = io.FileIO(os.devnull, access)
    raw.name = name
    made: Any = make(raw)
    if encoding:
        made = io.TextIOWrapper(made, encoding=encoding)
        made.mode = mode
    made.close()
    return made
