"""Values that one record holds and another refers to (DESIGN 6): the live object, else what is stored.

A step that binds ``b = a`` is recorded with a reference to the record of ``a``. So the two are one object again after
a restart, and nothing is written twice. A reference never brings another content than the one that was recorded.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

from msgspec import Struct

from keel_notebook.core.fileholds import same
from keel_notebook.core.inside import follow, in_module, may_hold, reached, root_of, ways
from keel_notebook.core.model import Digest, Entry, EntryId, FlowId, Input
from keel_notebook.core.ports import PLAIN, Codec, FlowRecords, Known, Unpacked
from keel_notebook.core.provenance import of_data
from keel_notebook.core.secrets import secret_text
from keel_notebook.core.within import COPIED
from keel_notebook.engine.attempt import StepNow
from keel_notebook.errors import DamagedError, UntrustedError

_MOST_INSIDE = 200
"""Objects inside other values that one record refers to; further ones are copied."""
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
    is_local: Callable[[str], bool]
    """Whether a module is one of the person's own."""
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

    def inside(
        self, values: Sequence[Any], known: Mapping[int, Known], *, step: StepNow, without: Collection[str], flat: bool
    ) -> dict[int, Known]:
        """Of what lies in values that a step read, what its own ``values`` reach as well: ``cfg["a"].rows``.

        ``flat``: nothing lies in the ``values`` that could be changed.
        """
        wanted = {id(value) for value in values if may_hold(value)} if flat else reached(values)
        wanted -= known.keys()
        found: dict[int, Known] = {}
        for name, module in self._modules(step.inputs) if wanted else ():
            for way, part in in_module(name, module):
                if id(part) in wanted and (digest := self.digest(part)) is not None and len(found) < _MOST_INSIDE:
                    found[id(part)] = Known(PLAIN, way, digest)
        for name in step.inputs if wanted else ():
            value = self.namespace.get(name)
            home, stored = self.stored.get(name, ("", None))
            one = known.get(id(value)) or (stored if home == step.flow and name not in without else None)
            if one is None:
                continue
            for way, part in ways(one.name, value):
                if id(part) in wanted and id(part) not in found and len(found) < _MOST_INSIDE:
                    digest = self.digest(part)
                    if digest is not None and not secret_text(way):
                        found[id(part)] = Known(one.entry, way, digest)
        return found

    def modules(self) -> list[ModuleType]:
        """The local modules that the notebook uses, as far as its names tell."""
        names = {
            value.__name__ if type(value) is ModuleType else value.__module__
            for value in list(self.namespace.values())
            if type(value) in (ModuleType, FunctionType) or isinstance(value, type)
        }
        return [sys.modules[name] for name in names if name in sys.modules and self.is_local(name)]

    def _modules(self, names: Iterable[str]) -> Iterator[tuple[str, ModuleType]]:
        """The local modules among a step's inputs, by their own names; those of packages left out."""
        for name in names:
            value = sys.modules.get(name[:-3]) if name.endswith(".py") else self.namespace.get(name)
            if type(value) is ModuleType and self.is_local(value.__name__) and "." not in value.__name__:
                yield value.__name__, value

    def moved(
        self, flow: FlowId, inputs: Iterable[Input], before: Mapping[str, int], values: Iterable[Any]
    ) -> dict[int, Known]:
        """Of some values, those that had other names when the step began, and hold what they held: ``c = a; del a``.

        ``before`` are the identities of those names then. An object that died since may have left its own to another;
        then nobody else held it, and who takes the one of equal content for it on replay ties nothing together.
        """
        had = {before[item.name]: item for item in inputs if item.name in before and of_data(item.digest)}
        found: dict[int, Known] = {}
        for value in values:
            item = had.get(id(value))
            if item is None or item.digest is None or type(value) in COPIED or self.digest(value) != item.digest:
                continue
            home, one = self.stored.get(item.name, (flow, None))
            kept = one if one is not None and home == flow and one.digest == item.digest else None
            found[id(value)] = kept or Known(PLAIN, item.name, item.digest)
        return found

    def resolver(
        self, entry: Entry, sure: Mapping[str, Digest | None], read: Read | None = None
    ) -> Callable[[Known], Any]:
        """What finds the objects that ``entry`` refers to. ``sure``: what names are known to hold right now. ``read``:
        records that were read already, for entries that are put back together: what they share is one object then.

        It raises DamagedError (E051) or UntrustedError (E050) where a record is needed and not to be had.
        """
        found: Read = {} if read is None else read
        imported = {item.name[:-3] for item in entry.inputs if item.name.endswith(".py")}

        def resolve(known: Known) -> Any:
            if known.entry == PLAIN and (module := root_of(known.name)) in imported - sys.modules.keys():
                with contextlib.suppress(Exception):  # then its part comes back as a copy
                    importlib.import_module(module)
            return self._resolve(known, entry.flow, sure, found)

        return resolve

    def _resolve(
        self,
        known: Known,
        flow: FlowId,
        sure: Mapping[str, Digest | None],
        read: Read,
    ) -> Any:
        name = root_of(known.name)
        if name in self.namespace or (known.entry == PLAIN and name in sys.modules):
            try:
                live = follow(known.name, self.namespace.get(name, sys.modules.get(name)))
            except LookupError:
                live = None
            if same(sure.get(known.name), known.digest) or same(self.digest(live), known.digest):
                return live
        if known.entry == PLAIN:
            raise DamagedError(
                what=f"the value of {known.name}", detail="it is that of a plain cell: run that cell first"
            )
        if known.entry not in read:
            read[known.entry] = self._read(known, flow, sure, read)
        found = read[known.entry]
        if name not in found.names:
            detail = found.gone.get(name, "it does not hold that name")
            raise DamagedError(what=f"the record of {name}", detail=detail)
        try:
            return follow(known.name, found.names[name])
        except LookupError:
            raise DamagedError(what=f"the record of {name}", detail=f"it does not hold {known.name}") from None

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
