"""The nouns of the journal: an entry and its parts (DESIGN 2 and 7).

Every layer speaks in these values. They are frozen, hold plain data only (never a live object of the
notebook), and turn into a MessagePack map and back without losing anything: the map *is* the entry
schema, version ``SCHEMA``. A reader ignores keys that it does not know, so that an older keel can list
what a newer one wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NewType

import msgspec
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


class Input(Struct, frozen=True, array_like=True, gc=False):
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


class Write(Struct, frozen=True, array_like=True, gc=False):
    """A name that a step bound or changed, as the body left it."""

    name: str
    digest: Digest | None
    type: str
    bytes: int
    preview: str = ""


class FileSeen(Struct, frozen=True, array_like=True, gc=False):
    """A file, folder or glob that a step used.

    ``role`` is ``read``, ``absent``, ``list`` (names in a folder), ``glob`` (what a pattern matches), ``stat`` (size
    and time), ``there`` (only that it exists), ``found`` (held before the step changed it), ``write`` (left by the
    step), ``left`` (the same where nobody's work is kept), ``append`` (what the step appended; ``stamp`` tells from
    where to where), ``base`` (a database that it wrote), ``unfinished`` (what the step left running still writes it:
    never equal), ``uses``, ``makes`` or ``journal`` (that of an external command, as it stood before). ``stamp`` is
    (size, mtime_ns, ctime_ns, inode), the quick test, empty where it would not tell the next change; ``digest`` the
    content, or what the role asks for.
    """

    path: str
    role: str
    digest: Digest | None
    stamp: tuple[int, ...] = ()
    weak: bool = False

    @property
    def asked(self) -> str:
        """What is asked of the disk about it: the path where its content counts, else the role with it."""
        if self.role == "append":
            return f"append {self.stamp} {self.path}"
        return f"{self.role} {self.path}" if self.role in {"list", "glob", "stat", "there", "base"} else self.path


class NotStored(Struct, frozen=True, array_like=True, gc=False):
    """A value that could not be recorded: which, what it is, and what to do about it."""

    name: str
    type: str
    reason: str


class Blob(Struct, frozen=True, array_like=True, gc=False):
    """Bytes of the journal: small ones inside the entry, larger ones an object named by its digest."""

    size: int
    inline: bytes | None = None
    object: Digest | None = None


class Payload(Struct, frozen=True, array_like=True, gc=False):
    """What an attempt left: one head (names and structure) and the buffers it points to.

    ``head`` decodes with ``payload.codec``; ``buffers`` are object digests, in the order in which the head
    refers to them. ``refs`` are entries whose payload must be there too (values journaled earlier).
    """

    head: Blob
    buffers: tuple[Digest, ...] = ()
    refs: tuple[EntryId, ...] = ()
    bytes: int = 0


class Problem(Struct, frozen=True, array_like=True, gc=False):
    """An error as the journal keeps it: its class and code, never its text (Z30)."""

    type: str
    code: str = ""


class Entry(Struct, frozen=True, omit_defaults=True, gc=False, tag_field="schema", tag=SCHEMA):
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
    ambient: Mapping[Any, Any] = field(default_factory=dict)
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
        wire: dict[str, Any] = msgspec.to_builtins(self, builtin_types=(bytes,), enc_hook=bare)
        return wire

    @classmethod
    def from_map(cls, wire: Mapping[str, Any]) -> Entry:
        """The entry behind a map made by ``to_map``.

        Raises KeyError or ValueError where the map is not one: the caller reports damage (E051).
        """
        if wire["schema"] != SCHEMA:
            raise ValueError("not a " + SCHEMA)
        return msgspec.convert(wire, cls, builtin_types=(bytes,))


_BARE: tuple[Any, ...] = (str, int, float, bytes, dict, list, tuple)


def bare(value: Any) -> Any:
    """A text, number or container of a type of its own (numpy's, a front end's) as what it is at heart.

    Raises TypeError for anything else: what is no plain data has no place in an entry.
    """
    for cls in _BARE:
        if isinstance(value, cls):
            return str.__str__(value) if isinstance(value, str) else cls(value)
    raise TypeError(type(value).__qualname__)


def entry_id(run: int, seq: int) -> EntryId:
    """The id of entry ``seq`` of run ``run``: ``"7.12"``."""
    return EntryId(f"{run}.{seq}")
