"""Runs a notebook from the top in a kernel of its own, without a front end (``keel run``; docs/headless.md).

nbclient sends the cells and collects what they show. Added here: the flow is named before the first cell, the
executed notebook is written after every cell, a time-out or a signal interrupts the cell so that its step is
recorded as interrupted, and a kernel that died is told from a cell that failed. Never asks anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from keel_notebook.aside import own_line
from keel_notebook.core.parameters import INJECTED_TAG
from keel_notebook.core.plans import PlannedCell, notebook_cells
from keel_notebook.core.redact import redacted
from keel_notebook.errors import NotStartedError, SettingsError, WrongFileError

_LOAD = "__import__('keel_notebook').load_ipython_extension(get_ipython())"
"""Not ``%load_ext``: the notebook's own line must stay quiet."""
_GRACE_S = 10.0
"""How long an interrupted cell may take to end."""
_SAVE_S = 30.0
_SOCKET_PATH = 103
"""Longest path of a socket that every system takes, in bytes."""
_SOCKET = "k"
"""The sockets of a kernel are ``k-1``, ``k-2`` and so on."""
_TICK_S = 1.0


class Ended(StrEnum):
    """How a run of a notebook ended."""

    FINISHED = "finished"
    FAILED = "failed"
    DIED = "died"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    TERMINATED = "terminated"


EXIT_CODES: Mapping[Ended, int] = {
    Ended.FINISHED: 0,
    Ended.FAILED: 1,
    Ended.DIED: 3,
    Ended.TIMEOUT: 4,
    Ended.INTERRUPTED: 130,
    Ended.TERMINATED: 143,
}
"""2 stays what it is for every command: something on the command line is not known."""


class Order(Struct, frozen=True):
    """What is to be run, and where."""

    book: Any
    """The parsed notebook, parameters injected. Its outputs are replaced."""
    output: Path
    cwd: Path
    environ: Mapping[str, str]
    kernel: str = ""
    """Name of the kernel; empty: the one that the notebook names."""
    timeout_s: float | None = None
    """Seconds that one cell may take."""
    startup_s: float = 60.0
    last: str = ""
    """A cell that runs after the others, also where one of them failed and those behind it did not run."""
    ask: str = ""
    """An expression that the kernel is asked after every cell; its text is ``CellSeen.answer``."""


class CellSeen(Struct, frozen=True):
    """A cell that ended, or could not."""

    cell: PlannedCell
    status: str
    """``ok``, or how the run ended in it."""
    took_s: float
    error: str = ""
    """Class of the exception that the cell raised."""
    said: tuple[str, ...] = ()
    """The lines that keel itself wrote: a divergence, what is not stored."""
    message: str = ""
    """First line of what the exception says, without what looks like a credential."""
    line: int = 0
    """Line of the cell in which it was raised, from 1; 0 where nobody knows."""
    answer: str = ""
    """What the kernel said to ``Order.ask``; empty where it said nothing."""


class Listener(Protocol):
    """Who is told how a run goes on."""

    def kernel(self, pid: int) -> None:
        """The kernel is there; 0 where its process has no number here."""

    def begins(self, cell: PlannedCell) -> None:
        """A code cell is sent to the kernel."""

    def waits(self, elapsed_s: float) -> None:
        """The cell still runs."""

    def ended(self, seen: CellSeen) -> None:
        """The cell has ended."""


def carry_out(
    order: Order,
    listener: Listener,
    *,
    monotonic: Callable[[], float],
    lost: Callable[[WrongFileError], None] = lambda _: None,
) -> Ended:
    """Run every cell, top to bottom; nothing after the first that fails. The kernel is gone afterwards.

    ``lost`` is told where the executed notebook could not be written at the end; the cells ran all the same.
    Raises NotStartedError (E009) where no kernel can be started, or where keel is not installed in it, WrongFileError
    (E008) where the executed notebook cannot be written: then nothing was started.
    """
    running = _Running(order, listener, monotonic)
    ended = asyncio.run(running.run())
    if running.unsaved is not None:
        lost(running.unsaved)
    return ended


