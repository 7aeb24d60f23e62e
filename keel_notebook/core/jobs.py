"""Runs of ``keel run`` that were left in the middle, and whether each of them can be gone on with (K37, O17, O25).

Pure. A job is what ``keel run`` was asked for, kept in the journal's folder from its start until it ends in order: a
job that is there and that no process holds was left. What it waits for says when it can go on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from keel_notebook.core.ids import text_digest
from keel_notebook.core.model import Entry, Kind, Status
from keel_notebook.core.waiting import Wait, open_waits

MOST_TRIES = 3
"""So often in a row may a job die with nothing new recorded, as a step may (K21): then a person decides."""
_PROGRESS = frozenset({Kind.STEP, Kind.CALL, Kind.LOOP, Kind.UNDO, Kind.SLEEP, Kind.TIME, Kind.RANDOM, Kind.PROMISE})


class Job(Struct, frozen=True):
    """What ``keel run`` was asked for. Paths are absolute; empty texts mean the usual."""

    id: str
    notebook: str
    output: str
    key: str
    """What ``--key`` said. The flow's key has the parameters in it, too."""
    flow: str
    parameters: tuple[tuple[str, Any], ...] = ()
    withheld: tuple[str, ...] = ()
    """Parameters that look like credentials: their values are never written down."""
    cwd: str = ""
    kernel: str = ""
    timeout: str = ""
    strict: bool = False
    frozen: bool = False
    trust: bool = False
    replay: bool = False
    began_at: float = 0.0
    """When it was first begun; wall time, seconds."""
    host: str = ""
    boot: str = ""
    """Of the machine that last carried it out."""
    pid: int = 0
    kernel_pid: int = 0
    kernel_born: float = 0.0
    """The kernel that last ran it; 0 before there was one."""
    tries: int = 0
    """How often in a row it was gone on with while ``mark`` stayed."""
    mark: str = ""
    """The newest thing that was recorded of its flow when it was last gone on with."""


_PLAIN: Mapping[str, type] = {"bool": bool, "int": int, "float": float, "str": str}


def to_map(job: Job) -> dict[str, Any]:
    """The job as plain values, its parameters with their types: JSON has no infinite numbers."""
    told = [[name, type(value).__name__, repr(value)] for name, value in job.parameters]
    return msgspec.structs.asdict(job) | {"parameters": told}


def from_map(found: Mapping[str, Any]) -> Job:
    """The job behind ``to_map``. Raises ValueError, KeyError or TypeError where it is none."""
    told = tuple((str(name), _value(kind, text)) for name, kind, text in found["parameters"])
    return msgspec.convert(dict(found) | {"parameters": told}, Job)


def _value(kind: str, text: str) -> Any:
    match kind:
        case "NoneType":
            return None
        case "bool":
            return text == "True"
        case "str":
            import ast  # noqa: PLC0415 - texts only

            return ast.literal_eval(text)
        case _:
            return _PLAIN[kind](text)


def job_id(notebook: str, flow: str, key: str) -> str:
    """The id of a job: one for each flow, so that a command that is typed again takes its own job up."""
    return text_digest("job", notebook, flow, key)[:24]


class Look(StrEnum):
    """What ``keel resume`` makes of a job."""

    GOES = "goes on"
    RUNS = "runs"
    """The process that carries it out lives."""
    KERNEL = "kernel runs"
    """Its process is gone and its kernel is not yet: a second one would do the same work at the same time."""
    SLEEPS = "sleeps"
    WAITS = "waits"
    LACKS = "lacks a parameter"
    GONE = "notebook is gone"
    STUCK = "dies again and again"


class Verdict(Struct, frozen=True):
    """What is to be done with a job, and why in words."""

    look: Look
    due: float = 0.0
    """When it may go on, wall time; the earliest goes first (O25)."""
    why: str = ""


class Around(Struct, frozen=True):
    """What was seen around a job."""

    held: bool
    """Whether a process holds it."""
    kernel_lives: bool
    notebook_there: bool
    boot: str
    """Of this machine."""


def look_at(job: Job, around: Around, entries: Sequence[Entry], now: float) -> Verdict:
    """Whether a job can be gone on with now. ``entries``: what is recorded of its flow."""
    if around.held:
        return Verdict(Look.RUNS, why=f"pid {job.pid} on {job.host}")
    if around.kernel_lives:
        return Verdict(Look.KERNEL, why=f"its kernel, pid {job.kernel_pid} on {job.host}, has not ended yet")
    if not around.notebook_there:
        return Verdict(Look.GONE, why="run it by its new name")
    if job.withheld:
        return Verdict(Look.LACKS, why=f"{', '.join(job.withheld)} was not written down: run it again yourself")
    wait = _parked_on(job, entries)
    if wait is not None and wait.until is not None:
        look = Look.SLEEPS if wait.until > now else Look.GOES
        return Verdict(look, due=wait.until, why=f"{wait.step} sleeps")
    if wait is not None:
        return Verdict(Look.WAITS, why=f"{wait.step} waits for {wait.name}")
    if tries_now(job, entries, around.boot) >= MOST_TRIES:
        return Verdict(Look.STUCK, why=f"{MOST_TRIES} times with nothing new recorded: run it yourself and look")
    return Verdict(Look.GOES, due=job.began_at)


def tries_now(job: Job, entries: Sequence[Entry], boot: str) -> int:
    """How often in a row the job was gone on with for nothing. A machine that vanished is nobody's fault."""
    return job.tries if job.mark == mark_of(entries) and job.boot == boot else 0


def mark_of(entries: Sequence[Entry]) -> str:
    """The id of the newest thing recorded: it changes when a job came further."""
    return next((e.entry for e in reversed(entries) if e.status is Status.OK and e.kind in _PROGRESS), "")


def _parked_on(job: Job, entries: Sequence[Entry]) -> Wait | None:
    """What the flow does nothing but wait for.

    A timer parks it when it is the last thing that was written: what stands behind it waits for it. A promise does
    only when the job was gone on with and came no further: before that, what tells people of it may not be out.
    """
    waits = open_waits(entries)
    last = next((entry.entry for entry in reversed(entries) if _is_work(entry)), None)
    for wait in waits:
        if wait.until is not None and wait.entry == last:
            return wait
    if not job.tries or job.mark != mark_of(entries):
        return None
    steps = _running(entries)
    return next((wait for wait in waits if wait.until is None and wait.step in steps), None)


def _running(entries: Sequence[Entry]) -> Collection[str]:
    newest = {entry.step: entry.status for entry in entries if entry.kind is Kind.STEP}
    return {step for step, status in newest.items() if status is Status.RUNNING}


def _is_work(entry: Entry) -> bool:
    return entry.kind in _PROGRESS and not (entry.kind is Kind.STEP and entry.status is Status.RUNNING)
