"""The run that `keel plan` and `keel run` foresee: one that has no kernel yet."""

from __future__ import annotations

import os
from collections.abc import Mapping

from keel_notebook.core.foreseen import ComingRun
from keel_notebook.core.kernels import newest_run
from keel_notebook.core.ports import FlowRecords
from keel_notebook.core.resuming import resumed_runs
from keel_notebook.core.units import day_of
from keel_notebook.core.variables import told


def coming_run(
    records: FlowRecords, *, now: float, alone: bool, auto: bool, environ: Mapping[str, str] = os.environ
) -> ComingRun:
    """What is known of it. ``alone``: no front end is there; else nobody knows whether one is.

    Raises SettingsError (E001) where a variable cannot be read.
    """
    run = newest_run(records) + 1
    across, strict = told(environ, "KEEL_ACROSS_RUNS"), bool(told(environ, "KEEL_STRICT"))
    anew: bool | None = True if alone or across == "execute" else None
    if strict or across == "replay":
        anew = False
    went_on = resumed_runs(records, run, now, day=day_of, asked=alone)
    return ComingRun(run=run, went_on=went_on, anew=anew, stops=strict, auto=auto, day=day_of(now))
