"""The journal's folder: what lies where, and who may read it.

::

    .keel/                0700, hidden from git by its own .gitignore
      salt                32 random bytes (DESIGN 8)
      journal.duckdb      the journal of record
      journal.lock        held by whoever ingests; never unlinked
      inbox/7.seg         what run 7 wrote; inbox/7.rss beside it: memory last seen, length known power-safe
      heads/FLOW          what a kernel reads to attach to a flow; heads/.index says what all of them cover
      objects/ab/cdef…    buffers and large payload heads, named by digest, written once
      flows/…             which notebook is which flow
      let_go.txt          which objects a collection let go, and when
      leases/             the engine's
      jobs/ID.json        a `keel run` that has not ended in order; locked while its process lives
      damaged/            what was set aside, and notes.txt that says why
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from pathlib import Path
from typing import Final

from keel_notebook.journal.wholefiles import create_whole, read_whole

SALT_BYTES: Final = 32
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")


class Folder:
    """Paths of one journal. Building one touches nothing."""

    def __init__(self, path: Path | str) -> None:
        self.path = os.path.abspath(path)
        self.inbox = self.path + "/inbox"
        self.heads = self.path + "/heads"
        self.index = self.heads + "/.index"
        self.objects = self.path + "/objects"
        self.flows = self.path + "/flows"
        self.jobs = self.path + "/jobs"
        self.damaged = self.path + "/damaged"
        self.record = self.path + "/journal.duckdb"
        self.lock = self.path + "/journal.lock"
        self.salt = self.path + "/salt"
        self.let_go = self.path + "/let_go.txt"

    def segment(self, run: int) -> str:
        """The segment of a run."""
        return f"{self.inbox}/{run}.seg"

    def side(self, run: int) -> str:
        """The side file of a run: fixed size, rewritten in place."""
        return f"{self.inbox}/{run}.rss"

    def head(self, flow: str) -> str:
        """The head of a flow. Ids that are no plain file name are hashed."""
        if _PLAIN_NAME.fullmatch(flow):
            return f"{self.heads}/{flow}"
        return f"{self.heads}/x-{hashlib.blake2b(flow.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"

    def runs(self) -> list[int]:
        """The runs that have a segment, oldest first; none where there is no inbox. Raises OSError."""
        try:
            names = os.listdir(self.inbox)
        except FileNotFoundError:
            return []
        return sorted(int(name[:-4]) for name in names if name.endswith(".seg") and name[:-4].isdecimal())

    def exists(self) -> bool:
        """Whether there is a journal. Raises OSError where that cannot be told."""
        try:
            os.stat(self.path)
        except FileNotFoundError:
            return False
        return True

    def create(self) -> None:
        """Make the folder and what a kernel needs in it; keeps what is there. Raises OSError."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        for made in (self.path, self.inbox, self.objects):
            with contextlib.suppress(FileExistsError):
                os.mkdir(made, 0o700)
        with contextlib.suppress(FileExistsError):
            fd = os.open(self.path + "/.gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.write(fd, b"*\n")
            finally:
                os.close(fd)

    def read_salt(self) -> bytes | None:
        """The journal's salt, or None where it has none. Raises OSError; ValueError where it is not whole."""
        for _ in range(50):
            try:
                raw = read_whole(self.salt)
            except FileNotFoundError:
                return None
            if len(raw) == SALT_BYTES:
                return raw
            time.sleep(0.01)  # made without links, by a kernel that has not written it yet
        raise ValueError("the salt is not whole")

    def make_salt(self, salt: bytes) -> bytes:
        """The journal's salt: the one that is there, else ``salt``. Kernels that race agree. Raises OSError.

        It becomes power-safe with the first entry (Segment.sync): before, nothing was digested with it.
        """
        found = self.read_salt()
        if found is None:
            create_whole(self.salt, salt, safe=False)
            found = self.read_salt()
        return salt if found is None else found
