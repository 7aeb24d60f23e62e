"""Values that one record holds and another refers to (DESIGN 6): the live object, else what is stored.

A step that binds ``b = a`` is recorded with a reference to the record of ``a``. So the two are one object again after
a restart, and nothing is written twice. A reference never brings another content than the one that was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import Any

from msgspec import Struct

from keel_notebook.core.fileholds import same
from keel_notebook.core.model import Digest, Entry, EntryId, FlowId, Input
from keel_notebook.core.ports import PLAIN, Codec, FlowRecords, Known, Unpacked
from keel_notebook.core.within import COPIED
from keel_notebook.errors import DamagedError, UntrustedError

Read = dict[EntryId, Unpacked]
"""Records by their entries, read whole."""


class References(Struct, frozen=True):
    """Finds what references of one kernel stand for."""

    codec: Codec
    namespace: Mapping[str, Any]
    digest: Callable[[Any], Digest | None]
    records: Callable[[FlowId], FlowRecords]
    stored: Mapping[str, tuple[FlowId, Known]]
    """Names whose values the records of steps hold, as far as is known."""
    journal_id: str
    """What the journal is called where somebody trusts it."""

    def known(self, flow: FlowId, *, without: frozenset[str], among: Container[int] | None = None) -> dict[int, Known]:
        """Live objects, by their identity, that a new record of this flow may refer to; the codec compares them.

        ``among``: identities of all that the record can hold, where that is known.
        """
        found: dict[int, Known] = {}
        if among is not None and not any(map(among.__contains__, map(id, map(self.namespace.get, self.stored)))):
            return found  # nearly every small value: no loop over all that a long notebook has stored
        for name, (home, one) in self.stored.items():
            if home == flow and name not in without:
                value = self.namespace.get(name)
                if type(value) not in COPIED:
                    found[id(value)] = one
        return found

    def of_plain_cells(self, inputs: Iterable[Input], *, without: Collection[str]) -> dict[int, Known]:
        """Live objects of plain cells among a step's inputs: a record may refer to the names that were compared."""
        return {
            id(self.namespace[item.name]): Known(PLAIN, item.name, item.digest)
            for item in inputs
            if item.digest is not None and item.name in self.namespace and item.name not in without
        }

    def resolver(
        self, entry: Entry, sure: Mapping[str, Digest | None], read: Read | None = None
    ) -> Callable[[Known], Any]:
        """What finds the objects that ``entry`` refers to. ``sure``: what names are known to hold right now. ``read``:
        records that were read already, for entries that are put back together: what they share is one object then.

        It raises DamagedError (E051) or UntrustedError (E050) where a record is needed and not to be had.
        """
        found: Read = {} if read is None else read
        return lambda known: self._resolve(known, entry.flow, sure, found)

    def _resolve(
        self,
        known: Known,
        flow: FlowId,
        sure: Mapping[str, Digest | None],
        read: Read,
    ) -> Any:
        if known.name in self.namespace:
            live = self.namespace[known.name]
            if same(sure.get(known.name), known.digest) or same(self.digest(live), known.digest):
                return live
        if known.entry == PLAIN:
            raise DamagedError(
                what=f"the value of {known.name}", detail="it is that of a plain cell: run that cell first"
            )
        if known.entry not in read:
            read[known.entry] = self._read(known, flow, sure, read)
        found = read[known.entry]
        if known.name not in found.names:
            detail = found.gone.get(known.name, "it does not hold that name")
            raise DamagedError(what=f"the record of {known.name}", detail=detail)
        return found.names[known.name]

    def _read(
        self,
        known: Known,
        flow: FlowId,
        sure: Mapping[str, Digest | None],
        read: Read,
    ) -> Unpacked:
        records = self.records(flow)
        entry = next((entry for entry in records.entries if entry.entry == known.entry), None)
        if entry is None or entry.payload is None:
            raise DamagedError(what=f"the record of {known.name}", detail="it is gone, and another one refers to it")
        if entry.entry in records.untrusted:
            raise UntrustedError(what=f"the record of step {entry.step}", id=self.journal_id)
        return self.codec.unpack(entry.payload, resolve=lambda one: self._resolve(one, flow, sure, read), partly=True)
