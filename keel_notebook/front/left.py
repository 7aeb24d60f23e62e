"""Runs that were left in the middle, and what is to be done with each, as lines and as a page (``keel resume``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from keel_notebook.core.jobs import Job, Look, Verdict
from keel_notebook.core.units import one_line
from keel_notebook.front.page import Line, Page, Tone
from keel_notebook.front.tables import local_time


class Seen(Struct, frozen=True):
    """A job, and what is to be done with it."""

    job: Job
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """The job as plain values; no parameter that was withheld is in it."""
        return {
            "job": self.job.id,
            "notebook": self.job.notebook,
            "parameters": dict(self.job.parameters),
            "look": str(self.verdict.look),
            "due": self.verdict.due or None,
            "why": self.verdict.why,
        }

    def line(self) -> str:
        """The job as one line for people."""
        until = f" until {local_time(self.verdict.due)}" if self.verdict.look is Look.SLEEPS else ""
        why = f": {one_line(self.verdict.why)}" if self.verdict.why else ""
        return f"{titled(self.job)} {self.verdict.look}{why}{until}"


def titled(job: Job) -> str:
    """What people call a job: its notebook, and its parameters."""
    told = ", ".join([*([job.key] if job.key else []), *(f"{name}={value!r}" for name, value in job.parameters)])
    return one_line(f"{Path(job.notebook).name} [{told}]" if told else Path(job.notebook).name)


class LeftReport(Struct, frozen=True):
    """The jobs of a journal."""

    seen: tuple[Seen, ...]

    def to_dict(self) -> dict[str, Any]:
        """The jobs as plain values."""
        return {"jobs": [one.to_dict() for one in self.seen]}


class LeftTable(Page):
    """One line for each job."""

    def __init__(self, seen: Sequence[Seen]) -> None:
        lines = tuple(Line(one.line()) for one in seen) or (Line("no run was left", Tone.QUIET),)
        super().__init__(lines, LeftReport(tuple(seen)))
