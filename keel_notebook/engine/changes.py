"""Looks at what a call may change in place: before it runs, after it ran, and when it is replayed (DESIGN 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from keel_notebook.core.model import Digest, NotStored
from keel_notebook.engine.arguments import ArgumentDigests
from keel_notebook.engine.places import NoRecipe, Snapshot, put_back
from keel_notebook.engine.prints import Part, Print

if TYPE_CHECKING:
    from keel_notebook.engine.callparts import Claim


class Changed(Struct, frozen=True):
    """What a call changed: a recipe for each place, and the new values that the recipes speak of."""

    recipes: dict[str, Any]
    new: list[Any]
    refused: tuple[NotStored, ...]


class _Place(Struct):
    name: str
    """For people."""
    where: str
    """``arg NAME`` or ``part NUMBER``: finds it again when the call is replayed."""
    read: Callable[[], Any]
    value: Any
    digest: Digest | None
    snapshot: Snapshot | None


class Watched:
    """The places that one call may change, as they were before it ran."""

    def __init__(self, places: list[_Place], digest: Callable[[Any], Digest | None]) -> None:
        self._places = places
        self._digest = digest

    def changed(self) -> Changed | None:
        """What is different now; None where nothing is."""
        recipes: dict[str, Any] = {}
        new: list[Any] = []
        refused: list[NotStored] = []
        for place in self._places:
            now = place.read()
            try:
                if now is not place.value:
                    new.append(now)
                    recipes[place.where] = ["bind", len(new) - 1]
                elif place.digest is None or self._digest(now) != place.digest:
                    if place.snapshot is None:
                        raise NoRecipe(type(now).__qualname__)
                    recipe = place.snapshot.recipe(new)
                    if recipe is None:
                        raise NoRecipe(type(now).__qualname__)
                    recipes[place.where] = recipe
            except NoRecipe as error:
                refused.append(NotStored(place.name, str(error), "the call changed it in place"))
        return Changed(recipes, new, tuple(refused)) if recipes or refused else None


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
                digest = part.digest if part.constant else self._one(part.value)
                places.append(self._place(part.name, f"part {at}", part.read, digest))
        return Watched(places, self._one)

    def _place(self, name: str, where: str, read: Callable[[], Any], digest: Digest | None) -> _Place:
        value = read()
        try:
            snapshot = Snapshot(value, self._one)
        except NoRecipe:
            snapshot = None  # too large to look through: a change of it is refused
        return _Place(name, where, read, value, digest, snapshot)

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
