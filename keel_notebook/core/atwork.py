"""What goes on beside the cells: names that a live thread or task may still change (DESIGN 5, Valid; C19).

Pure. While it works, nobody can say what such a name holds: *unknown is never equal*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from keel_notebook.core.model import Digest, NotStored
from keel_notebook.core.ports import Digested

GOING_ON = "going_on"
"""The ``ambient`` key of names that the step did not write, and that what it left running may change after its end."""

UNFINISHED = Digest("unfinished")
"""What such a name counts as where its step was replayed, so that nothing works on it any more."""


def _none(_: Any) -> bool:
    return False


class AtWork(Struct, frozen=True):
    """What live threads and tasks of the notebook can reach."""

    names: Mapping[str, str] = field(default_factory=dict)
    """Names whose value they may change, with who does, in words (``thread fill``)."""
    files: tuple[str, ...] = ()
    """Files that they are writing."""
    holds: Callable[[Any], bool] = _none
    """Whether they may change a value or a part of it."""

    def unknown(self, found: Mapping[str, Digested]) -> Mapping[str, Digested]:
        """The same digests; those of names that may change at any moment unknown."""
        if self.names.keys().isdisjoint(found):
            return found
        return {
            name: replace(digested, digest=None, reason=reason(by)) if (by := self.names.get(name)) else digested
            for name, digested in found.items()
        }

    def since(self, before: AtWork, written: Iterable[str]) -> frozenset[str]:
        """Names that a cell's record cannot vouch for: those that it wrote, or gave to work that goes on after it."""
        return frozenset(self.names.keys() - (before.names.keys() - set(written)))

    def lost(self, name: str, type_name: str) -> NotStored:
        """Why a record cannot hold this name."""
        return NotStored(name, type_name, reason(self.names.get(name, "")))


NOBODY = AtWork()


def reason(by: str) -> str:
    """Why a value is unknown, and what to do about it."""
    return f"{by or 'a thread or task'} still runs and may change it: wait for it in the step (join, result, await)"
