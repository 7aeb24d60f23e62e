"""Which runs are a kernel's. Commands write into the journal under a run number, too: an answer is no run (Z37)."""

from __future__ import annotations

from typing import Final

from keel_notebook.core.ports import FlowRecords

COMMAND: Final = ":keel"
"""``RunStart.notebook`` of a command that wrote into the journal, such as ``keel resolve``."""


def kernel_runs(records: FlowRecords) -> set[int]:
    """The runs of a flow that kernels made."""
    commands = {number for number, seen in records.runs.items() if seen.start.notebook == COMMAND}
    return {*records.runs, *(entry.run for entry in records.entries)} - commands


def newest_run(records: FlowRecords) -> int:
    """The newest run that a kernel made; 0 where there is none."""
    return max(kernel_runs(records), default=0)
