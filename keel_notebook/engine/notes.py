"""Short entries about what a kernel decided and put back: no reason to stop where the journal cannot be written."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from keel_notebook.core.chain import restored_marker
from keel_notebook.core.done import StepDone, decision_entry
from keel_notebook.core.model import EntryId, FlowId
from keel_notebook.engine.parts import Parts
from keel_notebook.errors import KeelError


class Notes:
    """Writes them for one kernel."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def decided(self, done: StepDone, flow: FlowId) -> None:
        """Keep a decision that leaves no record of its own."""
        journal, at = self._parts.journal, self._parts.clock.now()
        seq = journal.next_seq()
        with contextlib.suppress(KeelError):  # the tables of other processes then lack one line; nothing is lost
            journal.append(decision_entry(done, flow=flow, run=journal.run, seq=seq, at=at))

    def restored(self, flow: FlowId, held: Mapping[EntryId, Sequence[str]], defined: Sequence[EntryId]) -> None:
        """Keep what a restore put back, so that the next one finds it."""
        journal, at = self._parts.journal, self._parts.clock.now()
        marker = restored_marker(held, defined, flow=flow, run=journal.run, seq=journal.next_seq())
        with contextlib.suppress(KeelError):
            journal.append(replace(marker, started_at=at))
