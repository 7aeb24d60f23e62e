"""A notebook and its real kernel, driven as a notebook server drives one: session name, cell ids, queued cells.

``# ---`` separates the cells of a case. Nothing here knows how keel works: it sends cells and collects what a
person would see.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client import KernelManager

from tests.support.starting import start_kernel

LOAD = "%load_ext keel_notebook"
HIT = 'def hit(t):\n    with open("hits.txt", "a") as f: f.write(t + "\\n")'


@dataclass
class Shown:
    """What one run of a cell showed."""

    status: str
    outputs: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""
    count: int | None = None

    @property
    def text(self) -> str:
        """Everything printed to stdout, and the plain text of results."""
        parts = []
        for out in self.outputs:
            if out["output_type"] == "stream" and out["name"] == "stdout":
                parts.append(out["text"])
            elif out["output_type"] in {"execute_result", "display_data"}:
                parts.append(out["data"].get("text/plain", ""))
        return "".join(parts)

    @property
    def stderr(self) -> str:
        """Everything printed to stderr."""
        return "".join(o["text"] for o in self.outputs if o["output_type"] == "stream" and o["name"] == "stderr")


class KernelDied(Exception):
    """The kernel vanished while a cell ran."""


class Notebook:
    """Cells, a file, and at most one kernel at a time."""

    def __init__(
        self, folder: Path, cells: str | list[str], *, name: str = "a.ipynb", env: dict[str, str] | None = None
    ):
        self.folder = folder
        self.path = folder / name
        split = (
            [part.strip("\n") for part in re.split(r"^# ---.*$", cells, flags=re.M)]
            if isinstance(cells, str)
            else cells
        )
        self.cells = [LOAD, HIT, *split]
        self.ids = [f"cell-{at}" for at in range(len(self.cells))]
        self.env = env or {}
        self.named = True
        self.front_end = True
        """Whether a person could be asked something; nbclient and what builds on it say no."""
        self.shown: dict[int, Shown] = {}
        self.kernel: KernelManager | None = None
        self.client: Any = None
        self.save()

    def save(self) -> None:
        """Write the file, as an editor would."""
        book = nbformat.v4.new_notebook()
        book.cells = [
            nbformat.v4.new_code_cell(source, id=id_) for source, id_ in zip(self.cells, self.ids, strict=True)
        ]
        nbformat.write(book, self.path)

    # ---- the kernel

    def start(self) -> None:
        """Start a kernel in the notebook's folder."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("KEEL_")} | self.env
        env["IPYTHONDIR"] = str(self.folder / ".ipython")
        if self.named:
            env["JPY_SESSION_NAME"] = str(self.path)
        self.kernel, self.client = start_kernel(cwd=str(self.folder), env=env)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self.kernel is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._gone()

    def shutdown(self) -> None:
        """A shutdown on request, as the server does it."""
        if self.kernel is not None:
            self.client.stop_channels()
            self.kernel.shutdown_kernel(now=False)
            self.kernel = None

    def _gone(self) -> None:
        assert self.kernel is not None
        self.client.stop_channels()
        self.kernel.shutdown_kernel(now=True)
        self.kernel = None

    @property
    def pid(self) -> int:
        """The kernel's process."""
        return self.kernel.provisioner.pid

    def close(self) -> None:
        """End whatever runs."""
        if self.kernel is not None:
            self._gone()

    # ---- cells

    def run(self, at: int) -> Shown:
        """Run the case's cell number ``at`` (0 is the first cell after the two that every case has)."""
        return self._run(at + 2)

    def execute(self, source: str, *, cell_id: str = "", silent: bool = False) -> Shown:
        """Run a text that is no cell of the file."""
        message = {
            "code": source,
            "silent": silent,
            "store_history": not silent,
            "user_expressions": {},
            "allow_stdin": self.front_end,
            "stop_on_error": True,
        }
        sent = self.client.session.msg("execute_request", message)
        if cell_id:
            sent["metadata"]["cellId"] = cell_id
        self.client.shell_channel.send(sent)
        return self._collect(sent["header"]["msg_id"])

    def _run(self, at: int) -> Shown:
        if self.kernel is None:
            self.start()
        self.shown[at] = self.execute(self.cells[at], cell_id=self.ids[at])
        return self.shown[at]

    def run_all(self) -> list[Shown]:
        """A fresh kernel where there is none, and all cells from the top; stops at an error."""
        if self.kernel is None:
            self.start()
        shown = []
        for at in range(len(self.cells)):
            shown.append(self._run(at))
            if shown[-1].status != "ok":
                break
        return shown[2:]

    def rerun(self) -> list[Shown]:
        """«kill» «rerun»: a fresh kernel, Run All."""
        self.kill()
        return self.run_all()

    def edit(self, at: int, old: str, new: str) -> None:
        """Change the source of the case's cell ``at``."""
        assert old in self.cells[at + 2]
        self.cells[at + 2] = self.cells[at + 2].replace(old, new)
        self.save()

    def _collect(self, msg_id: str) -> Shown:
        shown = Shown("?")
        while True:
            message = self._next(self.client.get_iopub_msg)
            if message["parent_header"].get("msg_id") != msg_id:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            self._see(shown, kind, message)
        while True:
            reply = self._next(self.client.get_shell_msg)
            if reply["parent_header"].get("msg_id") == msg_id:
                shown.status = reply["content"]["status"]
                if shown.status == "error" and not shown.error:
                    shown.error = f"{reply['content'].get('ename')}: {reply['content'].get('evalue')}"
                return shown

    def _next(self, get: Any) -> Any:
        """The next message of a channel. Raises KernelDied where the kernel goes away before it comes."""
        while True:
            try:
                return get(timeout=1)
            except queue.Empty:
                if not self.kernel.is_alive():
                    raise KernelDied from None

    def _see(self, shown: Shown, kind: str, message: dict[str, Any]) -> None:
        content = message["content"]
        if kind == "execute_input":
            shown.count = content["execution_count"]
        elif kind == "clear_output":
            shown.outputs.clear()
        elif kind == "update_display_data":
            self._update(shown, content)
        elif kind in {"stream", "display_data", "execute_result", "error"}:
            self._add(shown, nbformat.v4.output_from_msg(message))
            if kind == "error":
                shown.error = f"{content['ename']}: {content['evalue']}"

    @staticmethod
    def _add(shown: Shown, output: dict[str, Any]) -> None:
        last = shown.outputs[-1] if shown.outputs else None
        if (
            output["output_type"] == "stream"
            and last
            and last["output_type"] == "stream"
            and last["name"] == output["name"]
        ):
            last["text"] += output["text"]
        else:
            shown.outputs.append(dict(output))

    @staticmethod
    def _update(shown: Shown, content: dict[str, Any]) -> None:
        for output in shown.outputs:
            if output.get("metadata") is not None and output["output_type"] == "display_data":
                output["data"] = content["data"]

    # ---- what the case asks

    @property
    def hits(self) -> str:
        """Real executions, in order, outside the journal: ``"load fit fit"``."""
        path = self.folder / "hits.txt"
        return " ".join(path.read_text().split()) if path.exists() else ""

    def journal(self) -> Path:
        """The journal's folder."""
        return self.folder / ".keel"

    def table(self) -> dict[str, dict[str, Any]]:
        """The steps of ``keel.status().to_dict()`` by name, asked in the kernel."""
        shown = self.execute("import json as _j, keel_notebook as _k; print(_j.dumps(_k.status().to_dict()))")
        return {step["name"]: step for step in json.loads(shown.text)["steps"]}
