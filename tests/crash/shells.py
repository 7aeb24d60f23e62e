"""IPython shells without a kernel, forked from one warm process, so that a death costs milliseconds.

``Zygote`` imports everything once and forks a shell for each run. A shell runs its cells and writes one line into a
file for each that was acknowledged. It can be told to kill itself at its n-th write to the journal: that wrapper is
here, in the tests, and the product knows nothing of it.
"""

from __future__ import annotations

import errno
import functools
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keel_notebook.capture.opens import Opens

ROOT = Path(__file__).parents[2]
FAULTED = "faulted"
_WRITES = ("write", "pwrite", "writev", "rename", "replace", "link", "ftruncate", "posix_fallocate", "mkdir", "unlink")


@dataclass(frozen=True)
class Order:
    """What a shell is to do."""

    folder: str
    cells: Sequence[str]
    acks: str
    kill_at: int = 0
    after: bool = False
    blind: bool = False
    """The system does not tell what is opened, as on other systems than Linux."""
    fault: Sequence[Any] = ()
    """What the disk answers from which call on, as ``faulty`` takes it."""


@dataclass(frozen=True)
class Run:
    """What became of a shell: the cells that were acknowledged, each with what it printed, and its end."""

    acknowledged: list[dict[str, str]]
    signal: int
    code: int
    error: str = ""
    """Of the cell at which it stopped."""

    @property
    def printed(self) -> list[str]:
        """What each cell printed."""
        return [cell["out"] for cell in self.acknowledged]


class Zygote:
    """The warm process."""

    def __init__(self, *modules: str) -> None:
        """``modules`` are imported once, before any shell is forked."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.shells", *modules],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def start(self, folder: Path, cells: Sequence[str], **how: Any) -> tuple[int, Path]:
        """Fork a shell; its pid and the file of its acknowledgements. ``how``: other fields of ``Order``."""
        handle, acks = tempfile.mkstemp(prefix="acks-", suffix=".jsonl", dir=folder)
        os.close(handle)
        order = Order(str(folder), list(cells), acks, **how)
        self._process.stdin.write(json.dumps(order.__dict__) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline()), Path(acks)

    def wait(self, acks: Path) -> Run:
        """Wait for the end of the shell."""
        status = int(self._process.stdout.readline())
        lines = [json.loads(line) for line in acks.read_text().splitlines()]
        acks.unlink()
        error = lines.pop()["error"] if lines and "error" in lines[-1] else ""
        return Run(
            lines, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, os.waitstatus_to_exitcode(status), error
        )

    def run(self, folder: Path, cells: Sequence[str], **how: Any) -> Run:
        """Fork a shell and wait for its end."""
        _, acks = self.start(folder, cells, **how)
        return self.wait(acks)

    def close(self) -> None:
        """End the warm process, with the shell that it may still be waiting for."""
        self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process.stdout.close()


def in_journal(target: object) -> bool:
    """Whether a path or an open file lies in a journal."""
    try:
        path = os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else os.fsdecode(target)  # type: ignore[arg-type]
    except (OSError, TypeError):
        return False
    return "/.keel" in os.path.abspath(path)


def die_at(number: int, *, after: bool) -> None:
    """Make this process kill itself before (or after) its n-th call that changes something in a journal."""
    calls = 0

    def wrap(name: str) -> None:
        real = getattr(os, name)

        def call(*args: object, **kwargs: object) -> object:
            nonlocal calls
            if not in_journal(args[0]):
                return real(*args, **kwargs)
            calls += 1
            mine = calls == number
            if mine and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            done = real(*args, **kwargs)
            if mine:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        setattr(os, name, call)

    for name in _WRITES:
        wrap(name)


def faulty(number: int, error: str, lasting: bool, names: Sequence[str]) -> None:
    """Make the n-th of the named calls in a journal (``lasting``: and every later one) go wrong.

    ``error`` is the name of an errno; or ``short``: the system takes half of what is written and says so; or ``torn``:
    it takes half, and then the disk is full. A file ``FAULTED`` in the working directory tells that it came so far.
    """
    calls = 0

    def wrap(name: str) -> None:
        real = getattr(os, name)

        def call(target: Any, *rest: Any, **named: Any) -> Any:
            nonlocal calls
            if not in_journal(target):
                return real(target, *rest, **named)
            calls += 1
            if calls < number or (calls > number and not lasting):
                return real(target, *rest, **named)
            Path(FAULTED).touch()
            if error in {"short", "torn"}:
                if name in {"write", "pwrite"} and len(rest[0]) > 1:
                    rest = (memoryview(rest[0])[: len(rest[0]) // 2], *rest[1:])
                done = real(target, *rest, **named)
                if error == "short":
                    return done
            code = getattr(errno, "ENOSPC" if error == "torn" else error)
            raise OSError(code, os.strerror(code))

        setattr(os, name, call)

    for name in names:
        wrap(name)


def _run(shell: Any, order: Order) -> None:
    """In the forked child: one shell and its cells."""
    os.chdir(order.folder)
    shell.starting_dir, shell.user_ns["_dh"] = order.folder, [order.folder]
    os.environ["JPY_SESSION_NAME"] = str(Path(order.folder) / "a.ipynb")
    if order.kill_at:
        die_at(order.kill_at, after=order.after)
    if order.fault:
        faulty(*order.fault)
    if order.blind:
        Opens.make = classmethod(lambda _: None)  # type: ignore[assignment,method-assign]
    from IPython.utils.capture import capture_output

    acks = os.open(order.acks, os.O_WRONLY | os.O_APPEND)
    for source in order.cells:
        with capture_output() as shown:
            result = shell.run_cell(source, store_history=True)
        if not result.success:
            error = repr(result.error_in_exec or result.error_before_exec)
            os.write(2, f"{source}: {error}\n".encode())
            os.write(acks, (json.dumps({"error": error}) + "\n").encode())
            os._exit(3)
        os.write(acks, (json.dumps({"out": shown.stdout, "err": shown.stderr}) + "\n").encode())
    if (session := getattr(shell, "_keel_session", None)) is not None:
        session.close()
    os._exit(0)


def _fresh_shell() -> Any:
    """A shell in which nothing ran, and imported and compiled what every one would import and compile for itself."""
    import IPython.core.completerlib
    import IPython.core.magics
    import IPython.core.oinspect
    from IPython.core.inputtransformer2 import TransformerManager
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    import keel_notebook.core.almost
    import keel_notebook.payload.entities

    assert IPython
    assert keel_notebook
    TransformerManager().transform_cell("%time x = 1\n%%time\nx = 1\n")
    config = Config()
    config.HistoryManager.enabled = False  # no thread either, which a fork would not take along
    return InteractiveShell.instance(config=config)


def _serve() -> None:
    """The warm process: forks a shell for each order, tells its pid, then how it ended."""
    import IPython.core.interactiveshell
    import numpy

    import keel_notebook.front.magics
    import keel_notebook.leading
    from keel_notebook import wiring

    assert IPython, keel_notebook
    assert numpy
    for name in sys.argv[1:]:
        importlib.import_module(name)
    # No ingest beside hundreds of shells: what it does is shown in tests/journal, and it would take both cores.
    wiring.open_journal = functools.partial(wiring.open_journal, rest_s=None)
    shell = _fresh_shell()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(shell, Order(**json.loads(line)))
        print(child, flush=True)
        print(os.waitpid(child, 0)[1], flush=True)


if __name__ == "__main__":
    _serve()
