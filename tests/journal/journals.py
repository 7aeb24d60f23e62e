"""What the journal's tests share: a clock, seals, entries, and kernels that can be killed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import textwrap
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from keel_notebook.core.model import Digest, Entry, FlowId, Input, Kind, Payload, Status, entry_id
from keel_notebook.journal.disk import DiskJournal, open_journal
from keel_notebook.journal.folder import Folder

FLOW = FlowId("flow-a")
OTHER = FlowId("flow-b")
OPENED: list[DiskJournal] = []


class RealClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class KeySeal:
    def __init__(self, key: bytes = b"mine") -> None:
        self._key = key

    def sign(self, body: bytes) -> bytes:
        return hashlib.blake2b(body, key=self._key, digest_size=16).digest()

    def verify(self, body: bytes, mac: bytes) -> bool:
        return self.sign(body) == mac


def opened(folder: Path, *, seal: KeySeal | None = None, clock: Any = None, rest_s: float | None = None) -> DiskJournal:
    """A journal that starts no ingests by itself unless ``rest_s`` says so."""
    journal = open_journal(
        folder, clock=clock or RealClock(), seal=seal or KeySeal(), notebook="/n/a.ipynb", cwd="/n", rest_s=rest_s
    )
    OPENED.append(journal)
    return journal


def entry(journal: Any, step: str = "fit", **fields: Any) -> Entry:
    """A new entry of the journal's run."""
    seq = fields.pop("seq", None) or journal.next_seq()
    fields.setdefault("flow", FLOW)
    fields.setdefault("kind", Kind.STEP)
    fields.setdefault("status", Status.OK)
    fields.setdefault("code", Digest("c" * 32))
    fields.setdefault("inputs", (Input("a", Digest("d" * 32), preview="7"),))
    return Entry(entry=entry_id(journal.run, seq), run=journal.run, seq=seq, step=step, **fields)


def with_object(journal: Any, content: bytes, **fields: Any) -> Entry:
    """An entry whose payload has one object with this content."""
    blob = journal.blob(content)
    return entry(journal, payload=Payload(blob, bytes=blob.size), **fields)


def drop(journal: DiskJournal) -> None:
    """What SIGKILL does to a kernel of this process: nothing more is written, the lock goes."""
    journal._flusher.stop(5)
    journal._closed = True
    assert journal._writer.segment is not None
    journal._writer.segment.close()


def forked(body: Callable[[], None]) -> int:
    """Run ``body`` in a forked child and return its wait status; 0 is a quiet end."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            body()
            code = 0
        except BaseException:  # noqa: BLE001 - a forked child must never return into the test run
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitpid(pid, 0)[1]


@contextlib.contextmanager
def killed_child(body: Callable[[int], None]) -> Iterator[tuple[int, int]]:
    """A forked child that runs ``body(fd)``; gives its pid and the reading end of its pipe, kills it at the end."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            body(writing)
        except BaseException:  # noqa: BLE001 - a forked child must never return into the test run
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    try:
        yield pid, reading
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)


def drained(fd: int) -> bytes:
    """Everything until the other end is closed."""
    parts = []
    while part := os.read(fd, 1 << 16):
        parts.append(part)
    return b"".join(parts)


def wait_for(fact: Callable[[], Any], *, within_s: float = 20.0, what: str = "") -> Any:
    """The first true value of ``fact``; fails where it does not come."""
    deadline = time.monotonic() + within_s
    while True:
        found = fact()
        if found:
            return found
        assert time.monotonic() < deadline, f"never came: {what or fact}"
        time.sleep(0.01)


def ingested(folder: Path) -> None:
    """Everything recorded is in the record file, put there by a process of its own."""

    def run() -> None:
        from keel_notebook.journal import ingest

        ingest.ingest(Folder(folder), wait_s=20)

    assert forked(run) == 0


def rows(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    """As anybody would read the record file."""
    import duckdb  # here, so that what the scripts of the tests import stays what a kernel imports

    with duckdb.connect(str(folder / "journal.duckdb"), read_only=True) as con:
        return con.execute(sql).fetchall()


def in_the_record_file(folder: Path) -> set[str]:
    """The ids of all entries that anybody finds in the record file."""
    return {ident for (ident,) in rows(folder, "SELECT entry FROM entries")}


def script(text: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a Python script as a user's process would be; fails where it does not end with code 0."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **options.pop("env", {})}
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(text), *map(str, arguments)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False, **options)
    assert done.returncode == 0, f"ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done


PRELUDE = """
import os, sys, time, signal
from pathlib import Path
from tests.journal.journals import *
from keel_notebook.core.model import *
from keel_notebook.core.ports import *
from keel_notebook.errors import *
from keel_notebook.journal.reader import read_journal
folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
"""
