"""What a flow waits for: promises that nobody answered yet, and timers that have not fired (Z31, Z38)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from keel_notebook.core.lifecycle import FORGET
from keel_notebook.core.model import Entry, EntryId, Kind, Status


class Wait(Struct, frozen=True):
    """An open promise or timer. ``since`` and ``until`` are wall time in seconds. Never a token (Z30)."""

    name: str
    step: str
    kind: str
    """``promise`` or ``sleep``."""
    since: float
    until: float | None = None
    """When a timer is due; None of a promise."""
    id: str = ""
    """Of a promise: what ``keel resolve`` takes. Empty for a timer."""
    entry: EntryId = EntryId("")

    def to_dict(self) -> dict[str, object]:
        """The wait as plain values."""
        names = ("name", "step", "kind", "since", "until", "id")
        return {name: getattr(self, name) for name in names}


def open_waits(entries: Iterable[Entry]) -> list[Wait]:
    """Open promises and timers, oldest first.

    A promise is open until it is answered, also where its step has ended: a later cell may wait for it. A timer is
    open while the newest attempt of its step has not ended.
    """
    listed = list(entries)
    attempts = {entry.step: entry.status for entry in listed if entry.kind is Kind.STEP}
    answered = {entry.key for entry in listed if entry.kind is Kind.PROMISE and entry.call == "answer"}
    found: list[Wait] = []
    for entry in listed:
        if entry.kind is Kind.RETIRE and entry.key == FORGET:
            found = [wait for wait in found if wait.step != entry.step]
        elif entry.status is not Status.RUNNING:
            continue
        elif entry.kind is Kind.PROMISE and entry.key not in answered:
            name = str(entry.ambient.get("name", entry.key))
            found.append(Wait(name, entry.step, "promise", entry.started_at, id=entry.key, entry=entry.entry))
        elif entry.kind is Kind.SLEEP and attempts.get(entry.step, Status.RUNNING) in {Status.RUNNING, Status.INTENT}:
            until = float(entry.ambient.get("wake_at", entry.started_at))
            found.append(Wait(entry.key, entry.step, "sleep", entry.started_at, until, entry=entry.entry))
    return found
