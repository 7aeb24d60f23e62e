"""What is wrong with a journal, said to a person: damage that was set aside, and places that are unsafe.

Nothing is ever deleted because it is damaged: it moves to ``damaged/`` under a new name, and a note says what
it was and what was lost with it. ``keel doctor`` shows the notes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from keel_notebook.journal.folder import Folder
from keel_notebook.journal.wholefiles import write_all

_NOTES: Final = "notes.txt"
WAITING: Final = "waiting.txt"
"""Why the last ingest could not finish; gone once one does."""

_SYNCED: Final = {
    "dropbox": "Dropbox",
    "onedrive": "OneDrive",
    "google drive": "Google Drive",
    "googledrive": "Google Drive",
    "my drive": "Google Drive",
    "mobile documents": "iCloud",
    "icloud drive": "iCloud",
    "iclouddrive": "iCloud",
}


def troubles(folder: Path | str) -> list[str]:
    """Everything that a person should know about this journal, oldest first; empty if all is well.

    Raises OSError where the notes cannot be read.
    """
    place = Folder(folder)
    found = _lines(f"{place.damaged}/{_NOTES}") + _lines(f"{place.damaged}/{WAITING}")
    cloud = cloud_folder(place.path)
    if cloud:
        found.append(
            f"the journal is in a folder that {cloud} synchronises: it may be changed from outside while it is used."
            " Choose another one with `%keel journal PATH`."
        )
    return found


def note(place: Folder, line: str) -> None:
    """Keep a line for ``troubles``; the same line is kept once. Best effort: a full disk must not hide the cause."""
    with contextlib.suppress(OSError):
        path = f"{place.damaged}/{_NOTES}"
        if line in _lines(path):
            return
        os.makedirs(place.damaged, mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            write_all(fd, line.replace("\n", " ").encode("utf-8", "replace") + b"\n")
        finally:
            os.close(fd)


def set_aside(place: Folder, paths: Iterable[str], why: str) -> list[str]:
    """Move files to ``damaged/`` under names that are free, note why, and return where they are. Raises OSError."""
    os.makedirs(place.damaged, mode=0o700, exist_ok=True)
    there = [path for path in paths if os.path.lexists(path)]
    number = 1
    while any(os.path.lexists(_aside(place, path, number)) for path in there):
        number += 1
    moved = [_aside(place, path, number) for path in there]
    for path, target in zip(there, moved, strict=True):
        os.rename(path, target)
    names = ", ".join("damaged/" + os.path.basename(target) for target in moved) or "nothing"
    note(place, f"{why} Set aside: {names}.")
    return moved


def was_set_aside(place: Folder, path: str) -> bool:
    """Whether a file of this name was ever set aside."""
    return os.path.lexists(_aside(place, path, 1))


def cloud_folder(path: str) -> str | None:
    """The name of the service that synchronises a folder, or None where none is known to."""
    real = os.path.realpath(path)
    for part in real.split(os.sep):
        lowered = part.lower()
        for mark, service in _SYNCED.items():
            if lowered == mark or lowered.startswith((mark + " ", mark + "-")):
                return service
    if f"{os.sep}Library{os.sep}CloudStorage{os.sep}" in real:
        return "a cloud service"
    while real != os.path.dirname(real):
        if os.path.isdir(f"{real}/.dropbox.cache"):
            return "Dropbox"
        real = os.path.dirname(real)
    return None


def _aside(place: Folder, path: str, number: int) -> str:
    stem, dot, rest = os.path.basename(path).lstrip(".").partition(".")
    return f"{place.damaged}/{stem}-{number}{dot}{rest}"


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as notes:
            return [line for line in notes.read().split("\n") if line]
    except FileNotFoundError:
        return []
