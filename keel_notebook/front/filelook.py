"""What a glance at the files of a record tells, without reading one: for the plan of a Run All (DESIGN 6, Files)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from keel_notebook.capture.files import stamp_in
from keel_notebook.core.model import Entry, FileSeen
from keel_notebook.core.ports import RunSeen

Look = Callable[[Entry, FileSeen], str | None]
"""Empty where a file is as the record met it, a clause where it is not, None where only its content would tell."""


def looker(runs: Mapping[int, RunSeen], cwd: str) -> Look:
    """A look that takes paths relative to the folder where the record's kernel started; ``cwd``: where nobody knows."""

    def look(entry: Entry, file: FileSeen) -> str | None:
        run = runs.get(entry.run)
        folder = run.start.cwd if run is not None and os.path.isabs(run.start.cwd) else cwd
        stamp, _ = stamp_in(os.path.join(folder, file.path))
        match file.role:
            case "journal":
                return ""
            case "absent":
                return "" if stamp is None else f"{file.path} is there now"
            case "makes" | "write":
                return f"{file.path} is gone" if stamp is None and file.digest is not None else ""
            case "read" | "uses" if _changed_by_itself(entry, file):
                return None
            case "read" | "uses" if stamp is None:
                return f"{file.path} is gone"
            case "read" | "uses" if file.stamp:
                return "" if stamp == file.stamp else f"{file.path} changed since"
            case _:
                return None

    return look


def _changed_by_itself(entry: Entry, file: FileSeen) -> bool:
    return any(other.path == file.path and other.role in {"found", "write"} for other in entry.files)
