"""``%keel adopt``: a record of what a cell left that ran before anybody looked."""

from __future__ import annotations

import shlex

from msgspec.structs import replace

from keel_notebook.cells import Analysis, analysis_of, what_is_left
from keel_notebook.core.lifecycle import newest_ok
from keel_notebook.core.model import Entry
from keel_notebook.core.options import parse_options
from keel_notebook.core.sources import body
from keel_notebook.engine.stepparts import Look
from keel_notebook.errors import KeelError, NotNowError, SettingsError
from keel_notebook.wiring import Attached, Kernel


def adopted(look: Look, cell: Analysis, kernel: Kernel, attached: Attached) -> Entry:
    """Record what the last executed cell left under the step of ``look``, without executing it.

    What it read counts as it is now; a name that it both read and wrote has an unknown past. Raises NotNowError
    (E006) where it bound no name that could be recorded or the name is another cell's, SettingsError (E001) where no
    step can have it, and what the journal raises.
    """
    name = look.step.name
    if not _can_be_marked(name):
        raise SettingsError(where="%keel adopt", detail=f"`{name}` is no name that a step can have")
    if _of_another_cell(look, cell, kernel, attached):
        detail = f"`{name}` is the name of another cell, whose code is not that of the one that ran last"
        raise NotNowError(where="%keel adopt", detail=detail, case="taken")
    inputs, made = what_is_left(cell.names, look.step.inputs, kernel.shell.user_ns)
    if not made:
        raise NotNowError(
            where="%keel adopt", detail="the last cell bound no name that could be recorded", case="adopt"
        )
    entry = attached.runner.adopt(replace(look.step, inputs=inputs), made)
    kernel.ledger.made(made, f"step {name}")
    return entry


def _can_be_marked(name: str) -> bool:
    """Whether a step line that holds just this name gives it."""
    try:
        return bool(name) and parse_options(shlex.quote(name)).name == name
    except KeelError:
        return False


def _of_another_cell(look: Look, cell: Analysis, kernel: Kernel, attached: Attached) -> bool:
    """Whether a record that counts, or a cell of the notebook's file, has the name with other code."""
    name = look.step.name
    record = newest_ok(look.records, name)
    if record is not None and record.code != look.step.code:
        return True
    transform = kernel.shell.transform_cell
    for text in (one.source for one in attached.file.cells() if one.step == name):
        try:
            if analysis_of(transform(body(text)), transform).code != cell.code:
                return True
        except SyntaxError:
            return True  # it is not the one that ran
    return False
