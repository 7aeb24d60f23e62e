"""The nouns of the journal: an entry and its parts (DESIGN 2 and 7).

Every layer speaks in these values. They are frozen, hold plain data only (never a live object of the
notebook), and turn into a MessagePack map and back without losing anything: the map *is* the entry
schema, version ``SCHEMA``. A reader ignores keys that it does not know, so that an older keel can list
what a newer one wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from operator import attrgetter
from typing import Any, NewType

from msgspec import Struct, field

from keel_notebook.core.words import Effect, Kind, Status

__all__ = [
    "SCHEMA",
    "Blob",
    "Digest",
    "Effect",
    "Entry",
    "EntryId",
    "FileSeen",
    "FlowId",
    "Input",
    "Kind",
    "NotStored",
    "Payload",
    "Problem",
    "Status",
    "Write",
    "entry_id",
]

SCHEMA = "keel.entry/v1"

FlowId = NewType("FlowId", str)
EntryId = NewType("EntryId", str)
Digest = NewType("Digest", str)


class Input(Struct, frozen=True):
    """A name that a step read, as it was before the body ran.

    ``digest`` is None where the value could not be digested: unknown, and unknown is never equal.
    ``weak`` marks a digest that vouches for less than the whole value. ``preview`` is a short text for
    people (empty for anything that may be secret). ``producer`` says which cell made the value.
    """

    name: str
    digest: Digest | None
    weak: bool = False
    preview: str = ""
    producer: str = ""
    type: str = ""


class Write(Struct, frozen=True):
    """A name that a step bound or changed, as the body left it."""

    name: str
    digest: Digest | None
    type: str
    bytes: int
    preview: str = ""


class FileSeen(Struct, frozen=True):
    """A file, folder or glob that a step used.

    ``role`` is ``read``, ``absent``, ``list`` (names in a folder), ``glob`` (what a pattern matches), ``stat`` (size
    and time), ``there`` (only that it exists), ``found`` (held before the step changed it), ``write`` (left by the
    step), ``uses`` or ``makes``. ``stamp`` is (size, mtime_ns, ctime_ns, inode), the quick test, empty where it
    would not tell the next change; ``digest`` the content, or what the role asks for.
    """

    path: str
    role: str
    digest: Digest | None
    stamp: tuple[int, ...] = ()
    weak: bool = False

    @property
    def asked(self) -> str:
        """What is asked of the disk about it: the path where its content counts, else the role with it."""
        return f"{self.role} {self.path}" if self.role in {"list", "glob", "stat", "there"} else self.path


class NotStored(Struct, frozen=True):
    """A value that could not be recorded: which, what it is, and what to do about it."""

    name: str
    type: str
    reason: str


class Blob(Struct, frozen=True):
    """Bytes of the journal: small ones inside the entry, larger ones an object named by its digest."""

    size: int
    inline: bytes | None = None
    object: Digest | None = None

    def to_wire(self) -> list[Any]:
        """The blob as a MessagePack-able list."""
        return [self.size, self.inline, self.object]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> Blob:
        """The blob behind a list made by ``to_wire``."""
        return cls(size=wire[0], inline=wire[1], object=wire[2])


class Payload(Struct, frozen=True):
    """What an attempt left: one head (names and structure) and the buffers it points to.

    ``head`` decodes with ``payload.codec``; ``buffers`` are object digests, in the order in which the head
    refers to them. ``refs`` are entries whose payload must be there too (values journaled earlier).
    """

    head: Blob
    buffers: tuple[Digest, ...] = ()
    refs: tuple[EntryId, ...] = ()
    bytes: int = 0


class Problem(Struct, frozen=True):
    """An error as the journal keeps it: its class and code, never its text (Z30)."""

    type: str
    code: str = ""


class Entry(Struct, frozen=True):
    """One record in the journal (DESIGN 7). A later entry with the same ``entry`` id supersedes it."""

    entry: EntryId
    flow: FlowId
    run: int
    seq: int
    step: str
    kind: Kind
    status: Status
    lane: str = ""
    occurrence: int = 0
    call: str = ""
    key: str = ""
    attempt: int = 1
    effect: Effect = Effect.IDEMPOTENT
    idempotency_key: str = ""
    code: Digest | None = None
    source: str = ""
    inputs: tuple[Input, ...] = ()
    files: tuple[FileSeen, ...] = ()
    ambient: Mapping[str, Any] = field(default_factory=dict)
    writes: tuple[Write, ...] = ()
    deleted: tuple[str, ...] = ()
    outputs: Blob | None = None
    not_stored: tuple[NotStored, ...] = ()
    payload: Payload | None = None
    started_at: float = 0.0
    ended_at: float | None = None
    took_s: float | None = None
    rss_peak: int = 0
    fence: int = 0
    error: Problem | None = None
    why: str = ""

    def to_map(self) -> dict[str, Any]:
        """The entry as a MessagePack-able map, without the fields that hold their default."""
        wire: dict[str, Any] = {"schema": SCHEMA}
        for name, default, write in _FIELDS:
            value = getattr(self, name)
            if value is not default and value != default:
                wire[name] = value if write is None else write(value)
        return wire

    @classmethod
    def from_map(cls, wire: Mapping[str, Any]) -> Entry:
        """The entry behind a map made by ``to_map``.

        Raises KeyError or ValueError where the map is not one: the caller reports damage (E051).
        """
        if wire["schema"] != SCHEMA:
            raise ValueError("not a " + SCHEMA)
        known = {}
        for name, value in wire.items():
            read = _READERS.get(name)
            if read is not None:
                known[name] = read(value)
            elif name in _KNOWN:
                known[name] = value
        return cls(**known)


def entry_id(run: int, seq: int) -> EntryId:
    """The id of entry ``seq`` of run ``run``: ``"7.12"``."""
    return EntryId(f"{run}.{seq}")


def _wire(value: Any) -> Any:
    kind = type(value)
    if kind is str or kind is int or kind is float or value is None:
        return value
    if kind is Kind or kind is Status or kind is Effect:
        return value._value_
    match value:
        case StrEnum():
            return str(value)
        case tuple():
            return [_wire(item) for item in value]
        case Input():
            return [value.name, value.digest, value.weak, value.preview, value.producer, value.type]
        case Blob():
            return value.to_wire()
        case Payload():
            return [value.head.to_wire(), list(value.buffers), list(value.refs), value.bytes]
        case Write() | FileSeen() | NotStored() | Problem():
            return [_wire(getattr(value, name)) for name in value.__struct_fields__]
        case _:
            return value


def _wire_inputs(inputs: tuple[Input, ...]) -> list[Any]:
    return [[i.name, i.digest, i.weak, i.preview, i.producer, i.type] for i in inputs]


def _wire_payload(payload: Payload | None) -> list[Any] | None:
    if payload is None:
        return None
    head = payload.head
    return [[head.size, head.inline, head.object], list(payload.buffers), list(payload.refs), payload.bytes]


_WIRED: Mapping[str, Callable[[Any], Any] | None] = {
    **dict.fromkeys(("str", "int", "float", "float | None", "EntryId", "FlowId", "Digest | None")),
    "Kind": attrgetter("_value_"),
    "Status": attrgetter("_value_"),
    "Effect": attrgetter("_value_"),
    "tuple[Input, ...]": _wire_inputs,
    "Payload | None": _wire_payload,
}
"""How values of a field's type are put on the wire: None as they are, what is not here through ``_wire``."""


