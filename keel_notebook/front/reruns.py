"""`%keel rerun --all` and `--from NAME`: many steps execute when their cells run next, in the order of the notebook."""

from __future__ import annotations

import json

from keel_notebook.core.lifecycle import held_once, known_step, steps_in
from keel_notebook.core.plans import PlannedCell, notebook_cells
from keel_notebook.core.ports import FlowRecords
from keel_notebook.core.units import count
from keel_notebook.errors import SettingsError
from keel_notebook.front import wishes
from keel_notebook.session import Session
from keel_notebook.wiring import notebook_path

USAGE = "%keel rerun NAME|--all|--from NAME [--as-is] [--new-key]"


def several(session: Session, words: list[str]) -> str:
    """Ask for the reruns, and say what will come of them.

    Raises SettingsError (E001) where the words cannot be read, UnknownNameError (E002) for a step that is not known.
    """
    as_is = "--as-is" in words
    match [word for word in words if word != "--as-is"]:
        case ["--all"]:
            first = ""
        case ["--from", first] if not first.startswith("--"):
            pass
        case _:
            raise SettingsError(where="%keel", detail=f"it reads `{USAGE}`; --new-key is for one step at a time")
    records = wishes.records_with(session, first) if first else _records(session)
    steps = _below(first, _in_order(session, records))
    held = {name: why for name in steps if (why := held_once(records, name))}
    wanted = [name for name in steps if name not in held]
    session.ledger.rerun.update(wanted)
    session.ledger.accept.difference_update(wanted)
    if as_is:
        session.ledger.as_is.update(wanted)
    said = f"{count(len(wanted), 'step')} will execute when their cells run next: {', '.join(wanted) or 'none'}"
    kept = [f"{name} {why}, and does not happen again: only --new-key does it" for name, why in held.items()]
    return "; ".join([said, *kept])


def _records(session: Session) -> FlowRecords:
    attached = session.attached()
    return attached.journal.records(attached.flow.id)


def _in_order(session: Session, records: FlowRecords) -> list[str]:
    """The steps that are recorded, from the top of the notebook; what its file does not have comes last."""
    notebook = notebook_path(session.shell, session.cwd)
    cells: tuple[PlannedCell, ...] = ()
    if notebook is not None and notebook.is_file():
        cells = notebook_cells(json.loads(notebook.read_text("utf-8")))
    named = [*(cell.step for cell in cells if cell.step), *session.ledger.order, *reversed(steps_in(records))]
    return [name for name in dict.fromkeys(named) if known_step(records, name)]


def _below(first: str, steps: list[str]) -> list[str]:
    return steps[steps.index(first) :] if first in steps else steps
