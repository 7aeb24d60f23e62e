"""What a person or a bug report needs to know about this installation and this journal (``keel doctor``).

Looks, and changes nothing. Every finding says what it is, whether it is well, and what to do where it is not.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shutil
import stat
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from msgspec import Struct

from keel_notebook.core.entries import RECORDS
from keel_notebook.core.ids import journal_id
from keel_notebook.core.lifecycle import rejected
from keel_notebook.core.ports import FlowRecords, RunEnd, RunSeen
from keel_notebook.core.record import as_dict
from keel_notebook.core.units import count, size
from keel_notebook.errors import KeelError
from keel_notebook.front.cli_open import key_file, open_reader
from keel_notebook.front.page import Block, Column, Field, Line, Page, Table, Tone
from keel_notebook.journal.damage import cloud_folder, troubles
from keel_notebook.journal.drives import drive_kind, is_local
from keel_notebook.journal.liveness import NO_LOCKS

NEEDED = (
    "ipykernel",
    "ipywidgets",
    "duckdb",
    "msgpack",
    "traitlets",
    "cloudpickle",
    "blake3",
    "psutil",
    "click",
    "rich",
)
"""What keel does not work without."""

NEIGHBOURS = ("IPython", "jupyterlab", "notebook", "jupyter_client", "numpy", "pandas", "pyarrow", "polars", "torch")
"""What keel works with where it is there: named in a report, never asked for."""

LEAST_ROOM = 0.05
"""The part of a disk that keel leaves free (DESIGN 7, Size)."""


class Finding(Struct, frozen=True):
    """One thing that was looked at. ``level`` is ``ok``, ``warn`` or ``bad``."""

    topic: str
    level: str
    said: str
    next: str = ""


class DoctorReport(Struct, frozen=True):
    """All findings, in the order in which they were made."""

    journal: str
    findings: tuple[Finding, ...]

    @property
    def well(self) -> bool:
        """Whether nothing is bad."""
        return all(finding.level != "bad" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The findings as plain values."""
        return {"journal": self.journal, "well": self.well, "findings": [as_dict(item) for item in self.findings]}


class Seen(Struct, frozen=True):
    """What a reader found in the journal; ``trouble`` says why it found nothing."""

    runs: Sequence[RunSeen] = ()
    flows: int = 0
    sizes: Sequence[tuple[str, int]] = ()
    trouble: KeelError | None = None
    foreign: int = 0
    """How many steps have records that another key sealed."""


class Writing(Struct, frozen=True):
    """How the journal of the kernel that asks is written."""

    stalls: int
    """How often the disk did not acknowledge in time what had to be power-safe (Z24)."""
    problem: KeelError | None = None
    """Why nothing is recorded, or made power-safe, now."""


def checkup(journal: Path, *, key: Path | None = None, own: Writing | None = None) -> DoctorReport:
    """Look at everything. ``journal`` is its folder, which need not be there; ``key`` the file with the owner's
    key, by default the one that this process's settings name; ``own``: told where a kernel asks.
    """
    return examine(journal, key=key or key_file(), seen=_look_into(journal, key or key_file()), own=own)


def _look_into(journal: Path, key: Path) -> Seen | None:
    if not journal.is_dir():
        return None
    try:
        with contextlib.closing(open_reader(journal, key=key)) as reader:
            flows = [reader.records(flow.id) for flow in reader.flows()]
            runs = {run: seen for flow in flows for run, seen in flow.runs.items()}
            sizes = tuple((name, found) for name, found in as_dict(reader.sizes()).items() if found)
    except KeelError as error:
        return Seen(trouble=error)
    return Seen(
        tuple(runs[run] for run in sorted(runs)), len(flows), sizes, foreign=sum(_foreign(flow) for flow in flows)
    )


def _foreign(records: FlowRecords) -> int:
    """How many steps of a flow have a record that counts and that another key sealed: each of them stops (E050)."""
    gone = rejected(records.entries) if records.untrusted else {}
    there = (e for e in records.entries if e.entry in records.untrusted and e.entry not in gone and e.kind in RECORDS)
    return len({entry.step for entry in there})


