"""What a look at the files and modules of a record tells, for the plan of a Run All (DESIGN 6, Files).

A glance reads nothing: stamps tell it. In a kernel small files are compared by content as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from keel_notebook.capture.files import stamp_in
from keel_notebook.core.fileholds import ABSENT, same
from keel_notebook.core.foreseen import AS_IT_WAS, LookAtFile, LookAtModule, Told
from keel_notebook.core.journalfiles import ROLE
from keel_notebook.core.model import Digest, Entry, FileSeen, Input
from keel_notebook.core.ports import RunSeen

_SMALL = 16 << 20
"""Bytes of a file that a plan reads rather than not know."""


def looker(runs: Mapping[int, RunSeen], cwd: str) -> LookAtFile:
    """A look that takes paths relative to the folder where the record's kernel started; ``cwd``: where nobody knows."""

    def look(entry: Entry, file: FileSeen) -> Told | None:
        stamp, _ = stamp_in(os.path.join(_folder(entry, runs, cwd), file.path))
        match file.role:
            case "absent":
                return AS_IT_WAS if stamp is None else Told(f"{file.path} is there now")
            case "makes" | "write":
                return Told(f"{file.path} is gone") if stamp is None and file.digest != ABSENT else AS_IT_WAS
            case "read" | "uses" if _changed_by_itself(entry, file):
                return None
            case "read" | "uses" | "journal" if stamp is None:
                return AS_IT_WAS if file.digest == ABSENT else Told(f"{file.path} is gone")
            case "journal" if file.digest == ABSENT:
                return Told(f"{file.path} is there now")
            case "read" | "uses" | "journal" if file.stamp:
                return AS_IT_WAS if stamp == file.stamp else Told(f"{file.path} changed since", sure=False)
            case _:
                return None

    return look


def reader(
    glance: LookAtFile, now: Callable[[Sequence[FileSeen]], Mapping[str, Digest | None]], cwd: str
) -> LookAtFile:
    """A look that reads small files where a glance does not tell; ``now``: what files hold, by ``FileSeen.asked``."""

    def look(entry: Entry, file: FileSeen) -> Told | None:
        told = glance(entry, file)
        if (told is not None and (told.sure or not told.said)) or file.role not in {"read", "uses", ROLE}:
            return told
        stamp, _ = stamp_in(os.path.join(cwd, file.path))
        if _changed_by_itself(entry, file) or stamp is None or stamp[0] > _SMALL:
            return told
        return AS_IT_WAS if same(file.digest, now([file])[file.asked]) else Told(f"{file.path} changed since")

    return look


def module_looker(runs: Mapping[int, RunSeen], cwd: str) -> LookAtModule:
    """A look at the file of a local module, and at those beside it that it may import: when they were last written."""

    def look(entry: Entry, module: Input) -> Told:
        folder = _folder(entry, runs, cwd)
        name = module.name.removesuffix(".py")
        if module.type == "module" and module.preview:  # a name that holds it: known by the module's own name
            name = module.preview.removeprefix("module ").partition(",")[0]
        path = os.path.join(folder, *name.split("."))
        if not any(os.path.isfile(each) for each in (f"{path}.py", os.path.join(path, "__init__.py"))):
            return AS_IT_WAS  # installed, or elsewhere: its version is a note of the record
        own = f"{path}.py" if os.path.isfile(f"{path}.py") else os.path.join(path, "__init__.py")
        stamp, _ = stamp_in(own)
        written = stamp is not None and stamp[1] / 1e9 > entry.started_at
        return (
            Told(f"module {module.name} ({os.path.basename(own)}) was written since", sure=False)
            if written
            else AS_IT_WAS
        )

    return look


def _folder(entry: Entry, runs: Mapping[int, RunSeen], cwd: str) -> str:
    run = runs.get(entry.run)
    return run.start.cwd if run is not None and os.path.isabs(run.start.cwd) else cwd


def _changed_by_itself(entry: Entry, file: FileSeen) -> bool:
    return any(other.path == file.path and other.role in {"found", "write"} for other in entry.files)
