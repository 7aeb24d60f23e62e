"""Plain values as MessagePack: the fast way for the results and arguments of durable calls (DESIGN 6, 10; K44).

Plain means: of exactly these types all the way down (None, bool, int of 64 bits, float, str, bytes, list, dict), and no
container met twice. Such a value is the same after the round trip, so it needs no graph and no pickle. Everything
else goes to the codec.
"""

from __future__ import annotations

from typing import Any, Final

import msgpack

from keel_notebook.errors import EnvelopeError

SCHEMA: Final = "keel.step/v1"
MAX_NODES: Final = 5_000

ATOMS: Final = frozenset({type(None), bool, int, float, str, bytes})
_pack: Final = msgpack.Packer(autoreset=True, strict_types=True, unicode_errors="surrogatepass").pack
_HEAD: Final = b"\x82\xa6schema\xac" + SCHEMA.encode() + b"\xa7payload"
"""``{"schema": "keel.step/v1", "payload":`` as MessagePack: the value's own bytes follow."""


def plain(value: Any) -> bool:
    """Whether the value is plain, and small enough to look through."""
    if type(value) in ATOMS:
        return True
    seen: set[int] = set()
    todo = [value]
    count = 0
    while todo:
        item = todo.pop()
        kind = type(item)
        if kind in ATOMS:
            continue
        if (kind is not list and kind is not dict) or id(item) in seen:
            return False
        seen.add(id(item))
        count += len(item)
        if count > MAX_NODES:
            return False
        if kind is dict:
            if not all(type(key) in ATOMS for key in item):
                return False
            todo.extend(item.values())
        else:
            todo.extend(item)
    return True


def envelope(value: Any) -> bytes | None:
    """The tagged payload of a plain value; None where the value is not plain."""
    if not plain(value):
        return None
    try:
        return _HEAD + bytes(_pack(value))
    except (OverflowError, ValueError):  # an int of more than 64 bits, nesting deeper than MessagePack goes
        return None


def bare(value: Any) -> bytes | None:
    """The value alone, untagged, for digests; None where it is not plain."""
    try:
        return bytes(_pack(value)) if plain(value) else None
    except (OverflowError, ValueError):
        return None


def opened(raw: bytes) -> Any:
    """The value behind ``envelope``, or behind a journal older than the tag: that one is the bare value (K44).

    Raises EnvelopeError: E003 for a tag of another version, E004 for bytes that do not decode. No guess (Z13).
    """
    known = raw.startswith(_HEAD)  # nearly always: then the value alone is left to read
    try:
        rest = memoryview(raw)[len(_HEAD) :] if known else raw
        value = msgpack.unpackb(rest, unicode_errors="surrogatepass", strict_map_key=False)
    except Exception as error:  # msgpack has many ways to say it; the fact is the same
        raise EnvelopeError(what="a payload", detail=type(error).__name__) from error
    if known:
        return value
    if type(value) is dict and value.keys() == {"schema", "payload"}:
        if value["schema"] != SCHEMA:
            raise EnvelopeError(what="a payload", detail="its schema is of another version of keel")
        return value["payload"]
    return value
