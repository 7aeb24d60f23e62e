"""One bar that tells how far a ``keel.map`` is: in a notebook and in a terminal, and nowhere else.

In a notebook it is one display that is updated, plain HTML that needs no widget; in a terminal a line on stderr with a
carriage return. Both are recorded in their last state.
"""

from __future__ import annotations

import html
import sys
from typing import Any, Final

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
        self._display: Any = None

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
            if self._display is None:
                sys.stderr.write("\n")
                sys.stderr.flush()

    def _show(self, now: float) -> None:
        if _in_notebook():
            bundle = {"text/plain": self.line(now).rstrip(), "text/html": self.html(now)}
            if self._display is None:
                from IPython.display import display  # noqa: PLC0415 - a kernel has it long since

                self._display = display(bundle, raw=True, display_id=True)
            else:
                self._display.update(bundle, raw=True)
        else:
            sys.stderr.write("\r" + self.line(now).ljust(79))
            sys.stderr.flush()
        self._shown = True

    def line(self, now: float) -> str:
        """The line as it stands."""
        full = _WIDTH if not self._total else _WIDTH * self._done // self._total
        return f"{self._name} {'█' * full}{'░' * (_WIDTH - full)} {self._words(now)}"

    def html(self, now: float) -> str:
        """The bar as HTML."""
        bar = f'<progress value="{self._done}" max="{self._total}"></progress>'
        return f"<div><code>{html.escape(self._name)}</code> {bar} {html.escape(self._words(now))}</div>"

    def _words(self, now: float) -> str:
        parts = [f"{self._done}/{self._total}"]
        if self._there:
            parts.append(f"{self._there} from the journal")
        if self._failed:
            parts.append(f"{self._failed} failed")
        ran = self._done - self._there
        if ran > 0 and self._done < self._total:
            left = (now - self._began) / ran * (self._total - self._done)
            parts.append(f"about {duration(left)} left")
        return ", ".join(parts)


def seen_by_a_person() -> bool:
    """Whether stderr is a terminal or a notebook's."""
    if sys.stderr is None:
        return False
    return _in_notebook() or sys.stderr.isatty()


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules and type(sys.stderr).__module__.startswith("ipykernel")
