"""A notebook in a real kernel, run cell by cell as JupyterLab runs it, with every output kept."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import nbformat
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from nbformat import NotebookNode

STEP = re.compile(r"^(?:%%keel_step|#\s*keel:\s*step)\s+(\S+)", re.MULTILINE)
VALUES = Path(__file__).with_name("values.py")
CELL_TIMEOUT_S = 300


@dataclass
class CellRun:
    """What running one cell left: its outputs as a notebook file keeps them, and the seconds it took."""

    cell: str
    step: str
    outputs: list[NotebookNode] = field(default_factory=list)
    seconds: float = 0.0
    finished: bool = False


class KernelDiedError(Exception):
    """The kernel went away while a cell ran."""


class LiveNotebook:
    """One kernel for one notebook file, in the notebook's folder. A context manager: leaving it ends the kernel."""

    def __init__(self, notebook: Path, *, log: Path, **env: str) -> None:
        self.cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
        self._manager = KernelManager(kernel_name="python3")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KEEL_")}
        # Jupyter Server tells a kernel in JPY_SESSION_NAME which document it belongs to. An IPYTHONDIR of its own keeps
        # the start-up files of whoever runs this out of it.
        environment |= {"JPY_SESSION_NAME": str(notebook), "IPYTHONDIR": str(log.parent / "ipython")} | env
        with log.open("ab") as sink:
            self._manager.start_kernel(cwd=str(notebook.parent), env=environment, stdout=sink, stderr=sink)
        self._client: BlockingKernelClient = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=not self._manager.is_alive())

    @property
    def pid(self) -> int:
        """The kernel's process."""
        provisioner = self._manager.provisioner
        assert provisioner is not None
        return int(provisioner.pid)

    def kill(self) -> None:
        """SIGKILL, as the system does it to a kernel that took too much memory."""
        os.kill(self.pid, signal.SIGKILL)

    def run_all(self, *, on_text: Callable[[CellRun, str], None] | None = None) -> list[CellRun]:
        """Run every cell from the top. Stops after the first that did not finish, as Run All does."""
        runs: list[CellRun] = []
        for cell in self.cells:
            runs.append(self.run(cell, on_text=on_text))
            if not runs[-1].finished:
                break
        return runs

    def run(self, cell: NotebookNode, *, on_text: Callable[[CellRun, str], None] | None = None) -> CellRun:
        """Run one cell; ``on_text`` hears each piece of printed text while the cell is still running."""
        step = STEP.search(cell.source)
        run = CellRun(cell.id, step[1] if step else "")
        began = time.perf_counter()
        try:
            for message in self._messages(cell):
                _keep(run.outputs, message)
                if on_text and message["msg_type"] == "stream":
                    on_text(run, message["content"]["text"])
        except KernelDiedError:
            return run
        finally:
            run.seconds = time.perf_counter() - began
        run.finished = not any(output.output_type == "error" for output in run.outputs)
        return run

    def values(self) -> dict[str, str]:
        """Name to digest of everything that the notebook's cells made (``values.py``)."""
        source = f"__import__('runpy').run_path({str(VALUES)!r})['digests']"
        asked = {"values": f"{source}(get_ipython().user_ns, get_ipython().user_ns_hidden)"}
        reply = self._client.execute("", silent=True, user_expressions=asked, reply=True, timeout=CELL_TIMEOUT_S)
        answer = reply["content"]["user_expressions"]["values"]
        if answer["status"] != "ok":
            raise RuntimeError(f"the kernel cannot tell its values: {answer['ename']}: {answer['evalue']}")
        told: dict[str, str] = json.loads(ast.literal_eval(answer["data"]["text/plain"]))
        return told

    def _messages(self, cell: NotebookNode) -> Iterator[dict[str, Any]]:
        # JupyterLab names the cell in the request's metadata; KernelClient.execute has no room for it.
        content = {"code": cell.source, "silent": False, "store_history": True, "allow_stdin": False}
        request = self._client.session.msg("execute_request", content, metadata={"cellId": cell.id})
        self._client.shell_channel.send(request)
        sent = request["header"]["msg_id"]
        while True:
            message = self._next_message()
            if message["parent_header"].get("msg_id") != sent:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
            yield message
        # The reply comes on another channel; with it the cell has ended for the front end too.
        while self._client.get_shell_msg(timeout=CELL_TIMEOUT_S)["parent_header"].get("msg_id") != sent:
            pass

    def _next_message(self) -> dict[str, Any]:
        deadline = time.perf_counter() + CELL_TIMEOUT_S
        while time.perf_counter() < deadline:
            if self._client.iopub_channel.msg_ready():
                message: dict[str, Any] = self._client.get_iopub_msg(timeout=1)
                return message
            if not self._client.iopub_channel.socket.poll(100) and not self._manager.is_alive():
                raise KernelDiedError
        raise TimeoutError(f"no message from the kernel for {CELL_TIMEOUT_S} s")


def _keep(outputs: list[NotebookNode], message: dict[str, Any]) -> None:
    content = message["content"]
    match message["msg_type"]:
        case "stream" if outputs and outputs[-1].get("name") == content["name"]:
            outputs[-1].text += content["text"]
        case "stream" | "display_data" | "execute_result" | "error":
            outputs.append(nbformat.v4.output_from_msg(message))
        case "clear_output":
            outputs.clear()
        case _:
            pass  # status, execute_input: nothing that the cell shows
