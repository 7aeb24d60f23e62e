"""The codec: names and values to one payload in the journal, and back (DESIGN 6).

``pack`` → encode (``packing``: plain or pickled), write (``buffers``: large content as objects of its own), describe
(digest, size, preview). ``unpack`` is the way back; nothing is executed but what the payload itself needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

from msgspec.structs import replace

from keel_notebook.core.inside import follow, root_of
from keel_notebook.core.model import Blob, Digest, EntryId, NotStored, Payload, Write
from keel_notebook.core.ports import PLAIN, Definition, Definitions, Journal, Known, Packed, Unpacked
from keel_notebook.core.quiet import quiet_gc
from keel_notebook.core.secrets import looks_secret
from keel_notebook.errors import DamagedError, KeelError
from keel_notebook.payload import beside, envelope, guilty
from keel_notebook.payload.buffers import BufferReader
from keel_notebook.payload.bycode import fingerprint
from keel_notebook.payload.digest import StructuralDigester
from keel_notebook.payload.memory import LARGE, Contents
from keel_notebook.payload.packing import Encoded, Encoder, Guilty, Referable, Values
from keel_notebook.payload.partly import Losses, PartPlainReader, PartReader, attempted, split
from keel_notebook.payload.pickles import Reader
from keel_notebook.payload.plain import PlainReader
from keel_notebook.payload.preview import preview
from keel_notebook.payload.rebuild import MAGIC, Rebuild
from keel_notebook.payload.typename import type_name
from keel_notebook.payload.widgets import Asleep

__all__ = ["RESULT", "GraphCodec", "preview"]

RESULT = "_"
"""How the value of a cell's last expression is called where it has to have a name."""
_UNNAMED = ""
_SHOWN = " shown"
"""What no name of the notebook holds, and the page shows all the same. No name has a blank in it."""
_NO_REFERENCE = (int, float, complex, type(None), type, FunctionType, ModuleType)


