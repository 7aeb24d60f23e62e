"""The nouns of the journal: an entry and its parts (DESIGN 2 and 7).

Every layer speaks in these values. They are frozen, hold plain data only (never a live object of the
notebook), and turn into a MessagePack map and back without losing anything: the map *is* the entry
schema, version ``SCHEMA``. A reader ignores keys that it does not know, so that an older keel can list
what a newer one wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from typing import Any, NewType

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


@dataclass(frozen=True, slots=True)
class Input:
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


@dataclass(frozen=True, slots=True)
class Write:
    """A name that a step bound or changed, as the body left it."""

    name: str
    digest: Digest | None
    type: str
    bytes: int
    preview: str = ""


@dataclass(frozen=True, slots=True)
class FileSeen:
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


@dataclass(frozen=True, slots=True)
class NotStored:
    """A value that could not be recorded: which, what it is, and what to do about it."""

    name: str
    type: str
    reason: str


@dataclass(frozen=True, slots=True)
class Blob:
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


@dataclass(frozen=True, slots=True)
class Payload:
    """What an attempt left: one head (names and structure) and the buffers it points to.

    ``head`` decodes with ``payload.codec``; ``buffers`` are object digests, in the order in which the head
    refers to them. ``refs`` are entries whose payload must be there too (values journaled earlier).
    """

    head: Blob
    buffers: tuple[Digest, ...] = ()
    refs: tuple[EntryId, ...] = ()
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as the journal keeps it: its class and code, never its text (Z30)."""

    type: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
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
        wire: dict[str, Any] = _to_map(self)
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
            return [_wire(getattr(value, f.name)) for f in fields(value)]
        case _:
            return value


def _wire_inputs(inputs: tuple[Input, ...]) -> list[Any]:
    return [[i.name, i.digest, i.weak, i.preview, i.producer, i.type] for i in inputs]


def _wire_payload(payload: Payload | None) -> list[Any] | None:
    if payload is None:
        return None
    head = payload.head
    return [[head.size, head.inline, head.object], list(payload.buffers), list(payload.refs), payload.bytes]


_WIRED = {
    "Kind": "{0}._value_",
    "Status": "{0}._value_",
    "Effect": "{0}._value_",
    "tuple[Input, ...]": "_wire_inputs({0})",
    "Payload | None": "_wire_payload({0})",
}
"""How fields that every durable call has are put on the wire; all others through ``_wire``."""


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
_KNOWN = frozenset(f.name for f in fields(Entry))


_AS_IT_IS = frozenset({"str", "int", "float", "float | None", "EntryId", "FlowId", "Digest | None"})
"""Types of fields whose values MessagePack takes as they are."""


def _wired(kind: str, value: str) -> str:
    return value if kind in _AS_IT_IS else _WIRED.get(kind, "_wire({0})").format(value)


def _init_of(noun: Any) -> tuple[str, dict[str, Any]]:
    """``__init__`` of a frozen dataclass written out, and the names that it uses.

    A frozen dataclass sets its fields one by one by name, which takes twice as long as the setters of its slots.
    """
    known: dict[str, Any] = {}
    head, body = ["self"], []
    for f in fields(noun):
        known["set_" + f.name] = getattr(noun, f.name).__set__
        value = f.name
        if f.default is MISSING and f.default_factory is MISSING:
            head.append(f.name)
        else:
            known["no_" + f.name] = default = {} if f.default is MISSING else f.default
            head.append(f"{f.name}=no_{f.name}")
            if default == {}:
                value = f"{{}} if {f.name} is no_{f.name} else {f.name}"
        body.append(f" set_{f.name}(self, {value})")
    return "\n".join([f"def init({', '.join(head)}):", *body]), known


def _to_map_of_entries(known: dict[str, Any]) -> str:
    """``Entry.to_map`` written out field by field; ``known`` holds its defaults already."""
    known |= {"SCHEMA": SCHEMA, "_wire": _wire, "_wire_inputs": _wire_inputs, "_wire_payload": _wire_payload}
    out, rest = ['"schema": SCHEMA'], []
    for f in fields(Entry):
        if "no_" + f.name not in known:
            out.append(f'"{f.name}": ' + _wired(str(f.type), f"self.{f.name}"))
            continue
        value = _wired(str(f.type), "v")
        rest += [f" v = self.{f.name}", f" if v is not no_{f.name} and v != no_{f.name}: out['{f.name}'] = {value}"]
    return "\n".join(["def to_map(self):", f" out = {{{', '.join(out)}}}", *rest, " return out"])


def _write_out() -> Any:
    """Write out what every durable call pays for (DESIGN 10): its nouns' ``__init__``, and the entry's ``to_map``."""
    for noun in (Input, Blob, Payload, Entry):
        text, known = _init_of(noun)
        if noun is Entry:
            text += "\n" + _to_map_of_entries(known)
        exec(text, known)  # noqa: S102 - the text above, from the fields above
        noun.__init__ = known["init"]  # type: ignore[method-assign]
    return known["to_map"]


_to_map = _write_out()