def examine(journal: Path, *, key: Path, seen: Seen | None, own: Writing | None = None) -> DoctorReport:
    """Look at everything.

    Args:
        journal: the journal's folder; it need not be there.
        key: the file with the owner's key.
        seen: what is in the journal; None where there is none.
        own: how the kernel that asks writes it; None where none asks.
    """
    return DoctorReport(
        str(journal),
        (*_versions(), *_place(journal), *_contents(journal, seen), *_own(own), *_key(key, seen)),
    )


def _versions() -> Iterator[Finding]:
    yield Finding("keel", "ok", f"keel-notebook {_version('keel-notebook') or 'from a checkout'}")
    yield Finding("python", "ok", f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}")
    yield Finding("system", "ok", f"{platform.system()} {platform.release()} {platform.machine()}")
    missing = [name for name in NEEDED if _version(name) is None]
    if missing:
        line = f"{sys.executable} -m pip install {' '.join(missing)}"
        yield Finding("packages", "bad", f"missing: {', '.join(missing)}", line)
    found = [f"{name} {version}" for name in (*NEEDED, *NEIGHBOURS) if (version := _version(name)) is not None]
    yield Finding("packages", "ok", ", ".join(found))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _place(journal: Path) -> Iterator[Finding]:
    there = journal.is_dir()
    where = _nearest(journal)
    yield Finding("journal", "ok", f"{journal}" if there else f"{journal} is not there yet: nothing was recorded")
    kind = drive_kind(str(where)) or "unknown"
    if is_local(str(where)):
        yield Finding("drive", "ok", f"{kind}, on this machine")
    else:
        yield Finding(
            "drive", "warn", f"{kind}: not known to be on this machine; payloads are checked when they are read"
        )
    if not there and (service := cloud_folder(str(journal))) is not None:
        yield Finding("drive", "warn", f"{service} synchronises this folder", "Choose another: `%keel journal PATH`.")
    yield from _room(where)
    yield _writing(where)
    if there:
        yield from _open_to_others(journal)


def _nearest(path: Path) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    return next(place for place in (path, *path.parents) if place.is_dir())


def _room(where: Path) -> Iterator[Finding]:
    disk = shutil.disk_usage(where)
    said = f"{size(disk.free)} free of {size(disk.total)}"
    if disk.total and disk.free / disk.total < LEAST_ROOM:
        yield Finding("room", "bad", f"{said}: keel leaves the last 5 % alone", "Free some room, or move the journal.")
    else:
        yield Finding("room", "ok", said)


def _writing(where: Path) -> Finding:
    """Whether a kernel could write here, and whether the drive has locks."""
    try:
        with tempfile.TemporaryFile(dir=where) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in NO_LOCKS:
            return Finding("locks", "warn", "the drive has no locks: whether a kernel lives is told by its pid instead")
        reason = error.strerror or type(error).__name__
        return Finding(
            "writing", "bad", f"nothing can be written to {where}: {reason}", "Choose another folder: KEEL_JOURNAL."
        )
    return Finding("locks", "ok", "files can be written and locked")


def _open_to_others(journal: Path) -> Iterator[Finding]:
    mode = stat.S_IMODE(journal.stat().st_mode)
    if mode & 0o077:
        yield Finding("access", "warn", f"others may look into the journal (mode {mode:o})", f"chmod 700 {journal}")


def _contents(journal: Path, seen: Seen | None) -> Iterator[Finding]:
    if journal.is_dir():
        try:
            yield from (Finding("damage", "warn", line) for line in troubles(journal))
        except OSError as error:
            yield Finding("damage", "bad", f"the notes on damage cannot be read: {error.strerror}")
    if seen is None:
        return
    if seen.trouble is not None:
        yield Finding("contents", "bad", str(seen.trouble), seen.trouble.report().rsplit("next: ", 1)[-1])
        return
    sizes = ", ".join(f"{name} {size(found)}" for name, found in seen.sizes)
    held = f"{count(seen.flows, 'flow')}, {count(len(seen.runs), 'run')}"
    yield Finding("contents", "ok", f"{held}; {sizes}" if sizes else held)
    if seen.foreign:
        yield _not_yours(journal, seen.foreign)
    alive = [run for run in seen.runs if run.end == RunEnd.OPEN]
    for run in alive:
        notebook = f", {run.start.notebook}" if run.start.notebook else ""
        memory = f", memory last seen {size(run.rss_last)}" if run.rss_last else ""
        yield Finding("kernel", "ok", f"run {run.start.run}: pid {run.start.pid} on {run.start.host}{notebook}{memory}")
    if not alive:
        yield Finding("kernel", "ok", "no kernel has this journal open")


