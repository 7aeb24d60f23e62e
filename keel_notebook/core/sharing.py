"""Which names share an object, as an input of a step (DESIGN 6, Writes).

A step that changes ``a`` in place changes all that holds it. Digests do not tell who does, so a record keeps, under
``SHARING``, how the names that its step changed held parts of each other before the body ran; under ``IDENTITY`` the
same for the inputs of a step whose code asks (``a is b``), and under ``LAYOUT`` how their arrays lay in memory.

A *pair* of names is the two in order with a comma between them; the same name twice stands for what a value holds
more than once. Names that a replay put back are left out: their values come as they were recorded, while objects of
other cells inside them come as copies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

SHARING = "sharing"
IDENTITY = "identity"
LAYOUT = "layout"
"""Keys of ``Entry.ambient``."""


class Pattern(Struct, frozen=True):
    """How some names share objects."""

    of: tuple[str, ...] = ()
    pairs: Mapping[str, str] = field(default_factory=dict)
    """A token for every pair that shares something; another token where they share something else."""
    beside: tuple[str, ...] = ()
    """Other names that hold parts of theirs."""

    def told(self) -> dict[str, Any]:
        """As a record keeps it."""
        return {"of": list(self.of), "pairs": dict(self.pairs), "beside": list(self.beside)}


class AsItIs(Struct, frozen=True):
    """What a step that wants to run would find, for one record of it."""

    sharing: Pattern | None = None
    identity: Pattern | None = None
    layout: Mapping[str, str] = field(default_factory=dict)
    put_back: frozenset[str] = frozenset()
    """Names whose values replays put back."""


def pair(one: str, other: str) -> str:
    """The key of two names."""
    return ",".join(sorted((one, other)))


def asked(ambient: Mapping[str, Any]) -> bool:
    """Whether a record speaks of objects at all."""
    return any(key in ambient for key in (SHARING, IDENTITY, LAYOUT))


def differing(
    ambient: Mapping[str, Any], now: AsItIs, applied: Collection[str] = (), clients: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """Names, with what is different about their objects, in words.

    Args:
        ambient: of the record.
        now: the same as it is now.
        applied: names that hold what the step itself left: what they share is its own doing.
        clients: names that count by how they were made: what such an object holds where changes whenever it is used.
    """
    for key, found in ((SHARING, now.sharing), (IDENTITY, now.identity)):
        recorded = ambient.get(key)
        if recorded is None or found is None or (key == SHARING and set(recorded["of"]) & set(applied)):
            continue
        yield from _of_pattern(recorded, found, now.put_back, clients)
    for name, layout in ambient.get(LAYOUT, {}).items():
        if name not in now.put_back and now.layout.get(name, layout) != layout:
            yield name, "lies otherwise in memory"


def _of_pattern(
    recorded: Mapping[str, Any], now: Pattern, skip: Collection[str], clients: Collection[str]
) -> Iterator[tuple[str, str]]:
    before: Mapping[str, str] = recorded["pairs"]
    for key in sorted(before.keys() | now.pairs.keys()):
        one, other = key.split(",")
        inside = one == other or (key in before and key in now.pairs)
        if inside and (one in clients or other in clients):
            continue
        if one not in skip and other not in skip and before.get(key) != now.pairs.get(key):
            yield one, _said(one, other, was=key in before, is_now=key in now.pairs)
    if not set(skip) >= set(now.of):
        for name in sorted(set(now.beside) - set(recorded["beside"]) - set(skip)):
            yield name, f"shares an object with {', '.join(now.of)} now"


def _said(one: str, other: str, *, was: bool, is_now: bool) -> str:
    if one == other:
        return "holds one object in other places"
    if was and is_now:
        return f"shares other parts with {other}"
    return f"shares nothing with {other} any more" if was else f"shares an object with {other} now"


def accepted(ambient: Mapping[str, Any], now: AsItIs | None) -> dict[str, Any]:
    """What a record keeps that a person accepts for the notebook as it is."""
    if now is None:
        return dict(ambient)
    patterns = {SHARING: now.sharing, IDENTITY: now.identity}
    kept = {key: found.told() for key, found in patterns.items() if found is not None}
    return {**ambient, **kept, **({LAYOUT: dict(now.layout)} if LAYOUT in ambient else {})}
