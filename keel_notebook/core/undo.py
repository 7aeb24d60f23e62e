"""Undoing what steps did to the world: which undos there are, in which order, and how far it came (O26-O28; pure).

An undo is *registered* while its step runs (``keel.undo``) or by a cell (``%%keel_undo``). Undoing goes backwards:
last registered, first undone. Before the first one the flow is marked ``compensating``, with the steps concerned, so
that a kernel which dies in the middle is followed by one that goes on, and does none twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from keel_notebook.core.flowstate import STATUS, FlowStatus
from keel_notebook.core.model import Entry, EntryId, Kind, Status

PREFIX = "undo:"
"""Reserved: the journaled step that undoes step NAME is ``undo:NAME``."""
REGISTERED = "registered"
"""The key of an entry that registers an undo of the step that it names."""


BY_HAND = "taken back by hand: a person's word"
"""Why an undo that never ran is not asked for any more (`%keel undo --skip`)."""
_OVER = frozenset({Status.OK, Status.SKIPPED})


class Done(Struct, frozen=True):
    """A step that was done, and may be undone: its attempt and its name."""

    step: str
    attempt: EntryId


class Undoing(Struct, frozen=True):
    """An undoing that was begun and has not ended."""

    steps: tuple[Done, ...]
    """What is to be undone, in the order in which it was done."""
    code: str
    """Why: the error code of what failed, or ``asked``."""


def in_order(done: Iterable[Done]) -> list[Done]:
    """Steps in the order in which they were done: by their attempts' entries, which a replay does not write anew."""
    return sorted(done, key=lambda one: tuple(map(int, one.attempt.split("."))))


def undoing(entries: Iterable[Entry]) -> Undoing | None:
    """The undoing that is going on in a flow. ``entries``: newest first."""
    for entry in entries:
        if entry.kind is Kind.MARKER and entry.key == STATUS and "undo" in entry.ambient:
            if entry.ambient["status"] != FlowStatus.COMPENSATING:
                return None
            steps = tuple(Done(name, EntryId(attempt)) for name, attempt in entry.ambient["undo"])
            return Undoing(steps, entry.ambient["code"])
    return None


def registered(entries: Sequence[Entry], done: Done) -> list[Entry]:
    """The undos of one attempt that are left to do, last registered first; each place counts once (O26)."""
    places: dict[tuple[str, int], Entry] = {}
    over: set[tuple[str, int]] = set()
    for entry in entries:
        if entry.kind is not Kind.UNDO or entry.ambient.get("of") != done.attempt:
            continue
        place = (entry.call, entry.occurrence)
        if entry.step == done.step:
            places.pop(place, None)  # registered again: it replaces the former, and counts as the newest
            places[place] = entry
        elif entry.step == PREFIX + done.step and entry.status in _OVER:
            over.add(place)  # by its place: a kernel that goes on registers its undo cells again
    return [entry for place, entry in reversed(places.items()) if place not in over]


def identity(done: Done, registration: Entry) -> str:
    """What makes two attempts at an undo attempts at the same one, registered again in between or not (Z23)."""
    return f"{done.attempt} {registration.call} {registration.occurrence}"
