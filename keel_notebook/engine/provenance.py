"""Digests of values that have none, by how they were made (DESIGN 5, *Undigestible values*; traps 3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.core.ids import text_digest
from keel_notebook.core.model import Digest
from keel_notebook.core.ports import Digested
from keel_notebook.core.provenance import BY_ORIGIN, Origin
from keel_notebook.core.reads import CellNames
from keel_notebook.engine import scope
from keel_notebook.engine.ledger import Ledger
from keel_notebook.engine.scope import StepScope


class OriginSenses(Struct, frozen=True):
    """What is asked about the notebook to tell where a value comes from."""

    namespace: Mapping[str, Any]
    reached: Callable[[Iterable[str], CellNames], Mapping[str, Digested]]
    """Names to digests, with every name that functions among them read."""
    stored_by_functions: Callable[[], frozenset[str]]
    """Names that functions of the notebook may bind behind everybody's back (``global``)."""
    file_named: Callable[[str], Digest | None]
    """What a file of this name holds; None where there is none that a value would be made from."""
    setting: Callable[[str], Digest | None]
    """The environment variable of this name; None where there is none."""
    code_of: Callable[[Any], str]
    """The text of a function or class of the notebook; empty for anything else."""


class Provenance:
    """Vouches for clients, connections and their like by type and provenance."""

    def __init__(self, ledger: Ledger, senses: OriginSenses) -> None:
        self.ledger = ledger
        self.senses = senses
        self._known: dict[Origin, Digest | None] = {}
        self._asked: set[Origin] = set()

    def vouched(self, found: Mapping[str, Digested]) -> dict[str, Digested]:
        """The same digests; those that are only an outline with the provenance of their names, or unknown."""
        return {name: self.one(name, digested) for name, digested in found.items()}

    def one(self, name: str, digested: Digested) -> Digested:
        """The digest of what a name holds."""
        if not digested.outline:
            return digested
        (self.ledger.inward.add if digested.inward else self.ledger.inward.discard)(name)
        if name in self.ledger.left:
            return replace(digested, digest=self.ledger.left[name])
        made = self._made(name)
        if made is None:
            return replace(digested, digest=None, reason=digested.reason or "nobody saw how it was made")
        return replace(digested, digest=Digest(BY_ORIGIN + text_digest(made, digested.digest or "")))

    def _made(self, name: str) -> Digest | None:
        origin = self.ledger.origins.of(name)
        if origin is None:
            return None
        noted = self.ledger.ids.get(name)
        if noted is None:  # it was bound before anybody watched, by what its cell says
            if name in self.senses.stored_by_functions():
                return None
        elif noted != id(self.senses.namespace.get(name)):
            return None
        try:
            return self._digest(origin)
        except RecursionError:
            return None

    def _digest(self, origin: Origin) -> Digest | None:
        """By the statement, by what it read, and by what it changed: oldest first, for there may be many."""
        chain: list[Origin] = []
        at: Origin | None = origin
        while at is not None and at not in self._known and at not in self._asked:
            chain.append(at)
            at = at.before
        done = "" if at is None else self._known.get(at, _ITSELF)
        for each in reversed(chain):
            self._asked.add(each)
            parts = self._parts(each)
            self._asked.discard(each)
            unknown = done is None or parts is None
            done = self._known[each] = None if unknown else text_digest("made", each.by, done or "", *(parts or ()))
        return None if done is None else Digest(done)

    def _parts(self, origin: Origin) -> list[str] | None:
        """What a statement read, by content where that is still there; None where some of it is unknown."""
        if origin.names is None:
            return []
        now = self.ledger.origins.of
        space = self.senses.namespace
        live = [name for name, then in origin.reads.items() if name in space and now(name) is then]
        parts: list[str] = []
        for name, then in origin.reads.items():
            if name not in space and then is None:
                continue  # a built-in, or nothing
            if name not in live and not self._add(parts, name, self._then(then)):
                return None
        texts, asked = set(origin.texts), set[str]()
        for name, digested in sorted(self.senses.reached(live, origin.names).items()):
            digest = digested.digest
            if digested.outline or digest is None:
                digest = self._then(now(name))
            if not self._add(parts, name, digest):
                return None
            texts |= _as_path(space.get(name))
            if _ASKS_ENVIRONMENT.search(code := self.senses.code_of(space.get(name))):
                asked.update(_TEXT.findall(code))
        parts += [each for name in sorted(asked) if (each := self.senses.setting(name))]
        settings = origin.names.chains & _ENVIRONMENT
        for text in sorted(texts):
            parts += [each for each in (self.senses.file_named(text), settings and self.senses.setting(text)) if each]
        return parts

    def _then(self, origin: Origin | None) -> Digest | None:
        if origin is None:
            return None
        return _ITSELF if origin in self._asked else self._digest(origin)

    @staticmethod
    def _add(parts: list[str], name: str, digest: Digest | None) -> bool:
        if digest is not None:
            parts += (name, digest)
        return digest is not None


class WhileRunning:
    """The same while a cell runs, with what the cell says that it does to its names: how far it came, nobody knows.

    Used by durable calls. What they do themselves is looked at where they are made.
    """

    def __init__(self, still: Provenance) -> None:
        """``still``: vouches while no cell runs."""
        self._ledger = still.ledger
        self._senses = still.senses
        self._now: tuple[StepScope | None, Provenance] = (None, still)

    def one(self, name: str, digested: Digested) -> Digested:
        """The digest of what a name holds."""
        here = scope.current()
        if here is not self._now[0]:
            self._now = (here, self._within(here))
        return self._now[1].one(name, digested)

    def _within(self, here: StepScope | None) -> Provenance:
        ledger = self._ledger
        if here is None or here.cell is None:
            return Provenance(ledger, self._senses)
        keel = [name for name, value in list(self._senses.namespace.items()) if is_keel(value)]
        origins, touched = ledger.origins.running(here.cell, frozenset(keel))
        ids = {name: at for name, at in ledger.ids.items() if name not in touched}
        return Provenance(replace(ledger, origins=origins, ids=ids), self._senses)


def is_keel(value: Any) -> bool:
    """Whether a value is the package, under whatever name."""
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "keel_notebook"


_ITSELF = Digest("itself")
"""Where a function that makes a value also reads its name."""
_ASKS_ENVIRONMENT = re.compile(r"\benviron\b|\bgetenv\b")
_TEXT = re.compile(r"""["'](\w+)["']""")
_ENVIRONMENT = frozenset({"os.environ", "os.getenv", "environ", "getenv", "os.environ.get", "environ.get"})


def _as_path(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value} if 0 < len(value) < 1024 else set()
    return {str(value)} if hasattr(value, "__fspath__") else set()