def _not_yours(journal: Path, steps: int) -> Finding:
    """What comes of records that another key sealed. A job may have said that it trusts them."""
    said = f"{count(steps, 'step')} recorded with another key than yours"
    told = os.environ.get("KEEL_TRUST", "")
    with contextlib.suppress(OSError):
        if told and told == journal_id((journal / "salt").read_bytes()):
            return Finding("seal", "ok", f"{said}: trusted when a kernel starts (KEEL_TRUST)")
    said += ": the cells stop (KEEL-E050), nothing is replayed"
    trust = "If you trust who wrote them: `%keel trust`, or `keel trust` in a terminal."
    return Finding("seal", "bad", said, f"{trust} If it was you elsewhere: KEEL_KEY_FILE with that key.")


def _own(own: Writing | None) -> Iterator[Finding]:
    if own is None:
        return
    if own.problem is not None:
        yield Finding("this kernel", "bad", str(own.problem), own.problem.report().rsplit("next: ", 1)[-1])
    if own.stalls:
        said = f"the disk did not acknowledge in time, {count(own.stalls, 'time')} since this kernel started"
        yield Finding("disk", "warn", said, "Keep the journal on a local disk: KEEL_JOURNAL.")
    elif own.problem is None:
        yield Finding("disk", "ok", "whatever had to be power-safe was acknowledged in time")


def _key(key: Path, seen: Seen | None) -> Iterator[Finding]:
    told = "KEEL_KEY_FILE" if os.environ.get("KEEL_KEY_FILE") else "your configuration folder"
    try:
        mode = stat.S_IMODE(key.stat().st_mode)
    except FileNotFoundError:
        if seen is not None and seen.runs and os.environ.get("KEEL_KEY_FILE"):
            said = f"KEEL_KEY_FILE: there is no file {key}, and what is recorded here was sealed with another key"
            yield Finding("key", "bad", said, "Put the key there, or take KEEL_KEY_FILE away.")
            return
        yield Finding("key", "ok", f"{key} ({told}) is made when the first step is recorded")
        return
    except OSError as error:
        yield Finding("key", "bad", f"{key} cannot be looked at: {error.strerror}", "Name another file: KEEL_KEY_FILE.")
        return
    if mode & 0o077:
        yield Finding("key", "bad", f"others may read your key {key} (mode {mode:o})", f"chmod 600 {key}")
    else:
        yield Finding("key", "ok", f"{key} ({told})")


class DoctorTable(Page):
    """What was looked at, how it is, and what to do."""

    def __init__(self, report: DoctorReport) -> None:
        super().__init__(tuple(_blocks(report)), report)


_WIDE = 80
_TONES = {"ok": Tone.GOOD, "warn": Tone.WARN, "bad": Tone.BAD}


def _blocks(report: DoctorReport) -> Iterator[Block]:
    wrong = sum(finding.level == "bad" for finding in report.findings)
    warned = sum(finding.level == "warn" for finding in report.findings)
    said = "all is well" if report.well else f"{count(wrong, 'thing')} to put right"
    if warned:
        said += f", {count(warned, 'warning')}"
    yield Line(said, Tone.GOOD if report.well else Tone.BAD)
    rows = tuple(row for finding in report.findings for row in _rows(finding))
    yield Table((Column("looked at"), Column("is"), Column("found", limit=1000), Column("do", limit=200)), rows)


def _rows(finding: Finding) -> Iterator[tuple[Field, ...]]:
    """A finding in lines that leave what is to be done on the screen."""
    said = textwrap.wrap(finding.said, _WIDE, break_long_words=False, break_on_hyphens=False) or [""]
    level, then = Field(finding.level, _TONES[finding.level]), Field(finding.next, Tone.STRONG)
    yield Field(finding.topic, Tone.STRONG), level, Field(said[0]), then
    yield from ((Field(""), Field(""), Field(more), Field("")) for more in said[1:])
