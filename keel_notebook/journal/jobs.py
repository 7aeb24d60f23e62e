"""The jobs of a journal's folder: one small file each, locked by the process that carries the job out.

``jobs/ID.json`` is there from the start of a ``keel run`` until it ends in order. Its ``flock`` is the claim: the
operating system drops it on any death, so that a file nobody holds is a run that was left. The file is written in
place, because a claim is on this very file; who gets the lock of one that was unlinked meanwhile has no claim.
It carries the owner's seal: it says which notebook to run and which file to write.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Final

from keel_notebook.core.jobs import Job, from_map, to_map
from keel_notebook.core.ports import Seal
from keel_notebook.errors import DamagedError
from keel_notebook.journal import liveness
from keel_notebook.journal.faults import spoken
from keel_notebook.journal.folder import Folder

_TRIES: Final = 15
_PAUSE_S: Final = 0.02
"""Who only looks whether a job is held has its lock for a moment: a claim that meets a look tries again."""
_MOST_BYTES: Final = 1 << 20


class Held:
    """A job that this process carries out."""

    def __init__(self, fd: int, path: str, job: Job, seal: Seal) -> None:
        self._fd = fd
        self._path = path
        self._seal = seal
        self.job = job

    def update(self, job: Job) -> None:
        """Write the job down anew, power-safe. Raises OSError."""
        body = json.dumps(to_map(job))
        raw = json.dumps({"job": body, "seal": self._seal.sign(body.encode()).hex()}).encode()
        os.pwrite(self._fd, raw, 0)
        os.ftruncate(self._fd, len(raw))
        os.fsync(self._fd)
        self.job = job

    def done(self) -> None:
        """The job ended in order: nobody goes on with it."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        os.close(self._fd)

    def leave(self) -> None:
        """Let go of the job: whoever comes next may take it."""
        os.close(self._fd)


class Jobs:
    """The jobs of one journal. Making one touches nothing."""

    def __init__(self, folder: Path, seal: Seal) -> None:
        self._place = Folder(folder)
        self._seal = seal

    def begin(self, job: Job) -> Held | None:
        """Write down that this process carries a job out; None where another one does, or the drive has no locks.

        Raises JournalUnreachableError (E054).
        """
        with spoken(self._place.path):
            self._place.create()
            os.makedirs(self._place.jobs, mode=0o700, exist_ok=True)
            fd = self._locked(job.id, make=True)
            if fd is None:
                return None
            held = Held(fd, self._path(job.id), job, self._seal)
            try:
                held.update(job)
            except OSError:  # no room: a torn file is nobody's job
                held.done()
                raise
            return held

    def claim(self, job_id: str) -> Held | None:
        """Take a job that was left; None where another process has it, or it is over.

        Raises DamagedError (E051) where its file cannot be read or is not the owner's, JournalUnreachableError (E054).
        """
        with spoken(self._place.path):
            fd = self._locked(job_id, make=False)
            if fd is None:
                return None
            try:
                return Held(fd, self._path(job_id), self._read(fd, job_id), self._seal)
            except DamagedError:
                os.close(fd)
                raise

    def listed(self) -> list[tuple[Job, bool]]:
        """The jobs of the owner, the oldest first, each with whether a process holds it.

        What another key sealed, or cannot be read, is left out: it is not to be gone on with. Raises
        JournalUnreachableError (E054).
        """
        found: list[tuple[Job, bool]] = []
        with spoken(self._place.path):
            try:
                names = sorted(os.listdir(self._place.jobs))
            except FileNotFoundError:
                return []
            for name in names:
                with contextlib.suppress(FileNotFoundError, DamagedError):
                    found.append(self._looked_at(name.removesuffix(".json")))
        return sorted(found, key=lambda pair: pair[0].began_at)

    def _looked_at(self, job_id: str) -> tuple[Job, bool]:
        fd = os.open(self._path(job_id), os.O_RDONLY | os.O_CLOEXEC)
        try:
            held = liveness.held(fd)
            # A drive without locks cannot tell: then nobody goes on by itself.
            return self._read(fd, job_id), held is not False
        finally:
            os.close(fd)

    def _read(self, fd: int, job_id: str) -> Job:
        try:
            found = json.loads(os.pread(fd, _MOST_BYTES, 0))
            if not self._seal.verify(found["job"].encode(), bytes.fromhex(found["seal"])):
                raise ValueError
            return from_map(json.loads(found["job"]))
        except (ValueError, KeyError, TypeError, AttributeError):  # msgspec's errors are ValueErrors
            detail = "its file is not what your key sealed"
            raise DamagedError(what="the job", step=job_id, detail=detail, case="job") from None

    def _locked(self, job_id: str, *, make: bool) -> int | None:
        """The locked file of a job, or None. Raises OSError."""
        path = self._path(job_id)
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if make else 0)
        for _ in range(_TRIES):
            try:
                fd = os.open(path, flags, 0o600)
            except FileNotFoundError:
                return None
            try:
                if liveness.take_now(fd) and _is_still(fd, path):
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
            time.sleep(_PAUSE_S)
        return None

    def _path(self, job_id: str) -> str:
        return f"{self._place.jobs}/{job_id}.json"


def _is_still(fd: int, path: str) -> bool:
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(fd))
