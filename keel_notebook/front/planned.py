"""`%keel plan`: what Run All would do in this kernel, with all that it knows beside the records."""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from keel_notebook.core.dotted import is_module
from keel_notebook.core.fileholds import same
from keel_notebook.core.foreseen import AS_IT_WAS, ComingRun, LookAtModule, Told, Wishes
from keel_notebook.core.model import Entry, Input
from keel_notebook.core.plans import PlanReport, notebook_cells, plan, recorded_cells
from keel_notebook.core.units import day_of
from keel_notebook.front.filelook import looker, reader
from keel_notebook.wiring import notebook_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from keel_notebook.core.ports import Digested
    from keel_notebook.session import Session
    from keel_notebook.wiring import Attached


def plan_here(session: Session) -> PlanReport:
    """What Run All would do in this kernel. Nothing is executed; small files may be read."""
    leader = session.leader()
    attached, records = leader.attached, leader.attached.journal.records(leader.attached.flow.id)
    notebook = notebook_path(session.shell, session.cwd)
    cells = None
    if notebook is not None and notebook.is_file():
        cells = notebook_cells(json.loads(notebook.read_text("utf-8")))
    now, cwd = session.clock.now(), str(session.cwd)
    run = ComingRun(
        run=attached.journal.run,
        went_on=attached.went_on(records, ""),
        anew=attached.stepper.anew(),
        stops=bool(session.settings.strict),
        auto=leader.auto.min_s is not None,
        day=day_of(now),
    )
    return plan(
        cells if cells is not None else recorded_cells(records),
        records,
        now=now,
        run=run,
        wishes=Wishes(session.ledger.rerun, session.ledger.accept),
        look=reader(looker(records.runs, cwd), attached.stepper.files_now, cwd),
        module=_modules(attached, leader.definitions.module),
    )


def _modules(attached: Attached, source_of: Callable[[str], Digested]) -> LookAtModule:
    """A look at a module that a record used: as it is loaded here, else as an import would load it."""

    def look(_entry: Entry, read: Input) -> Told:
        if is_module(read.name):
            found = source_of(read.name)
            digest, reason = found.digest, found.reason
        else:  # a name that holds it: known by the module's own name
            own = read.preview.removeprefix("module ").partition(",")[0]
            digest, reason = attached.digest(sys.modules.get(own) or ModuleType(own)), source_of(own).reason
        if same(read.digest, digest):
            return AS_IT_WAS
        return Told(f"module {read.name} {reason or 'changed'}")

    return look
