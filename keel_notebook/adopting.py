"""``%keel adopt``: a record of what a cell left that ran before anybody looked."""

from __future__ import annotations

from msgspec.structs import replace

from keel_notebook.cells import Analysis, what_is_left
from keel_notebook.core.model import Entry
from keel_notebook.engine.stepparts import Look
from keel_notebook.errors import NotNowError
from keel_notebook.wiring import Attached, Kernel


def adopted(look: Look, cell: Analysis, kernel: Kernel, attached: Attached) -> Entry:
    """Record what the last executed cell left under the step of ``look``, without executing it.

    What it read counts as it is now; a name that it both read and wrote has an unknown past. Raises NotNowError
    (E001) where it bound no name that could be recorded, and what the journal raises.
    """
    inputs, made = what_is_left(cell.names, look.step.inputs, kernel.shell.user_ns)
    if not made:
        raise NotNowError(
            where="%keel adopt", detail="the last cell bound no name that could be recorded", case="adopt"
        )
    entry = attached.runner.adopt(replace(look.step, inputs=inputs), made)
    kernel.ledger.made(made, f"step {look.step.name}")
    return entry
