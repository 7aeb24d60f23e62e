"""Settings of libraries that steps themselves set, so that they are never taken for their own input (DESIGN 5, Rewind).

``plt.rcParams["font.size"] = 9`` is still there when the step comes round again in the same kernel: as the step left
it, the setting counts as what the step found; run anew, the step starts from what it found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from keel_notebook.capture.ambient_libraries import flat
from keel_notebook.capture.ambient_part import Lost, Part
from keel_notebook.capture.ambient_settings import PARTS, settings
from keel_notebook.core.environment import PANDAS_SHOWN


class _Set(Struct, frozen=True):
    before: str
    """What the step found, as a text; empty for what is as it comes."""
    left: str


class _Own(Struct):
    """What one step set."""

    texts: dict[str, dict[str, _Set]] = field(default_factory=dict)
    """By group and setting."""
    looks: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """By part: before the step, and as it left it."""


class OwnSettings:
    """Settings that steps set, by step. ``start`` is the folder in which the kernel started."""

    def __init__(self, parts: Mapping[str, Part], *, start: str) -> None:
        self._parts = {name: parts[name] for name in PARTS.values() if name in parts}
        self._start = start
        self._own: dict[str, _Own] = {}

    def looks(self) -> dict[str, Any]:
        """The settings as they are, by part."""
        return {name: part.look() for name, part in self._parts.items()}

    def ran(self, step: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """A step ran or was put back; ``before`` and ``after`` are looks by part, as they were and as they are."""
        own = self._own.setdefault(step, _Own())
        for name in [name for name in self._parts if name in after and before.get(name) != after[name]]:
            look = own.looks.get(name)
            first = look[0] if look is not None and look[1] == before.get(name) else before.get(name)
            own.looks[name] = (first, after[name])
        for group, part in PARTS.items():
            if part not in after or before.get(part) == after[part]:
                continue
            was, now = self._texts(group, before.get(part)), self._texts(group, after[part])
            known = own.texts.setdefault(group, {})
            for name in sorted(was.keys() | now.keys()):
                found, left = was.get(name, ""), now.get(name, "")
                if found != left:
                    mine = known.get(name)
                    known[name] = _Set(mine.before if mine is not None and mine.left == found else found, left)

    def _texts(self, group: str, look: Any) -> dict[str, str]:
        names = flat(look, "") if group == PANDAS_SHOWN and look is not None else ()
        return settings(group, look, names, self._start)

    def found(self, step: str, group: str, now: Mapping[str, str]) -> dict[str, str]:
        """The settings of a group as the step found them: what it set, and what steps set that first ran after it,
        counts as before where it is as they left it."""
        counted = dict(now)
        steps = list(self._own)
        for each in reversed(steps[steps.index(step) :] if step in steps else []):
            for name, mine in self._own[each].texts.get(group, {}).items():
                if counted.get(name, "") == mine.left:
                    counted.pop(name, None)
                    if mine.before:
                        counted[name] = mine.before
        return counted

    def rewind(self, step: str) -> None:
        """Take back what the step set, where nobody set anything else of that kind since: it is about to run anew."""
        own = self._own.pop(step, None)
        for name, (before, left) in (own.looks if own is not None else {}).items():
            part = self._parts[name]
            if before is not None and part.look() == left and (change := part.change(left, before, Lost())) is not None:
                part.put(change, Lost())
