"""Kernels for a few milliseconds: shells forked from one warm process, driven cell by cell.

A ``Kernel`` can die in the middle of a cell: at its n-th call of ``hit``, which every step makes, or at its n-th write
to the journal. ``Kernel(keel=False)`` is the same without keel: the truth.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crash.shells import die_at
from tests.support.notebook import LOAD

ROOT = Path(__file__).parents[2]
HIT = 'import sys as _sys\ndef hit(name): _sys.audit("tests.hit", name)'


class Died(Exception):
    """The kernel killed itself, as it was told to."""


@dataclass(frozen=True)
class Shown:
    """What a cell showed."""

    printed: str
    stderr: str
    error: str


class Warm:
    """The process from which kernels are forked."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "warm")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.histories.kernels", self.address], cwd=ROOT, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()  # type: ignore[union-attr]


class Kernel:
    """One kernel in a folder."""

    def __init__(self, warm: Warm, folder: Path, *, keel: bool = True, **dies: int) -> None:
        """``dies``: ``at_hit`` or ``at_write``, counted from 1."""
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(warm.address)
        self._lines = self._socket.makefile("rw")
        self.hits: list[str] = []
        """Steps whose body ran, in order."""
        self.ask(folder=str(folder), **dies)
        self.run(LOAD if keel else "pass")  # the cells' numbers are shown
        self.run(HIT)

    def ask(self, **order: Any) -> dict[str, Any]:
        """Send an order, wait for the answer. Raises Died."""
        try:
            self._lines.write(json.dumps(order) + "\n")
            self._lines.flush()
            line = self._lines.readline()
        except OSError:
            line = ""
        if not line:
            raise Died
        return json.loads(line)

    def run(self, cell: str) -> Shown:
        """Run a cell. Raises Died."""
        answer = self.ask(cell=cell)
        self.hits += answer.pop("hits")
        return Shown(**answer)

    def picture(self) -> dict[str, Any]:
        """What the namespace holds now (``pictures.py``)."""
        return self.ask(picture=True)

    def close(self) -> None:
        """An orderly end; harmless if it is dead."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            self._lines.readline()  # until the other side is gone
        self._lines.close()
        self._socket.close()

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _serve(address: str) -> None:
    """The warm process: a fork for each connection."""
    import IPython.core.interactiveshell
    import numpy  # noqa: F401
    import pandas  # noqa: F401
    import psutil  # noqa: F401

    import keel_notebook.front.magics
    import keel_notebook.leading  # noqa: F401
    from keel_notebook import wiring

    # No ingest beside thousands of shells: what it does is shown in tests/journal, and it would take both cores.
    wiring.open_journal = functools.partial(wiring.open_journal, rest_s=None)
    shell = IPython.core.interactiveshell.InteractiveShell.instance()
    shell.history_manager.enabled = False
    from tests.histories import pictures

    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]  # a notebook's kernel has no such local modules, and reading them takes time
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    server = socket.socket(socket.AF_UNIX)
    server.bind(address)
    server.listen(64)
    print("ready", flush=True)
    while True:
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _live(connection, shell, pictures)
        connection.close()


def _live(connection: socket.socket, shell: Any, pictures: Any) -> None:
    """In the forked child: the shell runs what it is told."""
    from IPython.utils.capture import capture_output

    lines = connection.makefile("rw")
    hits: list[str] = []

    def answer(**fields: Any) -> None:
        lines.write(json.dumps(fields) + "\n")
        lines.flush()

    def count(at: int, event: str, args: tuple[Any, ...]) -> None:
        if event == "tests.hit":
            hits.append(args[0])
            if len(hits) == at:
                os.kill(os.getpid(), signal.SIGKILL)

    total = 0
    for line in lines:
        order = json.loads(line)
        if "folder" in order:
            os.chdir(order["folder"])
            os.environ["JPY_SESSION_NAME"] = os.path.join(order["folder"], "a.ipynb")
            sys.path.insert(0, "")
            sys.dont_write_bytecode = True
            at = order.get("at_hit", 0)
            sys.addaudithook(functools.partial(count, at))
            if order.get("at_write"):
                die_at(order["at_write"], after=False)
            answer()
        elif "cell" in order:
            with capture_output() as shown:
                result = shell.run_cell(order["cell"], store_history=True)
            error = result.error_in_exec or result.error_before_exec
            answer(
                printed="" if error else shown.stdout,
                stderr=shown.stderr,
                error=repr(error) if error else "",
                hits=hits[total:],
            )
            total = len(hits)
        else:
            space = shell.user_ns
            answer(whole=pictures.whole(space), single=pictures.single(space), generators=pictures.generators())
    if (session := getattr(shell, "_keel_session", None)) is not None:
        session.close()
    os._exit(0)


if __name__ == "__main__":
    _serve(sys.argv[1])
