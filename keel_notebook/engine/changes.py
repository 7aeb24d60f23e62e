"""Looks at what a call may change in place: before it runs, after it ran, and when it is replayed (DESIGN 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from keel_notebook.core.model import Digest, NotStored
from keel_notebook.core.ports import Digested
from keel_notebook.engine.arguments import ArgumentDigests
from keel_notebook.engine.counting import Counting, by_origin
from keel_notebook.engine.places import NoRecipe, Snapshot, put_back
from keel_notebook.engine.prints import Part, Print

if TYPE_CHECKING:
    from keel_notebook.engine.callparts import Claim


class Changed(Struct, frozen=True):
    """What a call changed: a recipe for each place, and the new values that the recipes speak of."""

    recipes: dict[str, Any]
    new: list[Any]
    refused: tuple[NotStored, ...]
    used: tuple[tuple[str, str], ...] = ()
    """Clients and their like (name and type) that look different now: they changed themselves, which stays as it is."""


class _Place(Struct):
    name: str
    """For people."""
    where: str
    """``arg NAME`` or ``part NUMBER``: finds it again when the call is replayed."""
    read: Callable[[], Any]
    value: Any
    digest: Digest | None
    snapshot: Snapshot | None
    looked: Digested | None = None
    """How it looked; of what may be a client only."""
    data: dict[str, Digest | None] | None = None
    """What is data inside of something that counts by how it was made."""


class Watched:
    """The places that one call may change, as they were before it ran."""

    def __init__(self, places: list[_Place], digest: Callable[[Any], Digest | None], counting: Counting) -> None:
        self._places = places
        self._digest = digest
        self._counting = counting

    def changed(self) -> Changed | None:
        """What is different now; None where nothing is."""
        recipes: dict[str, Any] = {}
        new: list[Any] = []
        refused: list[NotStored] = []
        used: list[tuple[str, str]] = []
        for place in self._places:
            now = place.read()
            try:
                if now is not place.value:
                    new.append(now)
                    recipes[place.where] = ["bind", len(new) - 1]
                elif self._is_client(place, now):
                    if self._used(place, now):
                        used.append((place.name, type(now).__qualname__))
                elif place.digest is None or self._digest(now) != place.digest:
                    if place.snapshot is None:
                        raise NoRecipe(type(now).__qualname__)
                    recipe = place.snapshot.recipe(new)
                    if recipe is None:
                        raise NoRecipe(type(now).__qualname__)
                    recipes[place.where] = recipe
            except NoRecipe as error:
                refused.append(NotStored(place.name, str(error), "the call changed it in place"))
        return Changed(recipes, new, tuple(refused), tuple(used)) if recipes or refused or used else None

    def _is_client(self, place: _Place, now: Any) -> bool:
        """Whether it counts by how it was made; one that opened its connection only now has a digest no more."""
        return by_origin(place.digest) or (place.looked is not None and self._counting.raw(now).outline)

    def _used(self, place: _Place, now: Any) -> bool:
        """Whether a client looks different. Raises NoRecipe where what changed inside of it is data."""
        if place.looked is None:
            return False
        if place.data is not None and self._counting.data(now) != place.data:
            raise NoRecipe(type(now).__qualname__)
        return self._counting.used(now, place.looked)


class Changes:
    """Watches calls and puts recorded changes back."""

    def __init__(self, arguments: ArgumentDigests) -> None:
        self._arguments = arguments

    def watch(self, claim: Claim, found: Print) -> Watched:
        """The places that a call may change."""
        changing = found.changing
        places: list[_Place] = []
        seen: set[int] = set()
        for name, (value, digest) in claim.arguments.mutable.items():
            if id(value) not in seen:
                seen.add(id(value))
                places.append(self._place(f"argument {name}", f"arg {name}", lambda value=value: value, digest))  # type: ignore[misc]
        for at, part in enumerate(found.parts):
            if part in changing and id(part.value) not in seen:
                seen.add(id(part.value))
                known = part.constant or by_origin(part.digest)
                digest = part.digest if known else self._one(part.value)
                places.append(self._place(part.name, f"part {at}", part.read, digest))
        return Watched(places, self._one, self._arguments.counting)

    def _place(self, name: str, where: str, read: Callable[[], Any], digest: Digest | None) -> _Place:
        value, counting = read(), self._arguments.counting
        if by_origin(digest) and counting.is_opaque(value):
            return _Place(name, where, read, value, digest, None)
        if by_origin(digest):
            return _Place(name, where, read, value, digest, None, counting.raw(value), counting.data(value))
        try:
            snapshot = Snapshot(value, self._one)
        except NoRecipe:
            snapshot = None  # too large to look through: a change of it is refused
        if digest is None or not counting.may_become(value):
            return _Place(name, where, read, value, digest, snapshot)
        return _Place(name, where, read, value, digest, snapshot, Digested(digest), counting.data(value))

    def _one(self, value: Any) -> Digest | None:
        return self._arguments.one(value)[0]

    def put_back(self, claim: Claim, found: Print, recipes: dict[str, Any], value: tuple[Any, list[Any]]) -> Any:
        """Do to the live objects what the recorded call had done, and give its result. Raises NoRecipe."""
        result, new = value
        for where, recipe in recipes.items():
            kind, _, name = where.partition(" ")
            if kind == "arg":
                put_back(claim.arguments.mutable[name][0], recipe, new)
            else:
                self._put_part(found.parts[int(name)], recipe, new)
        return result

    @staticmethod
    def _put_part(part: Part, recipe: list[Any], new: list[Any]) -> None:
        if recipe[0] != "bind":
            put_back(part.read(), recipe, new)
        elif part.bind is not None:
            part.bind(new[recipe[1]])
        else:
            raise NoRecipe(part.name)
