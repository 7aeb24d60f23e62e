"""The ports to what lies outside the process: what a cell did there, and which files count (DESIGN 6, 9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from keel_notebook.core.model import FileSeen


class FileTouch(Protocol):
    """A path that a cell touched, and how: ``read``, ``write``, ``append``, ``list``, ``glob``, ``remove``, …"""

    @property
    def path(self) -> str:
        """As the cell named it."""

    @property
    def folder(self) -> str:
        """The working directory that a relative path was relative to; empty for an absolute one."""

    @property
    def how(self) -> str:
        """What was done with it."""

    @property
    def stamp(self) -> tuple[int, ...] | None:
        """What told its state when it was first touched; None where it was not there."""


class WorldSeen(Protocol):
    """What a cell did outside the process."""

    @property
    def network(self) -> bool:
        """Whether it used the network."""

    @property
    def children(self) -> bool:
        """Whether it started child processes."""

    @property
    def files(self) -> Sequence[FileTouch]:
        """The files that it touched."""

    @property
    def unsure(self) -> bool:
        """Whether it may have done more than could be seen."""

    @property
    def threads_left(self) -> int:
        """Threads started by it that outlive it."""

    @property
    def unfinished(self) -> Sequence[str]:
        """Files (absolute) that child processes which still run are writing."""


class World(Protocol):
    """Watches what a cell does outside the process."""

    def open(self) -> None:
        """Start watching."""

    def close(self) -> WorldSeen:
        """Stop, and tell."""


class FileSense(Protocol):
    """Finds the files that a step uses and makes."""

    def before(self, cell: Any, names: Iterable[str]) -> Any:
        """Look, right before the body runs. ``cell`` is the analysed cell, ``names`` all that it reads."""

    def after(
        self, before: Any, seen: WorldSeen, makes: Sequence[str], unfinished: Sequence[str] = ()
    ) -> tuple[FileSeen, ...]:
        """The files that count, with the declared products. ``unfinished``: what live threads are writing."""
