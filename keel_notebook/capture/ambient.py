"""State that has no name: what a step changes of it is recorded, and put back on replay (DESIGN 6, Ambient state).

Random generators, working directory, environment, settings of libraries. Each kind of state is a ``Part``; parts of
libraries look only at what is imported already. A look is cheap; only a step that changed something pays for more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgpack
from msgspec import Struct

from keel_notebook.capture import ambient_accessors, ambient_libraries, ambient_modules, ambient_python
from keel_notebook.capture.ambient_part import Lost, Part
from keel_notebook.capture.generators import PART_OF
from keel_notebook.capture.seeds import SEEDS

UNRESTORABLE = "unrestorable"
"""Key in a change: what the step changed and a replay cannot put back, in words."""
SEEDED = "seeded"
"""Key in a change: which of the generators that the step left in another state go back to a seed."""
NUMBERS = "seed numbers"
"""Key in a change: with which number each of those was seeded, where that is known."""


class AmbientState(Struct, frozen=True):
    """The state before a step, part by part."""

    looks: Mapping[str, Any]


class _Unreadable:
    """A state that could not be looked at: never equal, so that it is named."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]  # equal to nothing, itself included


class AmbientWatch:
    """Tells what a step changed of the state that has no name (port ``Ambient``).

    ``start`` is the folder that recorded paths are relative to: the one in which the kernel started.
    """

    def __init__(self, *, start: str | None = None, parts: Sequence[Part] | None = None) -> None:
        self._parts = default_parts(start) if parts is None else tuple(parts)

    def before(self) -> AmbientState:
        """The state before the body runs."""
        return AmbientState({part.name: _look(part) for part in self._parts})

    def after(self, state: AmbientState, now: AmbientState | None = None) -> dict[str, Any]:
        """What changed since: MessagePack-able, by part, and under ``unrestorable`` what cannot be put back.

        Values of environment variables that look secret are never in it. ``now``: the state as it is, where somebody
        has looked already.
        """
        found: dict[str, Any] = {}
        lost = Lost()
        looks = (self.before() if now is None else now).looks
        for part in self._parts:
            before, after = state.looks.get(part.name), looks[part.name]
            if isinstance(after, _Unreadable) or isinstance(before, _Unreadable):
                lost.append(f"{part.name}: it could not be read")
            elif before != after and after is not None:
                change = _change(part, before, after, lost)
                if change is not None:
                    found[part.name] = change
        drawn = [group for group, name in PART_OF.items() if name in found]
        if drawn:  # what draws from them later on depends on a seed, or does not
            found[SEEDED] = {group: SEEDS.seeded(group) for group in drawn}
            numbers = {group: number for group in drawn if (number := SEEDS.number(group))}
            found |= {NUMBERS: numbers} if numbers else {}
        if lost:
            found[UNRESTORABLE] = sorted(lost)
        return found

    def touches(self, change: Mapping[str, Any]) -> bool:
        """Whether ``apply`` would put anything back."""
        return any(part.name in change for part in self._parts)

    def apply(self, change: Mapping[str, Any]) -> Sequence[str]:
        """Put back what ``after`` told. Returns what could not be put back, in words; other keys are left alone."""
        lost = Lost()
        for part in self._parts:
            if part.name in change:
                _put(part, change[part.name], lost)
        SEEDS.put_back(change.get(SEEDED, {}), change.get(NUMBERS, {}))
        return lost


def default_parts(start: str | None) -> tuple[Part, ...]:
    """All parts, as they are put back: generators last, because importing a library may draw numbers."""
    return (
        *ambient_python.settings(start),
        ambient_modules.ModuleGlobals(),
        *ambient_libraries.settings(),
        ambient_accessors.Accessors(),
        ambient_python.Random(),
        *ambient_libraries.generators(),
    )


def readable(state: AmbientState) -> Mapping[str, Any]:
    """Looks by part, those left out that could not be had."""
    return {name: look for name, look in state.looks.items() if not isinstance(look, _Unreadable)}


def _look(part: Part) -> Any:
    try:
        return part.look()
    except Exception as problem:  # noqa: BLE001 - a half-imported or patched library is not the step's fault
        return _Unreadable(type(problem).__name__)


def _change(part: Part, before: Any, after: Any, lost: Lost) -> Any:
    try:
        change = part.change(before, after, lost)
        msgpack.packb(change)  # a path that is no text, say: better named here than met by the journal
        return change
    except Exception as problem:  # noqa: BLE001 - as above; the step is recorded, this is named
        lost.append(f"{part.name}: {type(problem).__name__}")
        return None


def _put(part: Part, change: Any, lost: Lost) -> None:
    try:
        part.put(change, lost)
    except Exception as problem:  # noqa: BLE001 - whatever a library raises: the rest is put back, this is named
        lost.append(f"{part.name}: {type(problem).__name__}")
