"""One kind of ambient state, and what could not be done about it."""

from __future__ import annotations

from typing import Any, Protocol


class Lost(list[str]):
    """What a part could not describe or put back, in words. Empty is the usual case."""


class Part(Protocol):
    """One kind of state."""

    name: str

    def look(self) -> Any:
        """The state now, as something that compares equal while nothing changes; None where it is not loaded."""

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """What differs, as plain values that ``put`` takes; None where nothing is left of it.

        Adds to ``lost`` what differs and cannot be put back.
        """

    def put(self, change: Any, lost: Lost) -> None:
        """Put a change back; adds to ``lost`` what could not be."""
