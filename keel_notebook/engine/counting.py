"""What a value counts as for durable calls: by its content, else by how it was made (DESIGN 5, Undigestible values).

A client, a connection or a lock has no content to compare, and is expected to change itself when it is used: that is no
change that a replay has to put back. What is data inside of such an object (rows of a store that holds a lock, a table
in memory) is one. Unknown is never equal: what nobody saw being made has no digest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.connections import is_connection
from keel_notebook.core.ids import text_digest
from keel_notebook.core.model import Digest
from keel_notebook.core.ports import Definitions, Digested, Digester
from keel_notebook.core.provenance import BY_ORIGIN
from keel_notebook.engine.plain import ATOMS

Vouch = Callable[[str, Digested], Digested]
"""Gives the digest of what a name holds where only its outline is known; None in it where nobody saw it made."""

_PLAIN: Final = frozenset({list, dict, tuple, set, bytearray})
"""What a function put a lock into is data all the same."""
_MOST: Final = 64
_MOST_INSIDE: Final = 20_000


def nobody_vouches(_: str, digested: Digested) -> Digested:
    """Where nobody watches how values are made, they are unknown."""
    return replace(digested, digest=None)


def by_origin(digest: Digest | None) -> bool:
    """Whether a value counts by how it was made: its own changes are no difference."""
    return digest is not None and digest.startswith(BY_ORIGIN)


class _Used(Struct):
    value: Any
    after: Digest | None
    """How it looked when a durable call had used it."""
    counted: Digested
    """What it counted as before."""


class Counting:
    """What the values of one kernel count as."""

    def __init__(
        self, *, compared: Digester, definitions: Definitions, vouch: Vouch, namespace: dict[str, Any]
    ) -> None:
        """``compared``: gives outlines, marked as such, of values that have no digest."""
        self._compared = compared
        self._definitions = definitions
        self._vouch = vouch
        self._namespace = namespace
        self._used: dict[int, _Used] = {}
        self._written: dict[int, Any] = {}

    def raw(self, value: Any) -> Digested:
        """How a value looks; one that durable calls used since looks as it did before them."""
        found = self._compared.digest(value)
        used = self._used.get(id(value)) if found.outline else None
        return used.counted if used is not None and used.value is value and used.after == found.digest else found

    def of(self, value: Any, names: Sequence[str] = (), owner: Sequence[str] = ()) -> Digested:
        """What a value counts as. ``names``: those that it was read by; without them all that hold this object, else
        the function (``owner``) inside which it lies."""
        found = self.raw(value)
        if not found.outline:
            return found
        if id(value) in self._written:
            return replace(found, digest=None, reason="a durable call wrote into it")
        inside = (value,) if self.is_opaque(value) else (item for _, item, _ in self._inside(value))
        if any(is_connection(type(item)) for item in inside):
            return replace(found, digest=None, reason="a database is asked anew")
        made = [self._vouch(name, found) for name in names or self.names_of(value) or owner]
        digests = [each.digest for each in made if each.digest is not None]
        if not made or len(digests) < len(made):
            reason = next((each.reason for each in made if each.digest is None), "")
            return replace(found, digest=None, reason=found.reason or reason)
        return replace(found, digest=Digest(BY_ORIGIN + text_digest(*digests)))

    def names_of(self, value: Any) -> list[str]:
        """The names of the notebook that hold this very object."""
        held = [name for name, now in list(self._namespace.items()) if now is value and not name.startswith("_")]
        return sorted(held)

    def used(self, value: Any, before: Digested) -> bool:
        """A durable call used a value: from now on it counts as before. Whether it looks different now."""
        found = self._compared.digest(value)
        if not found.outline or found.digest == before.digest:
            return False
        if len(self._used) >= _MOST:
            self._used.clear()
        self._used[id(value)] = _Used(value, found.digest, before)
        return before.outline

    def written(self, value: Any) -> None:
        """The function of a durable call writes into a client: what it counts as, nobody knows from now on."""
        self._written[id(value)] = value  # held, so that no other object has its id

    def data(self, value: Any) -> dict[str, Digest | None]:
        """What is data inside of an object without a digest: all but clients of libraries, and but plain attributes
        (a count of requests, a time, a token), which such an object keeps for itself. The object itself is taken apart
        although it may still have a digest: its client may be made on first use."""
        if self.is_opaque(value):
            return {}
        return {path: looks.digest for path, item, looks in self._inside(value) if not self._is_client(item, looks)}

    def _is_client(self, item: Any, looks: Digested) -> bool:
        return looks.outline and not is_connection(type(item))

    def _inside(self, value: Any) -> Iterator[tuple[str, Any, Digested]]:
        todo: list[tuple[str, Any]] = [("", value)]
        seen: set[int] = set()
        while todo and len(seen) < _MOST_INSIDE:
            path, item = todo.pop()
            if id(item) in seen:
                continue
            seen.add(id(item))
            looks = self._compared.digest(item)
            inner = self._parts(item) if looks.outline or item is value else None
            if inner is None:
                yield path, item, looks
            else:
                todo += [(f"{path}{at}", part) for at, part in inner]

    def is_opaque(self, value: Any) -> bool:
        """Whether nothing is seen of a client but its type, which no use of it changes."""
        return self._parts(value) is None

    def may_become(self, value: Any) -> bool:
        """Whether a value that has a digest may turn into a client when it is used: a connection that is not open yet,
        or an object of the notebook with room for one."""
        if type(value) in _PLAIN or not hasattr(value, "__dict__") or callable(value):
            return False
        return not self._is_own(value) or None in vars(value).values()

    def _is_own(self, item: Any) -> bool:
        kind = type(item)
        if not hasattr(item, "__dict__") or isinstance(item, dict | list | tuple | set):
            return False
        return self._definitions.belongs(kind) or self._definitions.is_local(kind.__module__)

    def _parts(self, item: Any) -> list[tuple[str, Any]] | None:
        kind = type(item)
        if kind is dict:
            return [(f"[{key!r}]", part) for key, part in list(item.items())]
        if kind is list or kind is tuple:
            return [(f"[{at}]", part) for at, part in enumerate(item)]
        if not self._is_own(item):
            return None
        return [(f".{name}", part) for name, part in list(vars(item).items()) if type(part) not in ATOMS]
