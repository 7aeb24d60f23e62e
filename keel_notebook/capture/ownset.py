"""What steps themselves set without a name, so that it is never taken for their own input (DESIGN 5, Rewind; C31).

An import sets environment variables, a step sets options of libraries. In the same kernel they are still there when
the step comes round again: with exactly what it left they count as what it found.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from keel_notebook.capture.audit import TIMES_SET, count_variables

Raw = Mapping[Any, Any]
"""The dict inside ``os.environ``."""


def environment() -> Raw:
    """The variables as they are now, in the system's own form."""
    raw: Raw = getattr(os.environ, "_data", os.environ)
    return raw


def differing(before: Raw, now: Raw) -> frozenset[str]:
    """The names of variables that are not as they were."""
    return frozenset(map(os.fsdecode, _differing(before, now)))


def _differing(before: Raw, now: Raw) -> list[Any]:
    if before == now:  # nearly always, and some hundred names are not looked at one by one
        return []
    return [name for name in before.keys() | now.keys() if before.get(name) != now.get(name)]


class _Set(Struct, frozen=True):
    before: Any
    """What the step found; None where there was nothing."""
    left: Any
    times: int
    """How often the variable had been set by then: who sets it again, to the same text, is another one."""
    by_libraries: bool

    def holds(self, name: Any, now: Raw) -> bool:
        """Whether the variable is as the step left it, and nobody has set it since."""
        return bool(now.get(name) == self.left and TIMES_SET[name] == self.times)


class OwnVariables:
    """Environment variables that steps set, by step."""

    def __init__(self) -> None:
        count_variables()
        self._set: dict[str, dict[Any, _Set]] = {}
        self._by_keel: dict[Any, _Set] = {}

    def ran(self, step: str, before: Raw, *, ours: Callable[[str], bool]) -> None:
        """A step ran or was put back; ``ours`` tells names that code of the notebook set, not an import."""
        own = self._set.setdefault(step, {})
        now = environment()
        for name in [name for name, mine in own.items() if not mine.holds(name, now)]:
            del own[name]
        for name in _differing(before, now):
            first = own[name].before if name in own else before.get(name)
            own[name] = _Set(first, now.get(name), TIMES_SET[name], not ours(os.fsdecode(name)))

    def imported(self, before: Raw) -> None:
        """Keel itself read a record, and the imports behind its values set variables: ``before`` is how they were."""
        now = environment()
        for name in _differing(before, now):
            first = self._by_keel.get(name)
            found = first.before if first is not None and first.holds(name, before) else before.get(name)
            self._by_keel[name] = _Set(found, now.get(name), TIMES_SET[name], by_libraries=True)

    def unlike(self, variables: Raw) -> dict[str, str | None]:
        """The variables that only keel's own imports set, as they were before (None: not there).

        Whether a cell that is run from the top would find them set depends on which cells import; both are right.
        """
        return {
            os.fsdecode(name): None if mine.before is None else os.fsdecode(mine.before)
            for name, mine in self._by_keel.items()
            if mine.holds(name, variables)
        }

    def rewind(self, step: str) -> None:
        """Take back what the step's own code set: it is about to run anew.

        What an import set stays: modules are imported once, and the next import of them would not set it again.
        """
        own = self._set.get(step, {})
        now = environment()
        for name, mine in list(own.items()):
            if mine.by_libraries or not mine.holds(name, now):
                continue
            del own[name]
            if mine.before is None:
                os.environ.pop(os.fsdecode(name), None)
            else:
                os.environ[os.fsdecode(name)] = os.fsdecode(mine.before)

    def found(self, step: str, variables: Raw, *, imports_only: bool = False) -> dict[str, str]:
        """Variables as texts, as the step found them before it first set some of them.

        ``imports_only``: the others were taken back, or a person wanted them as they were, when it ran anew.
        """
        own = self._set.get(step, {})
        counted = dict(variables)
        for name, mine in own.items():
            if mine.holds(name, variables) and (mine.by_libraries or not imports_only):
                counted[name] = mine.before
        return {os.fsdecode(name): os.fsdecode(value) for name, value in counted.items() if value is not None}
