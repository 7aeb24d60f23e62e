"""What a cell shows: recorded while it is shown, kept as bytes, shown again (DESIGN 4.5, 4.6, 6 "Outputs").

This is the door; behind it are the taps (``tap_kernel``, ``tap_shell``), what makes a foreign journal's outputs
harmless (``tap_trust``), and the folding (``core/fold``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgpack

from keel_notebook.capture.tap_kernel import KernelTap
from keel_notebook.capture.tap_shell import ShellTap
from keel_notebook.capture.tap_trust import has_script, sanitised
from keel_notebook.core.ports import Message, Tap
from keel_notebook.core.redact import HIDDEN
from keel_notebook.core.secrets import masked_text
from keel_notebook.core.shown import Caps
from keel_notebook.errors import DamagedError

__all__ = [
    "KernelTap",
    "ShellTap",
    "has_script",
    "make_tap",
    "pack_messages",
    "sanitised",
    "unpack_live",
    "unpack_messages",
]

SCHEMA = "keel.outputs/v1"
_LONG = 1
"""Extension type of integers that MessagePack does not hold: their decimal digits."""


def make_tap(shell: Any, *, caps: Caps | None = None) -> Tap:
    """The tap for a shell: that of its kernel, or of the terminal where it has none."""
    if getattr(getattr(shell, "kernel", None), "session", None) is not None:
        return KernelTap(shell, caps=caps)
    return ShellTap(shell, caps=caps)


def pack_messages(messages: Iterable[Message], live: Iterable[Message] = ()) -> bytes:
    """Messages as MessagePack: ``{"schema", "messages": [[kind, content, metadata, buffers], …]}``.

    ``live`` are those for a kernel in which the widgets live; what is the same in both is its number there. What has
    the shape of a credential is masked in their texts: it is never written in clear (C103).
    """
    wire = [_wire(message) for message in messages]
    content: dict[str, Any] = {"schema": SCHEMA, "messages": wire}
    if also := [_wire(message) for message in live]:
        content["live"] = [wire.index(one) if one in wire else one for one in also]
    packed: bytes = msgpack.packb(content, default=_long, unicode_errors="surrogatepass", use_bin_type=True)
    return packed


def unpack_messages(packed: bytes) -> tuple[Message, ...]:
    """The messages behind bytes made by ``pack_messages``. Raises DamagedError (E051) for anything else."""
    try:
        wire = msgpack.unpackb(packed, ext_hook=_read_long, unicode_errors="surrogatepass", strict_map_key=False)
        if wire["schema"] != SCHEMA:
            raise DamagedError(what="the output", detail="its schema is not " + SCHEMA)
        return tuple(Message(kind, content, meta, tuple(buffers)) for kind, content, meta, buffers in wire["messages"])
    except (ValueError, KeyError, TypeError, msgpack.UnpackException) as problem:
        raise DamagedError(what="the output", detail=f"it does not decode ({type(problem).__name__})") from problem


def unpack_live(packed: bytes) -> tuple[Message, ...]:
    """The messages for a kernel in which the widgets live, if there were any. Raises as ``unpack_messages`` does."""
    messages = unpack_messages(packed)
    wire = msgpack.unpackb(packed, ext_hook=_read_long, unicode_errors="surrogatepass", strict_map_key=False)
    return tuple(messages[one] if isinstance(one, int) else _read(*one) for one in wire.get("live", ()))


def _wire(message: Message) -> list[Any]:
    return [message.kind, _masked(message.content), dict(message.metadata), list(message.buffers)]


def _read(kind: str, content: Any, meta: Any, buffers: Any) -> Message:
    return Message(kind, content, meta, tuple(buffers))


def _masked(value: Any) -> Any:
    match value:
        case str():
            return masked_text(value, HIDDEN)
        case Mapping():  # pictures are text of another kind
            return {name: part if str(name).startswith("image/") else _masked(part) for name, part in value.items()}
        case list() | tuple():
            return [_masked(part) for part in value]
        case _:
            return value


def _long(value: Any) -> msgpack.ExtType:
    if isinstance(value, int):
        return msgpack.ExtType(_LONG, str(value).encode())
    raise TypeError(f"{type(value).__name__} is no message content")


def _read_long(code: int, digits: bytes) -> int:
    if code != _LONG:
        raise ValueError("an extension type that this version does not know")
    return int(digits)
