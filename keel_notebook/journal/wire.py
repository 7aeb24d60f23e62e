"""Between values and MessagePack: entries, run starts and the small bodies of other frames."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeGuard

import msgpack
import msgspec

from keel_notebook.core.model import Digest, Entry, FlowId, bare
from keel_notebook.core.ports import RunSeen, RunStart
from keel_notebook.core.record import as_dict
from keel_notebook.errors import InternalError
from keel_notebook.journal.frames import MAX_BODY

SEGMENT_SCHEMA: Final = "keel.segment/v1"
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
"""What an object is named by."""
_START_FIELDS: Final = RunStart.__struct_fields__
_encoder: Final = msgspec.msgpack.Encoder(enc_hook=bare)


class Stored(NamedTuple):
    """An entry exactly as it was written, and what lay around it: so its seals hold for ever."""

    stamp: int
    fence: int
    macs: tuple[bytes, ...]
    body: bytes


class BodyError(Exception):
    """A sound frame whose body is not what this version can read."""


def pack(value: Any) -> bytes:
    """A plain value as MessagePack. Raises InternalError (E040) where it holds something else than plain values."""
    try:
        packed: bytes = msgpack.packb(value, unicode_errors="surrogatepass")
    except (TypeError, ValueError, OverflowError) as error:
        raise InternalError(doing="encoded a frame", kind=type(error).__name__) from error
    return packed


def unpack(raw: bytes) -> Any:
    """The value behind ``pack``. Raises BodyError."""
    try:
        return msgpack.unpackb(raw, unicode_errors="surrogatepass", strict_map_key=False)
    except Exception as error:  # msgpack has many ways to say it; the fact is the same
        raise BodyError(type(error).__name__) from error


def pack_entry(entry: Entry) -> bytes:
    """The entry as the body of a frame. Raises InternalError (E040)."""
    try:
        packed = _encode(entry)
    except (TypeError, ValueError, OverflowError) as error:
        raise InternalError(doing=f"encoded an entry of step {entry.step}", kind=type(error).__name__) from error
    if len(packed) > MAX_BODY:
        raise InternalError(doing=f"encoded an entry of step {entry.step}", kind="more than 1 GB")
    return packed


def _encode(entry: Entry) -> bytes:
    try:
        return _encoder.encode(entry)
    except UnicodeEncodeError:  # a lone surrogate, such as in the name of a file that is not UTF-8
        packed: bytes = msgpack.packb(entry.to_map(), unicode_errors="surrogatepass")
        return packed


def entry_in(body: bytes) -> Entry:
    """The entry behind ``pack_entry``. Raises BodyError."""
    try:
        return _decoder().decode(body)
    except msgspec.MsgspecError:
        return entry_of(unpack(body))  # it knows lone surrogates as well, and says what is wrong


def flow_in(body: bytes) -> FlowId:
    """The flow of an entry that cannot be read otherwise. Raises BodyError."""
    raw = unpack(body)
    if not isinstance(raw, dict) or not isinstance(raw.get("flow"), str):
        raise BodyError("no flow")
    return FlowId(raw["flow"])


@functools.cache
def _decoder() -> msgspec.msgpack.Decoder[Entry]:
    return msgspec.msgpack.Decoder(Entry)


def entry_of(wire: Mapping[str, Any]) -> Entry:
    """The entry behind an unpacked body. Raises BodyError."""
    try:
        return Entry.from_map(wire)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise BodyError(type(error).__name__) from error


def is_digest(name: object) -> TypeGuard[Digest]:
    """Whether this names an object: a digest, and so no way to anywhere else."""
    return isinstance(name, str) and _DIGEST.fullmatch(name) is not None


def objects_of(entry: Entry) -> tuple[Digest, ...]:
    """The objects that an entry names. What is no digest names none: an entry of a stranger may say anything."""
    if entry.payload is None and entry.outputs is None:
        return ()
    named: list[Digest | None] = []
    if entry.payload is not None:
        named = [entry.payload.head.object, *entry.payload.buffers]
    if entry.outputs is not None:
        named.append(entry.outputs.object)
    return tuple(digest for digest in named if is_digest(digest))


def start_to_wire(start: RunStart, space: int) -> dict[str, Any]:
    """A run's start and its pid space as a MessagePack-able map."""
    return {"schema": SEGMENT_SCHEMA, "space": space, **as_dict(start)}


def start_from_wire(wire: Any) -> tuple[RunStart, int]:
    """The start behind ``start_to_wire``. Raises BodyError."""
    try:
        if wire["schema"] != SEGMENT_SCHEMA:
            raise BodyError(str(wire["schema"]))
        return RunStart(**{name: wire[name] for name in _START_FIELDS if name in wire}), int(wire["space"])
    except (KeyError, TypeError, ValueError) as error:
        raise BodyError(type(error).__name__) from error


def upto_of(body: bytes) -> int:
    """The offset in a synced frame; 0, which vouches for nothing, where it cannot be read."""
    try:
        found = unpack(body)
    except BodyError:
        return 0
    return found if isinstance(found, int) else 0


def unknown_start(run: int) -> RunStart:
    """Stands for the start of a run whose first frame is lost: nobody's fault, so no death."""
    return RunStart(run=run, host="", pid=0, boot="", started=0.0)


def run_to_wire(seen: RunSeen) -> list[Any]:
    """A run as a MessagePack-able list."""
    return [as_dict(seen.start), seen.end, seen.rss_last, seen.seen_at]


def run_from_wire(wire: Any) -> RunSeen:
    """The run behind ``run_to_wire``. Raises BodyError."""
    try:
        start = RunStart(**{name: wire[0][name] for name in _START_FIELDS if name in wire[0]})
        return RunSeen(start, wire[1], wire[2], *wire[3:4])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise BodyError(type(error).__name__) from error
