"""The state of global generators of random numbers as an input of a step, and as its own doing (DESIGN 6, Seeds).

A step depends on a generator if it drew from it, if the generator was seeded, and if the step did not seed it first.
What a step drew is never the input of its next attempt: like a value that it changed in place, the state is taken
back to what it was before the step, together with what later steps drew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgpack
from blake3 import blake3
from msgspec import Struct

from keel_notebook.capture.ambient_part import Lost, Part
from keel_notebook.capture.seeds import NUMPY, RANDOM, SEEDS, TORCH
from keel_notebook.core.environment import SEED, STATE, UNSEEDED

PART_OF: Mapping[str, str] = {RANDOM: "random", NUMPY: "numpy_random", TORCH: "torch_random"}
"""The part of ambient state that is each generator."""
_MOST = 200
"""Draws that are remembered; each keeps two states of 2.5 kB."""


class Drawn(Struct, frozen=True):
    """One step's draws from one generator: the states before and after, and what the one before counts as."""

    step: str
    before: Any
    after: Any
    token: str
    seed: str


class Generators:
    """The global generators of one kernel, and which steps drew from them."""

    def __init__(self, parts: Sequence[Part], *, key: bytes) -> None:
        by_name = {part.name: part for part in parts}
        self._parts = {group: by_name[name] for group, name in PART_OF.items() if name in by_name}
        self._key = key
        self._drawn: dict[str, list[Drawn]] = {}

    def seeds(self) -> dict[str, str | None]:
        """With which number each was seeded, empty where that is not known; None where it was not seeded."""
        return {group: SEEDS.number(group) if SEEDS.seeded(group) else None for group in self._parts}

    def now(self, group: str, step: str) -> dict[str, str]:
        """What a generator counts as for a step that wants to draw from it: as before its own draws."""
        part = self._parts.get(group)
        state = part.look() if part is not None else None
        if (mine := self._own(group, step, state)) is not None:
            return _settings(mine.token, mine.seed)
        if state is None or not SEEDS.seeded(group):
            return {STATE: UNSEEDED}
        return _settings(self._token(group, state), SEEDS.number(group))

    def rewind(self, step: str) -> None:
        """Take generators back to before this step's draws, where only steps have drawn since.

        An unseeded one goes on: its numbers come from nowhere, and the same ones twice would be a surprise.
        """
        for group, mine in self._taken_back(step).items():
            if mine.token != UNSEEDED:
                part = self._parts[group]
                part.put(part.change(None, mine.before, Lost()), Lost())
                SEEDS.put_back({group: True}, {group: mine.seed})

    def looks(self) -> dict[str, Any]:
        """The generators as they are, by part."""
        return {PART_OF[group]: part.look() for group, part in self._parts.items()}

    def before_replay(self, step: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Of the generators that the step has drawn from, the looks that its record is put back upon, and those as
        they are, with its draws."""
        taken = self._taken_back(step)
        return (
            {PART_OF[group]: mine.before for group, mine in taken.items()},
            {PART_OF[group]: self._parts[group].look() for group in taken},
        )

    def _taken_back(self, step: str) -> dict[str, Drawn]:
        """The step's draws, no longer remembered, and neither are those of later steps that built upon them."""
        found = {}
        for group, known in self._drawn.items():
            mine = self._own(group, step, self._parts[group].look()) if known else None
            if mine is not None:
                found[group] = mine
                del known[known.index(mine) :]
        return found

    def _own(self, group: str, step: str, state: Any) -> Drawn | None:
        """This step's draws, if the state holds them and nothing but draws of later steps."""
        for drawn in reversed(self._drawn.get(group, [])):
            if drawn.after != state:
                return None
            if drawn.step == step:
                return drawn
            state = drawn.before
        return None

    def ran(
        self, step: str, before: Mapping[str, Any], after: Mapping[str, Any], seeds: Mapping[str, str | None]
    ) -> dict[str, Drawn]:
        """A step ran or was put back; from which generators it drew.

        Args:
            step: its name.
            before: looks by the names of parts.
            after: the same.
            seeds: what ``seeds`` told before it ran.
        """
        found = {}
        for group, name in PART_OF.items():
            was, there = before.get(name), after.get(name)
            if was is None or there is None or was == there:
                continue
            seed = seeds.get(group)
            token = UNSEEDED if seed is None else self._token(group, was)
            found[group] = Drawn(step, was, there, token, seed or "")
            known = self._drawn.setdefault(group, [])
            known.append(found[group])
            del known[:-_MOST]
        return found

    def _token(self, group: str, state: Any) -> str:
        plain = self._parts[group].change(None, state, Lost())
        return blake3(msgpack.packb(plain), key=self._key).hexdigest(length=16)


def as_inputs(drawn: Mapping[str, Drawn], seeded_first: frozenset[str]) -> dict[str, dict[str, str]]:
    """What a step depends on, that drew from these and seeded some of them before it could draw."""
    return {group: _settings(each.token, each.seed) for group, each in drawn.items() if group not in seeded_first}


def _settings(token: str, seed: str) -> dict[str, str]:
    return {STATE: token, SEED: seed} if seed and token != UNSEEDED else {STATE: token}
