"""Journals that an external command keeps itself, where its step names them (``--journal-file``; K47). Pure.

What a command did before it failed, only its own journal can tell. A step whose last attempt did not end well is
therefore not run again once that journal went on since the attempt began: it could do half of it twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from keel_notebook.core.entries import RECORDS
from keel_notebook.core.lifecycle import REVIVE
from keel_notebook.core.model import Digest, Entry, FileSeen, Kind, Status

ROLE = "journal"
"""In ``FileSeen.role``: what the command's journal held when the attempt began. It is no input of the step."""

_SETTLED = frozenset({Status.OK, Status.SKIPPED})

Now = Callable[[Sequence[FileSeen]], Mapping[str, Digest | None]]
"""What files hold now, by ``FileSeen.asked``; None where that cannot be told."""


def acted(newest_first: Iterable[Entry], now: Now) -> str:
    """The journals of a step's last attempt that went on since it began; empty where it ended well.

    A person's word (``rerun``, ``forget``) after the attempt settles it as well. ``newest_first``: what
    ``lifecycle.of_step`` gives.
    """
    tried = unsettled(newest_first)
    return went_on(tried.files, now) if tried is not None else ""


def went_on(files: Sequence[FileSeen], now: Now) -> str:
    """Which of these journals hold something else now. Unknown is never equal."""
    journals = [seen for seen in files if seen.role == ROLE]
    held = now(journals) if journals else {}
    changed = (seen.path for seen in journals if seen.digest is None or held.get(seen.asked) != seen.digest)
    return ", ".join(changed)


def unsettled(newest_first: Iterable[Entry]) -> Entry | None:
    """The last attempt of a step, where it did not end well and no person's word came after it."""
    for entry in newest_first:
        if entry.kind is Kind.RETIRE and entry.key != REVIVE:
            return None
        if entry.kind in RECORDS:
            return None if entry.status in _SETTLED else entry
    return None
