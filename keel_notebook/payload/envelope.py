"""The outermost form of a payload: a MessagePack map with a schema tag (K44)."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgpack

from keel_notebook.errors import DamagedError

SCHEMA = "keel.step/v1"


class Opened(NamedTuple):
    """What an envelope held. ``bare``: the value stood there without an envelope, as in older journals."""

    content: Any
    bare: bool


def seal(content: Any) -> bytes:
    """``content`` in an envelope of this version."""
    sealed: bytes = msgpack.packb({"schema": SCHEMA, "payload": content}, use_bin_type=True)
    return sealed


def open_envelope(raw: bytes) -> Opened:
    """What is in an envelope. Raises DamagedError (E051) for other schemas, by name, and for what does not decode."""
    try:
        value = msgpack.unpackb(raw, raw=False, strict_map_key=False, use_list=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise DamagedError(what="a payload", detail=f"it is not MessagePack ({type(error).__name__})") from None
    if not isinstance(value, dict) or "schema" not in value:
        return Opened(value, bare=True)
    if value["schema"] != SCHEMA:
        raise DamagedError(what="a payload", detail=f"its schema {str(value['schema'])[:80]!r} is not {SCHEMA!r}")
    if "payload" not in value:
        raise DamagedError(what="a payload", detail="its envelope is empty")
    return Opened(value["payload"], bare=False)
