"""The flow of a notebook whose own file in ``flows/`` was damaged, found again by what its runs say."""

from __future__ import annotations

import os
from collections.abc import Container
from pathlib import Path

from keel_notebook.core.model import FlowId
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.reader import read_journal


def flow_of_runs(place: Folder, notebook: str, *, known: Container[FlowId]) -> FlowId | None:
    """The flow, none of the ``known``, that runs of this notebook recorded in; None unless exactly one did.

    ``notebook``: its path relative to the folder that the journal lies in, so that a folder that moved is no other.
    Raises KeelError where the journal cannot be read.
    """
    ending = os.sep + notebook
    reader = read_journal(Path(place.path), seal=None)
    found = [
        flow.id
        for flow in reader.flows()
        if flow.id not in known
        and any(seen.start.notebook.endswith(ending) for seen in reader.records(flow.id).runs.values())
    ]
    return found[0] if len(found) == 1 else None
