"""Starts the short-lived child process that is the only one to open DuckDB (DESIGN 7).

A DuckDB connection inside a kernel would lock every reader out, lose its lock when the user's code opens and
closes the file, and lose commits after a fork. So a kernel starts a child and looks at how it ended.
"""

from __future__ import annotations

import os
import signal
import subprocess  # our own interpreter and our own module, no shell
import sys
import sysconfig
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

from keel_notebook.errors import JournalUnreachableError, QueryError
from keel_notebook.journal import wire
from keel_notebook.journal.folder import Folder

_MODULE: Final = "keel_notebook.journal.ingest"


class Exit(IntEnum):
    """How the child ended. Numbers as in sysexits.h."""

    DONE = 0
    REFUSED = 65
    """The question cannot be answered: an error in the SQL."""
    FAULT = 70
    UNWRITABLE = 73
    FULL = 74
    BUSY = 75
    """The record file is open in another program, or another ingest takes long."""


def start_ingest(folder: str, *more: str) -> subprocess.Popen[bytes]:
    """Start an ingest of ``folder`` that goes on by itself, with ``more`` arguments. Raises OSError."""
    return subprocess.Popen(  # noqa: S603 - fixed arguments
        [*_command(folder), *more],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
        cwd="/",
        close_fds=True,
        start_new_session=True,
    )


def leave(child: subprocess.Popen[bytes]) -> None:
    """Stop caring about a child that outlives this process."""
    if child.poll() is None:
        child.returncode = 0  # else subprocess warns about it at exit


def ingest_now(folder: Path | str, timeout_s: float = 60.0) -> None:
    """Bring the record file and the heads up to date, and return when that is done.

    Raises JournalUnreachableError (E054) where it could not be done in time, and says why.
    """
    _ask(Folder(folder).path, ["--wait", str(timeout_s)], None, timeout_s)


def query(folder: Path | str, sql: str, *, timeout_s: float = 120.0) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The columns and rows of one SELECT over everything recorded so far.

    Times come as ISO text, and what MessagePack does not know as text. Raises QueryError (E007) where the
    SQL is not one SELECT that can be run, JournalUnreachableError (E054) where the journal cannot be read.
    """
    raw = _ask(Folder(folder).path, ["--wait", str(timeout_s), "--query"], sql.encode("utf-8", "replace"), timeout_s)
    found = wire.unpack(raw)
    return list(found["columns"]), [tuple(row) for row in found["rows"]]


def everything(folder: Path | str, flow: str, *, timeout_s: float = 120.0) -> list[wire.Stored]:
    """Every entry of a flow that was ever recorded, oldest first. Raises JournalUnreachableError (E054)."""
    raw = _ask(Folder(folder).path, ["--wait", str(timeout_s), "--history"], flow.encode(), timeout_s)
    return [wire.Stored(stamp, fence, tuple(macs), body) for stamp, fence, macs, body in wire.unpack(raw)]


def _ask(folder: str, arguments: Sequence[str], question: bytes | None, timeout_s: float) -> bytes:
    try:
        child = subprocess.Popen(  # noqa: S603 - fixed arguments; the question goes through stdin
            [*_command(folder), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise JournalUnreachableError(
            journal=folder, detail=f"its reader could not be started ({error})", case="heads"
        ) from error
    with child:
        try:
            out, said = child.communicate(question, timeout=timeout_s + 10)
        except BaseException as error:
            os.killpg(child.pid, signal.SIGTERM)
            if isinstance(error, subprocess.TimeoutExpired):
                detail = f"reading it took longer than {timeout_s:g} s"
                raise JournalUnreachableError(journal=folder, detail=detail, case="heads") from error
            raise
    if child.returncode == Exit.DONE:
        return out
    detail = said.decode("utf-8", "replace").strip().split("\n")[-1] or f"its reader ended with {child.returncode}"
    if child.returncode == Exit.REFUSED:
        raise QueryError(detail=detail)
    raise JournalUnreachableError(journal=folder, detail=detail, case="heads")


def _command(folder: str) -> list[str]:
    return [*python_module(_MODULE), folder]


def python_module(module: str) -> list[str]:
    """The words that run a module of ours in a child, with ``environment()``."""
    # -P: the notebook's folder may hold a duckdb.py. -W ignore: the user's warning filters are not for this child.
    return [sys.executable, "-P", "-W", "ignore", "-m", module]


def environment() -> dict[str, str]:
    """For a child: a kernel may have found keel through sys.path alone, and the child has to find the same one."""
    root = str(Path(__file__).resolve().parents[2])
    env = dict(os.environ)
    if root not in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [env.get("PYTHONPATH", ""), root]))
    return env
