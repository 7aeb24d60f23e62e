"""What a person's wish about a step will come to, said when it is made: `%keel rerun`, `accept`, `forget`.

A wish that nothing will come of says so. An effect that must not happen twice is not done again because it was wished
for or because its records were forgotten: only a new key does that (Z15).
"""

from __future__ import annotations

from keel_notebook.core.lifecycle import held_once, known_step, newest_ok, steps_in
from keel_notebook.core.model import Effect
from keel_notebook.core.ports import FlowRecords
from keel_notebook.core.why import hint
from keel_notebook.errors import UnknownNameError
from keel_notebook.session import Session


def records_with(session: Session, name: str) -> FlowRecords:
    """The records of this notebook, which know the step. Raises UnknownNameError (E002)."""
    attached = session.attached()
    records = attached.journal.records(attached.flow.id)
    if not known_step(records, name) and name not in session.ledger.done:
        raise UnknownNameError(what="step", name=name, hint=hint(name, set(steps_in(records))))
    return records


def rerun(name: str, records: FlowRecords) -> str:
    """What comes of `%keel rerun NAME`."""
    if held := held_once(records, name):
        return f"{name} {held}, and does not happen again: only `%keel rerun {name} --new-key` does it again"
    return f"{name} will execute when its cell runs next; its records with the same code and inputs are retired then"


def anew(name: str) -> str:
    """What comes of `%keel rerun NAME --new-key`."""
    return f"{name} will execute when its cell runs next, under a new key; its records are retired"


def forget(name: str, records: FlowRecords) -> str:
    """What comes of `%keel forget NAME`. ``records`` are those from before."""
    if held := held_once(records, name):
        return f"the records of {name} are retired; it {held}: only `%keel rerun {name} --new-key` does it again"
    return f"the records of {name} are retired: it executes next time"


def revive(name: str, records: FlowRecords) -> str:  # noqa: ARG001 - told alike, whatever is recorded
    """What comes of `%keel revive NAME`."""
    return f"{name} may run again: its deaths are counted anew"


def accepts(name: str, records: FlowRecords) -> str:
    """Why `%keel accept NAME` has no effect; empty where it has."""
    record = newest_ok(records, name)
    if record is None:
        return f"nothing is accepted: {name} has no record"
    if record.effect is Effect.IDEMPOTENT:
        return ""
    key = " --new-key" if record.effect is Effect.EXACTLY_ONCE else ""
    stands = f"{name} is {record.effect}, and its record stands for what it did"
    return f"nothing is accepted: {stands}; `%keel rerun {name}{key}` does it again"


def accept(name: str) -> str:
    """What comes of `%keel accept NAME`."""
    return f"the recorded values of {name} will count as right for its code and inputs when its cell runs next"
