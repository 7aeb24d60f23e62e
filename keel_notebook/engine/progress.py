"""One line that tells how far a ``keel.map`` is: in a notebook and in a terminal, and nowhere else.

It is written to stderr with a carriage return, which the front end and the record of the cell fold to its last state.
"""

from __future__ import annotations

import sys
from typing import Final

from keel_notebook.core.ports import Clock
from keel_notebook.core.units import duration

_EVERY_S: Final = 0.1
_AFTER_S: Final = 0.5
_WIDTH: Final = 24


class Progress:
    """The line of one map."""

    def __init__(self, name: str, *, wanted: bool, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._wanted = wanted and seen_by_a_person()
        self._total = self._done = self._there = self._failed = 0
        self._began = self._last = 0.0
        self._shown = False

    def begin(self, *, total: int, done: int) -> None:
        """``done`` of ``total`` results were in the journal already."""
        self._total, self._done, self._there = total, done, done
        self._began = self._last = self._clock.monotonic()

    def step(self, *, failed: bool = False) -> None:
        """One more result arrived."""
        self._done += 1
        self._failed += failed
        now = self._clock.monotonic()
        # A map that is over at once shows no bar at all.
        if self._wanted and now - self._began >= _AFTER_S and now - self._last >= _EVERY_S:
            self._last = now
            self._show(now)

    def end(self) -> None:
        """The map is over, or was stopped."""
        if self._shown:
            self._show(self._clock.monotonic())
            sys.stderr.write("\n")
            sys.stderr.flush()

    def _show(self, now: float) -> None:
        self._shown = True
        sys.stderr.write("\r" + self.line(now))
        sys.stderr.flush()

    def line(self, now: float) -> str:
        """The line as it stands."""
        full = _WIDTH if not self._total else _WIDTH * self._done // self._total
        bar = "█" * full + "░" * (_WIDTH - full)
        parts = [f"{self._name} {bar} {self._done}/{self._total}"]
        if self._there:
            parts.append(f"{self._there} from the journal")
        if self._failed:
            parts.append(f"{self._failed} failed")
        ran = self._done - self._there
        if ran > 0 and self._done < self._total:
            left = (now - self._began) / ran * (self._total - self._done)
            parts.append(f"about {duration(left)} left")
        return ", ".join(parts).ljust(79)


def seen_by_a_person() -> bool:
    """Whether stderr is a terminal or a notebook's."""
    if sys.stderr is None:
        return False
    if "ipykernel" in sys.modules and type(sys.stderr).__module__.startswith("ipykernel"):
        return True
    return sys.stderr.isatty()
