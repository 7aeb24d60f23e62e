"""What follows a body that ran: it is recorded before the reply is sent, and what the record lacks is said."""

from __future__ import annotations

import functools
from collections.abc import Callable

from msgspec import Struct

from keel_notebook.automatic import Automatic
from keel_notebook.capture.places import beside
from keel_notebook.cells import shortcomings
from keel_notebook.core.chosen import Afterwards, slips
from keel_notebook.core.model import Entry, Status
from keel_notebook.engine.attempt import Outcome
from keel_notebook.engine.plaincells import PlainAttempt
from keel_notebook.engine.stepparts import Body, Look
from keel_notebook.errors import DiskFullError, InternalError, KeelError
from keel_notebook.wiring import Attached, Kernel


class Recording(Struct):
    """Records what ran in one kernel. Nothing here ever replaces the cell's own result."""

    kernel: Kernel
    auto: Automatic
    degraded: Callable[[], None]
    """Says that nothing can be recorded now, once."""
    told: str = ""
    """The problem that the newest step was said to be not recorded for."""

    def step(self, attached: Attached, body: Body, ended: Outcome, *, durable: bool) -> Entry | None:
        """Record a step, or in auto mode a cell that turned out to be cheap; ``durable``: it made durable calls.

        The entry of a step that is recorded; else None.
        """
        step, ledger = body.attempt.step, self.kernel.ledger
        try:
            left = None if durable else self.auto.demoted(body, ended, attached)
            if left is not None:
                self.auto.ended(left)
                return None
            entry = attached.runner.finish(body.attempt, ended)
        except KeyboardInterrupt:
            self._not(attached, body, "interrupted while it was recorded; it is not saved")
            return None
        except KeelError as problem:
            self.told = str(problem)
            full = isinstance(problem, DiskFullError)
            self._not(attached, body, f"not recorded: {'the disk is full (KEEL-E053)' if full else problem}")
            return None
        except Exception as fault:  # noqa: BLE001 a fault of keel's own never replaces the cell's result
            self.kernel.fault(fault)
            kind = type(fault).__name__
            self._not(attached, body, f"not recorded: {InternalError(doing='recorded a step', kind=kind)}")
            return None
        attached.stepper.executed(body, entry)
        ledger.ran(entry)
        if step.always:
            made = (write.name for write in entry.writes)
            ledger.made(made, f"step {step.name}", resource=(step.name, str(step.code)))
            return entry
        for line in shortcomings(entry, self.kernel.shell.user_ns):
            self.kernel.say(f"{step.called}: {line}")
        return entry

    def slips(self, look: Look, entry: Entry) -> None:
        """Say what the line of a step names and nobody finds, now that it has ended well."""
        if entry.status is not Status.OK:
            return
        names, space = look.step.cell, self.kernel.shell.user_ns
        wrote = {item.name for item in entry.writes} | {item.name for item in entry.not_stored} | {*entry.deleted}
        wrote |= names.stores | names.maybe_stores | names.mutation_suspects | names.deletes | names.maybe_deletes
        now = Afterwards(tuple(space), wrote, functools.partial(beside, str(self.kernel.cwd)))
        for said in slips(look.cell.options, now):
            self.kernel.say(f"{look.step.called}: {said}")

    def plain(self, attached: Attached, attempt: PlainAttempt, ended: Outcome) -> None:
        """Keep what a cheap cell of auto mode left."""
        try:
            self.auto.ended(attached.plain.finish(attempt, ended))
        except KeelError:
            self.degraded()
        except Exception as fault:  # noqa: BLE001 as above
            self.kernel.fault(fault)

    def _not(self, attached: Attached, body: Body, why: str) -> None:
        self.kernel.say(f"{body.attempt.step.called}: {why}")
        attached.stepper.unrecorded(body, why)
