"""``keel resume``: goes on with runs of ``keel run`` that were left in the middle (K37, O17, O25; docs/headless.md).

Which job may go on decides ``core.jobs``; each one is carried out by a process of its own, which claims it first: of
several that try, one has it. This process starts them, passes on what they say, and looks again.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess  # our own interpreter and our own module, no shell
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.core.jobs import Around, Job, Look, Verdict, look_at, mark_of, tries_now
from keel_notebook.core.model import Entry
from keel_notebook.core.units import count
from keel_notebook.errors import KeelError
from keel_notebook.front import cli_open, keeping
from keel_notebook.front.cli_base import ELSEWHERE, Clock, exit_code
from keel_notebook.front.cli_run import run_notebook
from keel_notebook.front.left import Seen, titled
from keel_notebook.front.run_log import Records, Subject
from keel_notebook.journal import liveness
from keel_notebook.journal.jobs import Jobs
from keel_notebook.journal.spawn import environment, python_module

"""Exit code of a process that found its job taken, over, or not yet due."""
POLL_S = 2.0
"""How often it is asked whether a job was left or a promise answered (Z34)."""
KERNEL_S = 15.0
"""How long the kernel of a process that is gone may take to notice."""
_QUICK_S = 0.2


def looks(place: cli_open.Place, *, now: float) -> list[Seen]:
    """Every job of a journal, or of one notebook in it, in the order in which they are to go on.

    Raises JournalUnreachableError (E054).
    """
    found = []
    for job, held in Jobs(place.journal, keeping.owners_seal(place.journal)).listed():
        if place.notebook is None or job.notebook == str(place.notebook):
            found.append(Seen(job, _verdict(place.journal, job, held=held, now=now)))
    return sorted(found, key=lambda seen: seen.verdict.due)


def _verdict(journal: Path, job: Job, *, held: bool, now: float) -> Verdict:
    entries = () if held else _entries(journal, job)
    around = Around(held, _kernel_lives(job), Path(job.notebook).is_file(), liveness.boot())
    return look_at(job, around, entries, now)


def _entries(journal: Path, job: Job) -> tuple[Entry, ...]:
    from keel_notebook.core.parameters import flow_key  # noqa: PLC0415 - only where a job was left

    subject = Subject(journal, Path(job.notebook), job.flow, flow_key(dict(job.parameters), job.key))
    with contextlib.closing(Records(subject)) as records:
        found = records.now()
    return tuple(found.entries) if found is not None else ()


def _kernel_lives(job: Job) -> bool:
    here = job.host == liveness.host() and job.boot == liveness.boot()
    return bool(here and job.kernel_pid and liveness.born(job.kernel_pid) == job.kernel_born)


def carry_on(journal: Path, job_id: str, *, as_json: bool, environ: Mapping[str, str] = os.environ) -> int:
    """Claim one job and run it to its end, in this process; the exit code, ``ELSEWHERE`` where it is not to be had.

    Raises what ``run_notebook`` raises, DamagedError (E051) where the job is not the owner's.
    """
    held = Jobs(journal, keeping.owners_seal(journal)).claim(job_id)
    if held is None:
        return ELSEWHERE
    job, now = held.job, Clock().now()
    if _verdict(journal, job, held=False, now=now).look is not Look.GOES:
        held.leave()
        return ELSEWHERE
    entries = _entries(journal, job)
    tries = tries_now(job, entries, liveness.boot()) + 1
    held.update(replace(keeping.here(job), tries=tries, mark=mark_of(entries)))
    asked = keeping.Asked(
        notebook=job.notebook, parameters=job.parameters, key=job.key, flow=job.flow, output=job.output, cwd=job.cwd,
        kernel=job.kernel, timeout=job.timeout, mode="live", strict=job.strict, frozen=job.frozen, trust=job.trust,
        replay=job.replay,
    )  # fmt: skip
    of_others = {"KEEL_FLOW", "KEEL_FLOW_KEY"}  # what this shell is about is not what the job was about
    told = {name: value for name, value in environ.items() if name not in of_others}
    return run_notebook(asked, as_json=as_json, environ=told | {"KEEL_JOURNAL": str(journal)}, held=held)


class Resumer:
    """Starts a process for each job that may go on, and passes on what it says."""

    def __init__(self, place: cli_open.Place, *, at_once: int, as_json: bool) -> None:
        self._place = place
        self._at_once = at_once
        self._as_json = as_json
        self._news = threading.Event()
        self._lock = threading.Lock()
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._told: dict[str, str] = {}
        self._totals = Totals()
        self._stop = False

    def once(self) -> Totals:
        """Go on with every job that may go on now; the others are told. Ends when the last one has ended."""
        began, clock = Clock().monotonic(), Clock()
        tried: set[str] = set()
        while not self._stop:
            seen = looks(self._place, now=clock.now())
            ready = [one for one in seen if one.verdict.look is Look.GOES and one.job.id not in tried]
            ending = any(one.verdict.look is Look.KERNEL for one in seen) and clock.monotonic() - began < KERNEL_S
            tried |= self._start(ready)
            if not self._busy() and not ending and tried >= {one.job.id for one in ready}:
                break
            self._wait(_QUICK_S if ending else POLL_S)
        for one in looks(self._place, now=clock.now()):
            self._tell_left(one)
        return self._totals

    def watch(self) -> Totals:
        """Go on with what may go on, whenever it may, until SIGINT or SIGTERM."""
        clock = Clock()
        while not self._stop:
            now = clock.now()
            seen = looks(self._place, now=now)
            self._start([one for one in seen if one.verdict.look is Look.GOES])
            for one in seen:
                if one.verdict.look not in {Look.GOES, Look.RUNS}:
                    self._tell_left(one)
            due = [one.verdict.due - now for one in seen if one.verdict.look is Look.SLEEPS]
            self._wait(max(0.0, min([POLL_S, *due])))
        while self._busy():
            self._wait(POLL_S)
        return self._totals

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT end the jobs in order, and then this process."""
        before = {which: signal.signal(which, self._halt) for which in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for which, handler in before.items():
                signal.signal(which, handler)

    def _halt(self, which: int, _: Any) -> None:
        self._stop = True
        for child in list(self._running.values()):
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(which)
        self._news.set()

    def _start(self, ready: list[Seen]) -> set[str]:
        started = set()
        for one in ready:
            if self._stop or len(self._running) >= self._at_once or one.job.id in self._running:
                continue
            self._told.pop(one.job.id, None)
            words = ["resume", str(self._place.journal), "--job", one.job.id, *(["--json"] if self._as_json else [])]
            child = subprocess.Popen(  # noqa: S603 - our own module; the words are ours
                [*python_module("keel_notebook"), *words],
                env=environment(), stdin=subprocess.DEVNULL, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C comes through this process only, once
            )  # fmt: skip
            self._running[one.job.id] = child
            threading.Thread(target=self._follow, args=(one.job, child), daemon=True).start()
            started.add(one.job.id)
        return started

    def _follow(self, job: Job, child: subprocess.Popen[str]) -> None:
        assert child.stdout is not None
        for line in child.stdout:
            self._pass_on(job, line.rstrip("\n"))
        code = child.wait()
        with self._lock:
            if code != ELSEWHERE:
                self._totals.went_on += 1
                self._totals.failed += code != 0
            del self._running[job.id]
        self._news.set()

    def _pass_on(self, job: Job, line: str) -> None:
        if not self._as_json:
            self._say(f"{titled(job)}: {line}")
            return
        try:
            event = json.loads(line)
        except ValueError:
            event = {"event": "said", "text": line}  # a warning of a library, on its way to stderr
        self._say(json.dumps({"job": job.id} | event))

    def _tell_left(self, one: Seen) -> None:
        line = one.line()
        if self._told.get(one.job.id) != line and one.job.id not in self._running:
            self._told[one.job.id] = line
            self._say(json.dumps({"event": "left"} | one.to_dict()) if self._as_json else line)

    def _say(self, line: str) -> None:
        with self._lock:
            click.echo(line, err=not self._as_json)

    def _busy(self) -> bool:
        return bool(self._running)

    def _wait(self, most_s: float) -> None:
        self._news.wait(most_s)
        self._news.clear()


class Totals(Struct):
    """What came of a resume."""

    went_on: int = 0
    failed: int = 0

    def line(self) -> str:
        """The totals in a few words."""
        if not self.went_on:
            return "no run was left that could go on"
        ended = f"{self.failed} did not finish" if self.failed else "finished"
        return f"{count(self.went_on, 'run')} went on{', ' if self.failed else ' and '}{ended}"

    def to_dict(self) -> dict[str, Any]:
        """The totals as plain values."""
        return {"went_on": self.went_on, "failed": self.failed}


def refused(carry: Callable[[], int], *, as_json: bool) -> int:
    """The exit code of ``carry``; an error is said as the last event of the job."""
    from keel_notebook.front.cli_print import put_json  # noqa: PLC0415 - only an error needs it
    from keel_notebook.front.cli_run import refused as event  # noqa: PLC0415 - as above

    try:
        return carry()
    except KeelError as error:
        if as_json:
            put_json(event(error, exit_code(error)), lines=False)
        else:
            click.echo(str(error), err=True)
        return exit_code(error)
