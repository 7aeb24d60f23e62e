"""Which objects a collection let go, and when: what is gone by decision is no damage (``keel fsck``).

``let_go.txt`` holds a line for each: its digest, and the wall time in seconds. Lines are only ever added, before the
objects go. An entry that was written after that time must have its object: it recorded the same content anew.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection

from keel_notebook.core.model import Digest
from keel_notebook.journal.folder import Folder


def note(place: Folder, objects: Collection[Digest], *, at: float) -> None:
    """Write down that these go, at wall time ``at``.

    Best effort: a full disk must not hinder what makes room on it; fsck then says that they are missing.
    """
    if not objects:
        return
    lines = "".join(f"\n{digest} {at!r}" for digest in objects)  # a line that a death cut short ends here
    with contextlib.suppress(OSError), open(place.let_go, "a", encoding="ascii", opener=_private) as file:
        file.write(lines + "\n")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def read(place: Folder) -> dict[Digest, float]:
    """When each object was let go last, wall time in seconds. Lines that cannot be read say nothing."""
    try:
        with open(place.let_go, encoding="ascii", errors="replace") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return {}
    found: dict[Digest, float] = {}
    for line in lines:
        digest, _, at = line.partition(" ")
        with contextlib.suppress(ValueError):
            found[Digest(digest)] = float(at)
    return found
