"""Keeps a ``keel run`` as a job for as long as it goes, so that ``keel resume`` can go on with it (K37)."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.core.jobs import Job, job_id
from keel_notebook.core.plans import notebook_cells
from keel_notebook.core.secrets import looks_secret
from keel_notebook.core.variables import told
from keel_notebook.errors import KeelError
from keel_notebook.front.headless import Ended, Order
from keel_notebook.journal import liveness
from keel_notebook.journal.jobs import Held, Jobs
from keel_notebook.payload.seal import OwnerSeal, seal_of

_LEFT = frozenset({Ended.DIED, Ended.TERMINATED})
"""Ends that nobody asked for: the kernel died, or the machine said that it goes away (SIGTERM)."""


class Asked(Struct, frozen=True):
    """The words of the command line."""

    notebook: str
    parameters: Sequence[tuple[str, Any]]
    key: str
    flow: str
    output: str
    cwd: str
    kernel: str
    timeout: str
    mode: str
    strict: bool
    frozen: bool
    trust: bool
    replay: bool = False


def begun(journal: Path, asked: Asked, order: Order, path: Path, key: str) -> Held | None:
    """The run as a job of this process; None where there is nothing to go on with, or where it cannot be kept.

    A notebook without steps starts anew each time, and so do the modes that record nothing. A run of the same flow
    that another process carries out keeps its job.
    """
    if told(order.environ, "KEEL_MODE") != "live":
        return None
    if not os.path.isdir(journal) and not any(cell.step for cell in notebook_cells(order.book)):
        return None
    flow = order.environ.get("KEEL_FLOW", "")
    secret = {name for name, value in asked.parameters if looks_secret(name, value)}
    job = Job(
        id=job_id(str(path), flow, key),
        notebook=str(path),
        output=str(order.output),
        key=asked.key,
        flow=flow,
        parameters=tuple((name, value) for name, value in asked.parameters if name not in secret),
        withheld=tuple(sorted(secret)),
        cwd=str(order.cwd) if asked.cwd else "",
        kernel=asked.kernel,
        timeout=asked.timeout,
        strict=asked.strict,
        frozen=asked.frozen,
        trust=asked.trust,
        replay=asked.replay,
        began_at=time.time(),  # noqa: TID251 - the command line's own clock
    )
    with contextlib.suppress(KeelError):  # what cannot be kept runs all the same: the journal says what is wrong
        return Jobs(journal, owners_seal(journal)).begin(here(job))
    return None


def owners_seal(journal: Path) -> OwnerSeal:
    """The seal of who runs this, for a journal. Raises what ``seal_of`` raises."""
    return seal_of(os.environ.get("KEEL_KEY_FILE", ""), journal)


def here(job: Job) -> Job:
    """The job, carried out by this process; it has no kernel yet."""
    me = {"host": liveness.host(), "boot": liveness.boot(), "pid": os.getpid()}
    return replace(job, **me, kernel_pid=0, kernel_born=0.0)


class Kept:
    """A job while it goes. ``ended`` says how; None: it did not begin."""

    def __init__(self, held: Held | None) -> None:
        self._held = held
        self.ended: Ended | None = None

    def kernel(self, pid: int) -> None:
        """The kernel is there: who finds this job left waits until that one is gone, too."""
        if self._held is not None:
            born = liveness.born(pid) if pid else None
            with contextlib.suppress(OSError):  # no room: the run matters more than its job
                self._held.update(replace(self._held.job, kernel_pid=pid, kernel_born=born or 0.0))

    def over(self, *, crashed: bool = False) -> None:
        """The process lets go of the job; it stays where the run was not ended on purpose."""
        if self._held is None:
            return
        if self.ended in _LEFT or crashed:
            self._held.leave()
        else:
            self._held.done()


@contextlib.contextmanager
def kept(held: Held | None) -> Iterator[Kept]:
    """The job of a run, let go of at its end."""
    found = Kept(held)
    try:
        yield found
    except KeelError:  # it could not begin, and would not the next time
        found.over()
        raise
    except BaseException:
        found.over(crashed=True)
        raise
    else:
        found.over()