def _files(wire: list[Any]) -> tuple[FileSeen, ...]:
    return tuple(FileSeen(w[0], w[1], w[2], tuple(w[3]), *w[4:]) for w in wire)


def _payload(wire: list[Any] | None) -> Payload | None:
    if wire is None:
        return None
    return Payload(Blob.from_wire(wire[0]), tuple(wire[1]), tuple(wire[2]), wire[3])


_READERS: dict[str, Any] = {
    "kind": {str(kind): kind for kind in Kind}.__getitem__,
    "status": {str(status): status for status in Status}.__getitem__,
    "effect": {str(effect): effect for effect in Effect}.__getitem__,
    "inputs": lambda w: tuple(Input(*item) for item in w),
    "files": _files,
    "writes": lambda w: tuple(Write(*item) for item in w),
    "deleted": tuple,
    "not_stored": lambda w: tuple(NotStored(*item) for item in w),
    "outputs": lambda w: None if w is None else Blob.from_wire(w),
    "payload": _payload,
    "error": lambda w: None if w is None else Problem(*w),
}
_KNOWN = frozenset(Entry.__struct_fields__)

_ALWAYS: Any = object()
"""Stands for the default of a field that has none: it is always written."""


def _fields_on_the_wire() -> Iterator[tuple[str, Any, Callable[[Any], Any] | None]]:
    names, defaults = Entry.__struct_fields__, Entry.__struct_defaults__
    for name, default in zip(names, (_ALWAYS,) * (len(names) - len(defaults)) + defaults, strict=True):
        plain = default is _ALWAYS or isinstance(default, str | int | float | tuple | None)
        empty = default if plain else {}  # the one default that is made anew each time is an empty map
        yield name, empty, _WIRED.get(str(Entry.__annotations__[name]), _wire)


_FIELDS = tuple(_fields_on_the_wire())
