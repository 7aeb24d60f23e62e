"""Puts what a record holds back into the notebook: a replay, a restore, an input as it was (DESIGN 4.6, 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.core.dotted import put_at, remove_at
from keel_notebook.core.model import Digest, Entry
from keel_notebook.core.ports import Message, Unpacked
from keel_notebook.core.provenance import LEFT
from keel_notebook.engine.attempt import Prepared
from keel_notebook.engine.notes import Notes
from keel_notebook.engine.references import Read
from keel_notebook.engine.submodules import import_submodules
from keel_notebook.errors import DamagedError


class Restored(Struct, frozen=True):
    """What a restore of one record did."""

    names: frozenset[str]
    """What is bound now."""
    lost: Mapping[str, str]
    """Names that the record holds and that cannot come back, each with the reason."""
    failed: Sequence[str]
    """What of the state that has no name could not be put back, in words."""


class PutBack(Notes):
    """Puts records of one kernel back."""

    def prepare(
        self,
        entry: Entry,
        *,
        sure: Mapping[str, Digest | None] | None = None,
        read: Read | None = None,
        partly: bool = False,
    ) -> Prepared:
        """Read a record whole, without touching the notebook. ``sure``: what names are known to hold right now;
        those of the record's inputs, which were compared just now, where it is left out. ``read``: see ``references``.
        ``partly``: names that cannot be read are left out (``Unpacked.gone``).

        Raises DamagedError (E051), or whatever the record's own classes raise while they are rebuilt: the caller
        then executes (C56).
        """
        values = Unpacked({})
        if "sys_path" in entry.ambient:  # modules that the values need may lie where the step itself pointed to
            self._parts.ambient.apply({"sys_path": entry.ambient["sys_path"]})
        if entry.payload is not None:
            sure = {item.name: item.digest for item in entry.inputs} if sure is None else sure
            resolve = self._parts.references.resolver(entry, sure, read)
            with self._parts.ambient_inputs.reading():
                values = self._parts.codec.unpack(entry.payload, resolve=resolve, partly=partly)
                import_submodules(entry.source, values.names)
        messages: tuple[Message, ...] = ()
        live: tuple[Message, ...] = ()
        if entry.outputs is not None:
            packed = self._parts.journal.read(entry.outputs)
            messages, live = self._parts.unpack_messages(packed), self._parts.unpack_live(packed)
        return Prepared(entry, values, messages, entry.not_stored, live)

    def restore(
        self,
        entry: Entry,
        names: frozenset[str],
        sure: Mapping[str, Digest | None],
        read: Read | None = None,
    ) -> Restored:
        """Bind some names of a record, as far as it can be read, without its outputs.

        Raises DamagedError (E051) where nothing of it can be read, before anything is bound.
        """
        found = self.prepare(replace(entry, outputs=None), sure=sure, read=read, partly=True).values
        lost = {name: found.gone[name] for name in sorted(names) if name in found.gone}
        values = {name: found.names[name] for name in sorted(names - lost.keys())}
        self._parts.namespace.update({name: value for name, value in values.items() if "." not in name})
        failed = [*self._put_attributes(values), *self._parts.ambient.apply(entry.ambient), *found.wake()]
        return Restored(frozenset(values), lost, failed)

    def _put_attributes(self, values: Mapping[str, Any], keep: frozenset[str] = frozenset()) -> list[str]:
        """Set what goes by a dotted name; what could not be set, in words."""
        lost = []
        for name, value in values.items():
            if "." in name and name not in keep:
                try:
                    put_at(self._parts.namespace, name, value)
                except (KeyError, AttributeError, TypeError) as problem:
                    lost.append(f"{name}: {type(problem).__name__}")
        return lost

    def put_settings_back(self, entry: Entry) -> Sequence[str]:
        """Put back what a record's cell changed of the state that has no name; what could not be, in words."""
        return self._parts.ambient.apply(entry.ambient)

    def replay(
        self, prepared: Prepared, *, show: Callable[[Any], None], keep: frozenset[str] = frozenset()
    ) -> Sequence[str]:
        """Put back what the record holds; nothing is executed. ``show`` sets ``_`` and ``Out``.

        ``keep`` are names whose live objects hold that content already. Returns what could not be put back, in words.
        """
        parts = self._parts
        in_place = frozenset(prepared.entry.ambient.get("in_place", ()))
        for name, value in prepared.values.names.items():
            if name in keep and name not in prepared.values.awake:
                continue
            if name in in_place:
                self._put_for_all(name, value)
            elif "." not in name:
                parts.namespace[name] = value
        changed = prepared.entry.ambient.get(LEFT, {})  # the object that is there now is all that anybody has
        lost_names = (item.name for item in prepared.entry.not_stored if item.name not in changed)
        for name in (*prepared.entry.deleted, *lost_names):  # an older value must not stand in for a lost one
            remove_at(parts.namespace, name)
        kept = prepared.entry.ambient
        changes = parts.ambient.touches(kept) or any("." in name for name in prepared.values.names)
        before = parts.ambient_inputs.before_replay(prepared.entry.step, changes=changes)
        lost = [*self._put_attributes(prepared.values.names, keep), *(parts.ambient.apply(kept) if changes else ())]
        parts.ambient_inputs.drawn(before, prepared.entry.step)
        lost += prepared.values.wake()
        parts.tap.replay(prepared.messages, prepared.live)
        if prepared.values.has_result:
            show(prepared.values.result)
        return lost

    def _put_for_all(self, name: str, value: Any) -> None:
        """Bind the name, and every other name of the object that it stood for, in local modules too: they were one and
        stay one."""
        namespace = self._parts.namespace
        if "." in name:
            put_at(namespace, name, value)
            return
        if name in namespace:
            old = namespace[name]
            for other in [other for other, thing in namespace.items() if thing is old]:
                namespace[other] = value
            if type(old) in (list, dict, set):
                for module in self._parts.references.modules():
                    for attribute in [attribute for attribute, thing in vars(module).items() if thing is old]:
                        setattr(module, attribute, value)
        namespace[name] = value

    def put_back(self, name: str, entry: Entry) -> None:
        """Bind a name, with all its aliases, to the value that an entry holds. Raises as ``prepare`` does."""
        if entry.payload is None:
            raise DamagedError(what=f"the payload of step {entry.step}", detail="there is none")
        values = self._parts.codec.unpack(entry.payload, resolve=self._parts.references.resolver(entry, {}))
        self._put_for_all(name, values.names[name])
        values.wake()
