"""Values of plain cells that a payload refers to: the live object where it is the same, else the copy that lies beside.

A step that keeps an object of a plain cell (``app.db = con``, ``view = grid[:2]``) is recorded with a reference to the
name that it read. A replay finds the object there; a restore without a run takes the copy, where there can be one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from keel_notebook.core.model import Blob, Payload
from keel_notebook.core.ports import PLAIN, Known
from keel_notebook.errors import DamagedError

FIELD = "beside"


def to_wire(payload: Payload) -> tuple[Any, ...]:
    """The payload of the copies, as the payload that it lies beside keeps it."""
    head = payload.head
    return (head.size, head.inline, head.object), payload.buffers, payload.refs, payload.bytes


def joined(payload: Payload, copies: Payload) -> Payload:
    """A payload that goes nowhere without its copies."""
    own = () if copies.head.object is None else (copies.head.object,)
    return Payload(
        payload.head,
        (*payload.buffers, *copies.buffers, *own),
        tuple(dict.fromkeys((*payload.refs, *copies.refs))),
        payload.bytes + copies.bytes,
    )


def resolver(
    content: Mapping[str, Any], resolve: Callable[[Known], Any], unpack: Callable[[Payload], Mapping[str, Any]]
) -> Callable[[Known], Any]:
    """What finds the objects that ``content`` refers to. Raises as ``resolve`` does where there is no copy either."""
    wire = content.get(FIELD)
    copies: dict[str, Any] = {}

    def found(known: Known) -> Any:
        try:
            return resolve(known)
        except DamagedError:
            if known.entry != PLAIN or wire is None:
                raise
            if not copies:
                copies.update(unpack(Payload(Blob(*wire[0]), tuple(wire[1]), tuple(wire[2]), wire[3])))
            if known.name not in copies:
                raise
            return copies[known.name]

    return found
