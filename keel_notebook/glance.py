"""Cheap looks at the journal that a kernel would open: they make nothing, read no entry and import next to nothing."""

from __future__ import annotations

import os
from pathlib import Path


def goes_on(setting: str, cwd: Path) -> bool:
    """Whether something is recorded in the journal that this kernel would open: a cheap look that makes nothing."""
    try:
        with os.scandir(_flows(setting, cwd)) as flows:
            return any(flows)
    except OSError:
        return False


def _flows(setting: str, cwd: Path) -> Path:
    told = os.environ.get("JPY_SESSION_NAME", "")
    beside = (cwd / told).resolve().parent if told.endswith(".ipynb") else cwd
    return (cwd / Path(setting).expanduser() if setting else beside / ".keel") / "flows"


def holds_records(journal: Path) -> bool:
    """Whether anything was recorded in the journal in this folder: a cheap look that makes nothing."""
    try:
        return (journal / "journal.duckdb").exists() or any((journal / "inbox").glob("*.seg"))
    except OSError:
        return False  # one that cannot be read: then whoever opens it says so


def remembers_auto(setting: str, cwd: Path) -> bool:
    """Whether any flow of the journal that this kernel would open is in auto mode: a cheap look that makes nothing."""
    try:
        with os.scandir(_flows(setting, cwd)) as flows:
            return any(b'"auto"' in Path(file.path).read_bytes() for file in flows if file.is_file())
    except OSError:
        return False  # no journal yet, or one that cannot be read: then whoever opens it says so
