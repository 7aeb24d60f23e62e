"""Results of calls to payloads and back: plain ones by MessagePack, the others by the codec (DESIGN 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keel_notebook.core.model import Entry, NotStored, Payload
from keel_notebook.core.ports import Known
from keel_notebook.engine import plain
from keel_notebook.errors import DamagedError

if TYPE_CHECKING:
    from keel_notebook.engine.callparts import CallParts
    from keel_notebook.engine.changes import Changed

RESULT, NEW = "result", "new"


def packed(
    parts: CallParts, value: Any, raw: bytes | None, changed: Changed | None, ambient: dict[str, Any]
) -> tuple[Payload, dict[str, Any], tuple[NotStored, ...]]:
    """The payload of a result, with what was changed in place; what goes into ``ambient``; and what is missing.

    ``raw`` is the plain form of the value where it has one. Whatever its size, a result is stored: it was paid for.
    """
    if changed is None and raw is not None:
        return Payload(parts.journal.blob(raw), (), (), len(raw)), ambient, ()
    names: dict[str, Any] = {RESULT: value}
    refused: tuple[NotStored, ...] = ()
    if changed is not None:
        refused = changed.refused
        names[NEW] = changed.new
        ambient = ambient | {"changed": changed.recipes}
    made = parts.codec.pack(names, result=None, known={})
    return made.payload, ambient | {"form": "graph"}, made.not_stored + refused


def unpacked(parts: CallParts, entry: Entry) -> Any:
    """The result behind a record; a pair with the new values where something was changed in place.

    Raises DamagedError (E051), EnvelopeError (E004), UntrustedError (E050): never a guess (Z13).
    """
    if entry.payload is None:
        raise DamagedError(what="the result of a call", step=entry.step, detail="there is none")
    if "form" not in entry.ambient:
        return plain.opened(parts.journal.read(entry.payload.head))
    found = parts.codec.unpack(entry.payload, resolve=_nothing_known).names
    return (found[RESULT], found[NEW]) if "changed" in entry.ambient else found[RESULT]


def _nothing_known(known: Known) -> Any:
    raise DamagedError(what="the result of a call", step=known.entry, detail="it refers to a value elsewhere")
