"""A real kernel of any Python, for tools that are compared."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpec

LIMIT_S = 60.0
"""A cell that takes longer has failed."""


class Kernel:
    """A real kernel of some Python."""

    def __init__(self, folder: Path, command: Sequence[str], env: Mapping[str, str]) -> None:
        self.manager = KernelManager()
        self.manager._kernel_spec = KernelSpec(argv=[*command, "-f", "{connection_file}"], language="python")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("KEEL_", "PYTHON"))}
        home = {
            "HOME": str(folder / "home"),
            "IPYTHONDIR": str(folder / "ipython"),
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        }
        home |= {"JPY_SESSION_NAME": str(folder / "a.ipynb"), "XDG_CONFIG_HOME": str(folder / "config")}
        (folder / "home").mkdir(exist_ok=True)
        quiet = subprocess.DEVNULL
        self.manager.start_kernel(cwd=str(folder), env={**kept, **home, **env}, stdout=quiet, stderr=quiet)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=120)

    def run(self, source: str, timeout: float = LIMIT_S) -> tuple[list[tuple[str, str]], str]:
        """What a cell showed, and its error. Raises TimeoutError."""
        shown: list[tuple[str, str]] = []
        error = ""

        def see(message: dict[str, Any]) -> None:
            nonlocal error
            content, kind = message["content"], message["msg_type"]
            if kind == "stream" and content["name"] == "stdout":
                shown.append((kind, content["text"]))
            elif kind in {"display_data", "execute_result"}:
                shown.append(
                    ("image" if "image/png" in content["data"] else kind, content["data"].get("text/plain", ""))
                )
            elif kind == "error":
                error = f"{content['ename']}: {content['evalue']}"

        self.client.execute_interactive(source, output_hook=see, timeout=timeout, allow_stdin=False)
        return shown, error

    def ask(self, expression: str) -> str:
        """What an expression prints, or the name of its error."""
        shown, error = self.run(f"print({expression})")
        return error.partition(":")[0] if error else "".join(text for kind, text in shown if kind == "stream").strip()

    def control(self, kind: str) -> None:
        """Send a message on the control channel and wait for its answer."""
        message = self.client.session.msg(kind, {})
        self.client.control_channel.send(message)
        while self.client.get_control_msg(timeout=120)["parent_header"].get("msg_id") != message["header"]["msg_id"]:
            pass

    def peak_mb(self) -> float:
        """The most memory that it ever used."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024

    @property
    def pid(self) -> int:
        """Its process."""
        return int(self.manager.provisioner.pid)  # type: ignore[union-attr]

    def kill(self) -> None:
        """SIGKILL."""
        self.client.stop_channels()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.manager.shutdown_kernel(now=True)
