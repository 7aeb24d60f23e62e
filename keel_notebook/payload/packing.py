"""Encoding the names of one step: one graph in one of two forms, and what of each name could not go into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgpack
from blake3 import blake3
from msgspec import Struct, field

from keel_notebook.core.ports import Definitions, Digester, Known
from keel_notebook.core.secrets import secret_in_pickle
from keel_notebook.payload.buffers import BufferWriter
from keel_notebook.payload.bycode import ByCode
from keel_notebook.payload.deep import with_deep_stack
from keel_notebook.payload.guilty import Refused, Secret
from keel_notebook.payload.hosts import Hosts
from keel_notebook.payload.memory import LARGE
from keel_notebook.payload.pickles import Stream, Writer, known_used
from keel_notebook.payload.plain import NotPlain, PlainWriter, surely_not_plain
from keel_notebook.payload.shapes import Unknown
from keel_notebook.payload.typename import type_name

_SCANNED = 256 << 10
"""A name of up to so many bytes is searched for credentials: a configuration, not a corpus that mentions one."""

_NEVER_REFERRED_TO = (type(None), bool, int, float)
"""Pickle writes them again each time: what follows tells nothing of them."""

Values = Sequence[tuple[str, Any]]
"""Names and values in the order in which they are written; the cell's result has no name."""


Referable = Mapping[int, tuple[Any, Known]]
"""Journaled objects by their identity: the object, and where it is."""


class Guilty(Exception):
    """The value at ``at`` cannot go into the graph: ``part`` of it, or all of it."""

    def __init__(self, at: int, part: Any, *, hint: str = "", secret: bool = False) -> None:
        super().__init__(hint)
        self.at = at
        self.part = part
        self.hint = hint
        self.secret = secret


class Encoded(Struct):
    """A graph, ready to be written."""

    fields: dict[str, Any]
    buffers: BufferWriter
    sizes: list[int]
    """Bytes of each value that were not there before."""
    known: list[Known] = field(default_factory=list)
    stream: list[bytes] = field(default_factory=list)
    stamps: list[bytes | None] = field(default_factory=list)
    """For every value None, or bytes that no other value has: what pickle wrote of it and of the values before it.

    Only of plain values, where there is much of them. They tell which objects are one: so they are no digest.
    """


class Encoder(Struct, frozen=True):
    """Encodes values of one notebook. ``space`` is its namespace, live."""

    definitions: Definitions
    digester: Digester
    space: Callable[[], Mapping[str, Any]]

    def encode(self, values: Values, known: Referable, writing: Mapping[str, Any]) -> Encoded:
        """The graph of ``values``: plain if all of them are, else pickled. Raises Guilty.

        ``writing`` is all that the step bound, stored or not: none of it is there when the step is replayed.
        """
        try:
            return self._plain(values, known)
        except NotPlain:
            pass
        try:
            return self._pickle(values, known, writing)
        except RecursionError:
            pass
        try:
            deep: Encoded = with_deep_stack(lambda: self._pickle(values, known, writing))
        except RecursionError:
            at = self._too_deep(values, known, writing)
            raise Guilty(at, values[at][1], hint="it is nested too deeply") from None
        return deep

    def _too_deep(self, values: Values, known: Referable, writing: Mapping[str, Any]) -> int:
        """Which of the values is nested too deeply; the last one where only all together are."""
        for at, pair in enumerate(values):
            try:
                with_deep_stack(partial(self._pickle, [pair], known, writing))
            except RecursionError:
                return at
            except Guilty:
                continue
        return len(values) - 1

    def _plain(self, values: Values, known: Referable) -> Encoded:
        if any(id(value) not in known and surely_not_plain(value) for _, value in values):
            raise NotPlain
        numbers = {identity: at for at, identity in enumerate(known)}
        buffers = BufferWriter()
        writer = PlainWriter(buffers, self.definitions, numbers, Hosts(thing for thing, _ in known.values()))
        roots: list[Any] = []
        sizes: list[int] = []
        for at, (_, value) in enumerate(values):
            nodes, content = len(writer.nodes), buffers.bytes
            try:
                roots.append(writer.write(value))
            except Secret as secret:
                raise Guilty(at, secret.part, secret=True) from None
            written = [node for node in writer.nodes[nodes:] if node is not None]
            sizes.append(len(msgpack.packb((roots[-1], written))) + buffers.bytes - content)
        entries = list(known.values())
        used = sorted(writer.used)
        renumbered = {number: at for at, number in enumerate(used)}
        nodes_out = [("known", renumbered[node[1]]) if node[0] == "known" else node for node in writer.nodes]
        fields = {"form": "plain", "nodes": nodes_out, "roots": roots}
        return Encoded(fields, buffers, sizes, [entries[number][1] for number in used], stamps=[None] * len(values))

    def _pickle(
        self, values: Values, known: Referable, writing: Mapping[str, Any], *, all_arrays: bool = False
    ) -> Encoded:
        stream, buffers = Stream(), BufferWriter()
        by_code = ByCode(self.space(), writing, definitions=self.definitions, digester=self.digester)
        entries = list(known.values())
        writer = Writer(stream, buffers, by_code, [thing for thing, _ in entries], roots=[value for _, value in values])
        writer.all_arrays = all_arrays
        sizes: list[int] = []
        stamps: list[bytes | None] = []
        written = blake3(b"streamed behind %d;" % len(entries))
        for at, (_, value) in enumerate(values):
            begin, content, parts = stream.size, buffers.bytes, len(stream.parts)
            _dump(writer, at, value)
            stamps.append(None)
            if writer.plain and type(value) not in _NEVER_REFERRED_TO:
                for part in stream.parts[parts:]:
                    written.update(part)
                if stream.size >= LARGE:  # whatever is small by itself may refer to all of it
                    stamps[-1] = written.digest()
            if stream.size - begin <= _SCANNED and secret_in_pickle(b"".join(stream.parts[parts:])):
                raise Guilty(at, None, secret=True)
            sizes.append(stream.size - begin + buffers.bytes - content)
        if buffers.has_columns_on(writer.small):
            return self._pickle(values, known, writing, all_arrays=True)
        used = known_used(stream.parts, len(entries))
        fields = {
            "form": "pickle",
            "count": len(values),
            "slots": len(entries),
            "used": used,
            "out_of_band": writer.out_of_band,
        }
        if used:  # the bytes tell where something is, not what it is
            stamps = [None] * len(values)
        return Encoded(fields, buffers, sizes, [entries[at][1] for at in used], stream.parts, stamps)


def _dump(writer: Writer, at: int, value: Any) -> None:
    writer.last = value
    try:
        writer.dump(value)
    except (RecursionError, MemoryError):
        raise
    except Refused as refused:
        raise Guilty(at, refused.part, hint=refused.hint) from None
    except Unknown as unknown:
        raise Guilty(at, unknown.guilty, hint=unknown.why) from None
    except Exception as error:
        hint = "" if isinstance(error, TypeError) else f"it refuses to be pickled ({type_name(type(error))})"
        raise Guilty(at, writer.last, hint=hint) from error
