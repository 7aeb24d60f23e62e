"""KEEL_MODE=verify in one kernel: steps execute, what they give is compared with their records, nothing is recorded.

Steps and calls that must not happen twice are put back instead, and so is every durable call that is recorded: what a
step got from outside is its input, not its result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from msgspec.structs import replace

from keel_notebook.capture.outputs import unpack_messages
from keel_notebook.core import decide as d
from keel_notebook.core import lifecycle
from keel_notebook.core.model import Blob, Effect, Entry, Status
from keel_notebook.core.options import StepOptions
from keel_notebook.core.ports import FlowRecords, Message
from keel_notebook.core.verify import Verdict, Verified, verified
from keel_notebook.engine.stepparts import Look
from keel_notebook.errors import KeelError


class Verifier:
    """Compares steps with their records, and keeps what came of it."""

    def __init__(
        self,
        wanted: Collection[str],
        *,
        read: Callable[[Blob], bytes],
        say: Callable[[str], None],
    ) -> None:
        self.found: list[Verified] = []
        self._wanted = frozenset(wanted)
        self._read = read
        self._say = say

    def policy(self, asked: d.Policy, options: StepOptions, name: str) -> d.Policy:
        """How a step is answered: executed, or put back where it must not happen twice or is not wanted."""
        if options.effect is not Effect.IDEMPOTENT:
            if not self._wanted or name in self._wanted:
                self.found.append(Verified(name, Verdict.PUT_BACK, changed=(f"{options.effect}: never done again",)))
            return replace(asked, mode=d.Mode.REPLAY)
        return asked if not self._wanted or name in self._wanted else replace(asked, mode=d.Mode.LIVE)

    def compare(self, look: Look, entry: Entry, *, now: float) -> None:
        """Compare a step that has just been executed with its newest record, and say what differs."""
        if look.cell.options.always or (self._wanted and look.step.name not in self._wanted):
            return
        record = _record(look.records, look, entry.run)
        differences = () if record is None else d.differences(look.facts, record, now=now)
        shown = self._messages(entry) or ()
        recorded = self._messages(record) if record is not None else ()
        found = verified(entry, record, differences, shown=shown, recorded=recorded)
        self.found.append(found)
        if not found.well:
            self._say(str(found))

    def _messages(self, entry: Entry) -> Sequence[Message] | None:
        try:
            return () if entry.outputs is None else unpack_messages(self._read(entry.outputs))
        except KeelError:
            return None  # damaged: there is nothing to compare with


def _record(records: FlowRecords, look: Look, run: int) -> Entry | None:
    older = replace(records, entries=[entry for entry in records.entries if entry.run != run])
    usable = lifecycle.recorded(older, look.step.name, lifecycle.fingerprint(look.step.code, look.facts.inputs)).entries
    own = (e for e in usable if e.status is Status.OK and e.ambient.get("parameters", "") == look.step.parameters)
    return next(own, None)