class GraphCodec:
    """The port ``Codec``: one graph per step, so that aliases between its names survive.

    ``namespace`` gives the live namespace of the notebook: what values refer to by name is looked up there.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        definitions: Definitions,
        digester: StructuralDigester,
        namespace: Callable[[], dict[str, Any]],
    ) -> None:
        self._journal = journal
        self._definitions = definitions
        self._digester = digester
        self._namespace = namespace
        self._encoder = Encoder(definitions, digester, namespace)
        self._asleep: Asleep | None = None
        """Widgets of the reading that is going on, those of the records included that it refers to."""

    def pack(
        self,
        names: Mapping[str, Any],
        *,
        result: tuple[Any] | None,
        known: Mapping[int, Known],
        digested: bool = True,
        shown: Sequence[Any] = (),
    ) -> Packed:
        """Write the values of ``names``, the one-element tuple ``result``, and the widgets ``shown`` as one graph.

        Objects in ``known`` (by ``id``) become references where they still hold what is recorded of them. What cannot
        be stored, or looks like a credential, is left out and named in ``not_stored``; the result under the name
        ``_``. Without ``digested`` the writes have no digests, which take as long as the rest. Raises what the
        journal raises.
        """
        left_out: list[NotStored] = []
        values: list[tuple[str, Any]] = []
        unnamed = (*((_UNNAMED, value) for value in result or ()), *((_SHOWN, value) for value in shown))
        for name, value in (*names.items(), *unnamed):
            if looks_secret(name, value):
                left_out.append(guilty.secret(name or RESULT, value))
            else:
                values.append((name, value))
        referable = self._referable(known, values)
        encoded = self._encode(values, referable, names, left_out)
        contents = Contents()
        payload = self._write(
            encoded, [name for name, _ in values], contents, self._beside(encoded, referable, contents)
        )
        digests: dict[int, Digest | None] = {
            identity: one.digest
            for identity, (_, one) in referable.items()
            if one in encoded.known and one.entry != PLAIN
        }
        look = self._digester.together(contents)
        writes = []
        for (name, value), size, stamp in zip(values, encoded.sizes, encoded.stamps, strict=True):
            if name not in (_UNNAMED, _SHOWN):
                if id(value) not in digests:
                    digests[id(value)] = look(value, stamp).digest if digested else None
                writes.append(Write(name, digests[id(value)], type_name(type(value)), size, preview(name, value)))
        return Packed(payload, tuple(writes), tuple(item for item in left_out if item.name != _SHOWN))

    def unpack(self, payload: Payload, *, resolve: Callable[[Known], Any], partly: bool = False) -> Unpacked:
        """The values back. Raises DamagedError (E051) and its DefinitionChangedError (E055).

        ``partly``: where that fails, what is whole comes back and the rest is named in ``gone``.
        """
        opened = envelope.open_envelope(self._journal.read(payload.head))
        if opened.bare:
            return Unpacked({}, result=opened.content, has_result=True)

        def copies(own: Payload) -> Mapping[str, Any]:
            return self.unpack(own, resolve=resolve, partly=partly).names

        found_by = beside.resolver(opened.content, resolve, copies)
        around, self._asleep = self._asleep, Asleep()
        try:
            found = self._whole_or_part(opened.content, payload, found_by, partly)
            return replace(found, wake=self._asleep.wake, awake=self._asleep.awake(found.names))
        finally:
            if around is not None:
                around.waiting += self._asleep.waiting
            self._asleep = around

    def _whole_or_part(
        self, content: Any, payload: Payload, found_by: Callable[[Known], Any], partly: bool
    ) -> Unpacked:
        try:
            return self._whole(content, payload, found_by)
        except DamagedError:
            if not partly:
                raise
        return self._partly(content, payload, found_by)

    def _whole(self, content: Any, payload: Payload, found_by: Callable[[Known], Any]) -> Unpacked:
        try:
            with quiet_gc():
                values = self._read(content, payload, found_by, None)
        except (KeelError, MemoryError):
            raise
        except ImportError as error:
            raise DamagedError(what="a payload", detail=f"module {error.name} is missing") from error
        except Exception as error:
            detail = f"it cannot be read back ({type_name(type(error))})"
            raise DamagedError(what="a payload", detail=detail) from error
        return _named(dict(zip(content["names"], values, strict=True)), {})

    def _partly(self, content: Any, payload: Payload, found_by: Callable[[Known], Any]) -> Unpacked:
        """What is whole of a record that cannot be read whole. Raises DamagedError (E051) where nothing can be."""
        lost = Losses(self._namespace())
        try:
            values = self._read(content, payload, attempted(found_by), lost)
        except (KeelError, MemoryError):
            raise
        except Exception as error:
            detail = f"it cannot be read back ({type_name(type(error))})"
            raise DamagedError(what="a payload", detail=detail) from error
        return _named(*split(content["names"], values, lost))

    def _referable(self, known: Mapping[int, Known], values: Values) -> dict[int, tuple[Any, Known]]:
        """The journaled objects that a reference may stand for, with the objects themselves.

        An identity means something only while its object lives, so they are looked up where they live. Scalars are
        not worth a reference; classes and functions have a better one.
        """
        if not known:
            return {}
        space = self._namespace()
        inside = [_at(space, one.name) for one in known.values() if "[" in one.name or "." in one.name]
        here = [*space.values(), *inside, *(value for _, value in values)]
        alive = dict(zip(map(id, here), here, strict=True))  # no loop: a notebook has thousands of names
        found: dict[int, tuple[Any, Known]] = {}
        for identity in alive.keys() & known.keys():
            value = alive[identity]
            if issubclass(type(value), _NO_REFERENCE) or (issubclass(type(value), tuple | frozenset) and not value):
                continue
            if not issubclass(type(value), str | bytes) or len(value) >= LARGE:
                found[identity] = (value, known[identity])
        return found

    def _encode(
        self,
        values: list[tuple[str, Any]],
        known: dict[int, tuple[Any, Known]],
        writing: Mapping[str, Any],
        left_out: list[NotStored],
    ) -> Encoded:
        """The graph of all values that can go into it; the others are moved from ``values`` to ``left_out``."""
        while True:
            try:
                with quiet_gc():
                    encoded = self._encoder.encode(values, known, writing)
                changed = self._changed(known, encoded.known)
                if not changed:
                    return encoded
                for identity in changed:
                    del known[identity]
            except Guilty as found:
                name, value = values.pop(found.at)
                name = name or RESULT
                if found.secret:
                    left_out.append(guilty.secret(name, value))
                else:
                    left_out.append(guilty.not_stored(name, value, found.part, found.hint))

    def _changed(self, known: Referable, used: Sequence[Known]) -> list[int]:
        """Objects that hold something else by now than the record which they would refer to."""
        asked = set(used)
        return [
            identity
            for identity, (thing, one) in known.items()
            if one in asked and one.entry != PLAIN and self._digester.digest(thing).digest != one.digest
        ]

    def _beside(self, encoded: Encoded, referable: Referable, contents: Contents) -> Payload | None:
        """Copies of the plain cells' values that a graph refers to, of those that can be stored."""
        used = {one for one in encoded.known if one.entry == PLAIN}
        values = [(one.name, thing) for thing, one in referable.values() if one in used]
        values = [(name, thing) for name, thing in values if not looks_secret(name, thing)]
        if not values:
            return None
        others = {at: (thing, one) for at, (thing, one) in referable.items() if one.entry != PLAIN}
        copies = self._encode(values, others, {}, [])
        return self._write(copies, [name for name, _ in values], contents) if values else None

    def _write(
        self, encoded: Encoded, names: Sequence[str], contents: Contents, copies: Payload | None = None
    ) -> Payload:
        tables, objects = encoded.buffers.write(self._journal, contents)
        content: dict[str, Any] = {**encoded.fields, **tables, "names": names}
        if encoded.known:
            content["known"] = [(known.entry, known.name, known.digest) for known in encoded.known]
        if encoded.stream:
            content["magic"] = MAGIC
            length = sum(map(len, encoded.stream))
            if length < LARGE:
                content["stream"] = b"".join(encoded.stream)
            else:
                digest = self._journal.put(encoded.stream)
                objects[digest] = length
                content["stream"] = (length, digest)
        if copies is not None:
            content[beside.FIELD] = beside.to_wire(copies)
        head = self._journal.blob(envelope.seal(content))
        refs = tuple(dict.fromkeys(known.entry for known in encoded.known if known.entry != PLAIN))
        payload = Payload(head, tuple(objects), refs, head.size + sum(objects.values()))
        return payload if copies is None else beside.joined(payload, copies)

    def _read(
        self, content: Any, payload: Payload, resolve: Callable[[Known], Any], lost: Losses | None
    ) -> Sequence[Any]:
        """The values, in the order of their names. ``lost``: read what can be read, and tell it what cannot."""
        buffers = BufferReader(content, payload.buffers, self._journal)
        known = [Known(EntryId(entry), name, Digest(digest)) for entry, name, digest in content.get("known", ())]
        if content["form"] == "plain":
            plain = PlainReader if lost is None else PartPlainReader
            nodes = plain(content["nodes"], buffers, lambda at: resolve(known[at]))
            return [nodes.value(root) for root in content["roots"]]
        if content["form"] != "pickle":
            raise DamagedError(what="a payload", detail="it has a form that this version of keel does not know")
        space = self._namespace()
        stream = content["stream"]
        raw = stream if isinstance(stream, bytes) else self._journal.read(Blob(stream[0], object=Digest(stream[1])))
        rebuilt = Rebuild(
            buffers,
            space,
            learn=getattr(self._definitions, "learn", _forget),
            fingerprint=lambda thing: fingerprint(thing, definitions=self._definitions, digester=self._digester),
            magic=content["magic"],
            asleep=self._asleep or Asleep(),
        )
        used = {slot: resolve(one) for slot, one in zip(content["used"], known, strict=True)}
        memory = buffers.memory if lost is None else attempted(buffers.memory)
        memories = [memory(number) for number in content["out_of_band"]]
        slots = content["slots"]
        reader: Reader | PartReader = (
            Reader(raw, rebuilt, buffers=memories, slots=slots, used=used)
            if lost is None
            else PartReader(raw, rebuilt, buffers=memories, slots=slots, used=used, lost=lost)
        )
        return reader.values(content["count"])


def _at(space: Mapping[str, Any], way: str) -> Any:
    try:
        return follow(way, space[root_of(way)])
    except LookupError:
        return None


def _named(found: dict[str, Any], gone: dict[str, str]) -> Unpacked:
    for unnamed in (_UNNAMED, _SHOWN):
        gone.pop(unnamed, None)
    found.pop(_SHOWN, None)
    if _UNNAMED in found:
        result = found.pop(_UNNAMED)
        return Unpacked(found, result=result, has_result=True, gone=gone)
    return Unpacked(found, gone=gone)


def _forget(_thing: Any, _definition: Definition) -> None:
    """For definitions that need not be told: they find a restored function by its source in linecache."""
