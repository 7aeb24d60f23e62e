"""Jobs that follow a notebook which is renamed (``keel mv``): `keel resume` goes on with them under the new name."""

from __future__ import annotations

import contextlib
from pathlib import Path

from msgspec.structs import replace

from keel_notebook.core.jobs import Job, job_id
from keel_notebook.core.parameters import flow_key
from keel_notebook.errors import DamagedError
from keel_notebook.front import keeping
from keel_notebook.front.cli_run import default_output
from keel_notebook.journal.jobs import Jobs


def jobs_follow(journal: Path, old: Path, new: Path) -> int:
    """Let the jobs of notebook ``old`` that were left be those of ``new``; how many.

    One that a process carries out right now is that process's: it ends with it. Raises JournalUnreachableError (E054),
    and what ``owner_key`` raises.
    """
    jobs, count = Jobs(journal, keeping.owners_seal(journal)), 0
    for job, held in jobs.listed():
        if held or job.notebook != str(old):
            continue
        with contextlib.suppress(DamagedError):  # it changed since it was listed, and is nobody's now
            count += _follow(jobs, job, old, new)
    return count


def _follow(jobs: Jobs, job: Job, old: Path, new: Path) -> bool:
    claim = jobs.claim(job.id)
    if claim is None:
        return False
    key = flow_key(dict(job.parameters), job.key)
    usual = job.output == str(default_output(old, key))
    output = str(default_output(new, key)) if usual else job.output
    moved = replace(claim.job, id=job_id(str(new), job.flow, key), notebook=str(new), output=output)
    made = jobs.begin(moved)
    if made is None:
        claim.leave()
        return False
    made.leave()
    claim.done()  # last: a death in between leaves one that says that its notebook is gone
    return True