class _Running:
    """One run. ``_stop`` holds why it is to end early."""

    def __init__(self, order: Order, listener: Listener, monotonic: Callable[[], float]) -> None:
        from nbclient import NotebookClient  # noqa: PLC0415 - no other command needs it
        from nbformat.v4 import new_code_cell  # noqa: PLC0415 - comes with nbclient

        self._order = order
        self._listener = listener
        self._monotonic = monotonic
        self._stop: Ended | None = None
        self.unsaved: WrongFileError | None = None
        """Why the executed notebook is not on disk as it is now."""
        if order.last:
            order.book.cells.append(new_code_cell(order.last))
        self._cells = {cell.index: cell for cell in notebook_cells(order.book)}
        named = {"kernel_name": order.kernel} if order.kernel else {}
        self._client = NotebookClient(
            order.book,
            timeout=None,
            startup_timeout=order.startup_s,
            record_timing=False,
            resources={"metadata": {"path": str(order.cwd)}},
            on_cell_execute=self._tell_id,
            **named,
        )

    def _tell_id(self, cell: Any, cell_index: int) -> None:  # noqa: ARG002 - nbclient passes both by name
        self._client.kc.session.metadata = {"cellId": cell.get("id", "")}

    async def run(self) -> Ended:
        from jupyter_client.kernelspec import NoSuchKernel  # noqa: PLC0415 - comes with nbclient
        from nbclient.exceptions import DeadKernelError  # noqa: PLC0415

        self._save()
        if self.unsaved is not None:
            raise self.unsaved  # before a kernel starts
        ready = False
        try:
            with _off_the_network(self._client.create_kernel_manager()):
                async with self._client.async_setup_kernel(env=dict(self._order.environ)):
                    with self._signals():
                        self._listener.kernel(int(getattr(self._client.km.provisioner, "pid", None) or 0))
                        await self._load()
                        ready = True
                        return await self._run_cells()
        except NoSuchKernel as error:
            raise NotStartedError(
                where="the kernel", detail=f"{error.name} is not installed here (--kernel)", case="kernel"
            ) from None
        except (RuntimeError, DeadKernelError) as error:
            if ready:
                raise
            raise SettingsError(where="the kernel", detail=f"did not start ({type(error).__name__})") from None
        except OSError as error:
            if ready:
                raise
            detail = f"{error.filename or 'it'}: {error.strerror or type(error).__name__}"
            raise NotStartedError(where="the kernel", detail=detail, case="kernel") from None
        finally:
            self._save()

    async def _load(self) -> None:
        client = self._client.kc
        sent = client.execute(_LOAD, silent=True, store_history=False, stop_on_error=False)
        reply = await self._client.async_wait_for_reply(sent)
        if reply is None or reply["content"]["status"] != "ok":
            detail = "keel-notebook is not installed in its environment"
            raise NotStartedError(where="the kernel", detail=detail, case="kernel")
        found = await self._client.async_wait_for_reply(client.kernel_info())
        if found is not None:
            self._order.book.metadata["language_info"] = found["content"]["language_info"]

    async def _run_cells(self) -> Ended:
        index, ended = 0, Ended.FINISHED
        last = len(self._order.book.cells) - 1 if self._order.last else -1
        for at, cell in enumerate(self._order.book.cells):
            if cell.cell_type != "code":
                continue
            index += 1
            stopped = ended is not Ended.FINISHED and not (at == last and ended is Ended.FAILED)
            if self._stop is None and not stopped and cell.source.strip():
                ended = await self._run_cell(cell, at, self._cells[index])
                self._save()
        if ended is Ended.FINISHED:
            self._client.set_widgets_metadata()
        return self._stop or ended

    async def _run_cell(self, cell: Any, at: int, planned: PlannedCell) -> Ended:
        from nbclient.exceptions import CellExecutionError, DeadKernelError  # noqa: PLC0415 - see __init__

        self._listener.begins(planned)
        began, limit = self._monotonic(), self._order.timeout_s
        running = asyncio.ensure_future(self._client.async_execute_cell(cell, at))
        loop = asyncio.get_running_loop()
        timer = loop.call_later(limit, self._halt, Ended.TIMEOUT) if limit is not None else None
        watch = asyncio.ensure_future(self._watch(began, running))
        status, error = Ended.FINISHED, ""
        try:
            await running
        except CellExecutionError as failure:
            status, error = Ended.FAILED, str(failure.ename)
        except (DeadKernelError, asyncio.CancelledError):
            status = Ended.DIED
        finally:
            watch.cancel()
            if timer is not None:
                timer.cancel()
        if self._stop is not None:
            status = self._stop
        took, word = self._monotonic() - began, "ok" if status is Ended.FINISHED else str(status)
        answer = await self._asked() if status is not Ended.DIED else ""
        message, line = raised_in(cell.outputs) if error else ("", 0)
        said = own_lines(cell.outputs)
        self._listener.ended(CellSeen(planned, word, took, error, said, message, line, answer))
        return status

    async def _asked(self) -> str:
        if not self._order.ask:
            return ""
        asked = {"keel": self._order.ask}
        sent = self._client.kc.execute("", silent=True, user_expressions=asked, stop_on_error=False)
        reply = await self._client.async_wait_for_reply(sent)
        found = reply["content"].get("user_expressions", {}).get("keel", {}) if reply is not None else {}
        return str(found.get("data", {}).get("text/plain", ""))

    async def _watch(self, began: float, running: asyncio.Future[Any]) -> None:
        saved, stopping = began, 0.0
        while True:
            await asyncio.sleep(_TICK_S)
            now = self._monotonic()
            self._listener.waits(now - began)
            if self._stop is not None:
                stopping = stopping or now
                if now - stopping > _GRACE_S:
                    running.cancel()
                    return
            if now - saved >= _SAVE_S:
                self._save()
                saved = self._monotonic()

    def _halt(self, why: Ended) -> None:
        """Interrupt the cell that runs, so that its step is recorded as interrupted, and end the run."""
        self._stop = self._stop or why
        self._interrupting = asyncio.ensure_future(self._interrupt())

    async def _interrupt(self) -> None:
        with contextlib.suppress(RuntimeError, OSError):  # it is gone already
            await self._client.km.interrupt_kernel()

    @contextlib.contextmanager
    def _signals(self) -> Any:
        """SIGINT and SIGTERM end the run in order: whoever stops a job must not lose what had finished."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(RuntimeError, ValueError):  # not the main thread: then nobody sends them here
            loop.add_signal_handler(signal.SIGINT, self._halt, Ended.INTERRUPTED)
            loop.add_signal_handler(signal.SIGTERM, self._halt, Ended.TERMINATED)
        yield

    def _save(self) -> None:
        try:
            replace_text(self._order.output, _written(self._order.book) + "\n")
            self.unsaved = None
        except OSError as error:  # cells go on: what they did is recorded, and the next one may find room again
            detail = f"cannot be written: {error.strerror or type(error).__name__}"
            self.unsaved = WrongFileError(where=self._order.output, detail=detail, case="output")


@contextlib.contextmanager
def _off_the_network(manager: Any) -> Iterator[None]:
    """Let a kernel talk through sockets in a folder of the user's own, which goes at the end.

    Nobody else on the machine or the network can listen. Where no folder's path is short enough, it stays TCP. The
    path is absolute: the kernel, in the notebook's folder, and its client here must mean the same.
    """
    with contextlib.ExitStack() as held:
        for parent in (tempfile.gettempdir(), "/tmp") if os.name == "posix" else ():  # noqa: S108 - mkdtemp: 0700
            with contextlib.suppress(OSError):
                folder = tempfile.TemporaryDirectory(prefix="keel-", dir=parent, ignore_cleanup_errors=True)
                sockets = os.path.abspath(os.path.join(held.enter_context(folder), _SOCKET))
                if len(os.fsencode(f"{sockets}-00")) <= _SOCKET_PATH:
                    manager.transport, manager.ip = "ipc", sockets
                    break
        yield


def _written(book: Any) -> str:
    """The notebook as it goes to disk: a credential among the parameters is for the kernel only (C103)."""
    import nbformat  # noqa: PLC0415 - comes with nbclient

    injected = [(cell, cell.source) for cell in book.cells if INJECTED_TAG in cell.metadata.get("tags", ())]
    try:
        for cell, source in injected:
            cell.source = redacted(source)
        text: str = nbformat.writes(book)
    finally:
        for cell, source in injected:
            cell.source = source
    return text


def own_lines(outputs: list[Any]) -> tuple[str, ...]:
    """What keel itself said among the outputs of a cell."""
    lines = (line for out in outputs if out.get("name") == "stderr" for line in out["text"].splitlines())
    return tuple(line for line in lines if own_line(line))


_FRAME = re.compile(r"\s*Cell In\[\d+\], line (\d+)")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def raised_in(outputs: list[Any]) -> tuple[str, int]:
    """What the error among the outputs of a cell says, its first line, and the line of the cell that led to it.

    Of an error in a function that another cell defines, that is the line of this cell which called it.
    """
    for out in outputs:
        if out.get("output_type") == "error":
            text = _COLOUR.sub("", "\n".join(out.get("traceback", ())))
            found = next((frame for line in text.splitlines() if (frame := _FRAME.match(line))), None)
            said = redacted(str(out.get("evalue", ""))).strip()
            return said.partition("\n")[0], int(found[1]) if found else 0
    return "", 0


def replace_text(path: Path, text: str) -> None:
    """Put a text at ``path``: whoever looks sees the old file or the new one, never a part. Raises OSError."""
    target = Path(os.path.realpath(path))
    scratch = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        scratch.write_text(text, "utf-8")
        with contextlib.suppress(FileNotFoundError):
            os.chmod(scratch, os.stat(target).st_mode & 0o7777)
        os.replace(scratch, target)
    finally:
        scratch.unlink(missing_ok=True)
