"""Results of calls to payloads and back: plain ones by MessagePack, the others by the codec (DESIGN 6)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from keel_notebook.core.ids import text_digest
from keel_notebook.core.model import Entry, NotStored, Payload
from keel_notebook.core.ports import Known
from keel_notebook.core.secrets import looks_secret, looks_secret_field, secret_text
from keel_notebook.engine import plain
from keel_notebook.errors import DamagedError

if TYPE_CHECKING:
    from keel_notebook.engine.callparts import CallParts
    from keel_notebook.engine.changes import Changed

RESULT, NEW = "result", "new"
_SILENT = frozenset({type(None), bool, int, float})
_SHORT = 12
_SHORT_KEY = 15
"""Characters of a text that is too short for a credential of any known shape."""


@functools.lru_cache(maxsize=1024)
def _telling(name: str) -> bool:
    return looks_secret(name, "x")


def secret(call: str, value: Any) -> bool:
    """Whether a result must not be written in clear: by the function's name, or by what it is (DESIGN 6, C103)."""
    kind = type(value)
    if kind in _SILENT:
        return False
    if _telling(call):
        return looks_secret(call, value)
    if kind is str and len(value) < _SHORT:
        return False  # no credential is as short as that; this is asked after every call
    if looks_secret("", value):
        return True
    todo: list[tuple[str, Any]] = [("", value)] if kind is not str else []
    while todo:
        name, item = todo.pop()
        kind = type(item)
        if kind is str:
            if looks_secret_field(name, item):
                return True
        elif kind is list or kind is tuple or kind is set:
            todo.extend((name, inner) for inner in item if type(inner) not in _SILENT)
        elif kind is dict:
            todo.extend((key if type(key) is str else "", inner) for key, inner in item.items())
    return False


def key_text(key: Any) -> str:
    """A call's key as it is kept and shown; one that holds a credential by its digest (C103)."""
    text = str(key)
    if type(key) is int or len(text) < _SHORT_KEY or not secret_text(text):
        return text
    return f"secret {text_digest('key', text)[:16]}"


def open_form(call: str, value: Any) -> bytes | None:
    """The plain form of a result that may be written in clear; None for every other."""
    raw = plain.envelope(value)
    return None if raw is None or secret(call, value) else raw


class Kept(NamedTuple):
    """What goes into the entry of a call."""

    payload: Payload
    ambient: dict[str, Any]
    missing: tuple[NotStored, ...]


def packed(parts: CallParts, call: str, value: Any, changed: Changed | None) -> Kept:
    """The payload of a result, with what was changed in place. Whatever its size it is stored: it was paid for."""
    names: dict[str, Any] = {RESULT: value}
    hidden: tuple[NotStored, ...] = ()
    if secret(call, value):
        names[RESULT] = None
        hidden = (NotStored(RESULT, type(value).__name__, "it looks like a credential"),)
    if changed is None:
        raw = plain.envelope(names[RESULT])
        if raw is not None:
            return Kept(Payload(parts.journal.blob(raw), (), (), len(raw)), {}, hidden)
        made = parts.codec.pack(names, result=None, known={}, digested=False)
        return Kept(made.payload, {"form": "graph"}, made.not_stored + hidden)
    names[NEW] = changed.new
    made = parts.codec.pack(names, result=None, known={}, digested=False)
    ambient = {"form": "graph", "changed": changed.recipes}
    return Kept(made.payload, ambient, made.not_stored + hidden + changed.refused)


def unpacked(parts: CallParts, entry: Entry) -> Any:
    """The result behind a record; a pair with the new values where something was changed in place.

    Raises DamagedError (E051), EnvelopeError (E004), UntrustedError (E050): never a guess (Z13).
    """
    if entry.payload is None:
        raise DamagedError(what=f"the result of a call in step {entry.step}", detail="there is none")
    if "form" not in entry.ambient:
        return plain.opened(parts.journal.read(entry.payload.head))
    values = parts.codec.unpack(entry.payload, resolve=_nothing_known)
    values.wake()
    found = values.names
    return (found[RESULT], found[NEW]) if "changed" in entry.ambient else found[RESULT]


def _nothing_known(known: Known) -> Any:
    raise DamagedError(what=f"the result of a call ({known.entry})", detail="it refers to a value elsewhere")
