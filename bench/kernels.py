"""A kernel with a stopwatch."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
from jupyter_client import KernelManager

TIMEOUT_S = 600.0


class TimedKernel:
    """One real kernel in a folder; every cell is timed from request to idle."""

    def __init__(self, folder: Path) -> None:
        self.manager = KernelManager(kernel_name="python3")
        env = {k: v for k, v in os.environ.items() if not k.startswith("KEEL_")}
        env |= {"JPY_SESSION_NAME": str(folder / "bench.ipynb"), "IPYTHONDIR": str(folder / ".ipython")}
        self.manager.start_kernel(cwd=str(folder), env=env)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=TIMEOUT_S)

    def run(self, code: str) -> tuple[float, str]:
        """Seconds from request to idle, and what was printed. Raises RuntimeError where the cell fails."""
        printed: list[str] = []

        def show(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
                printed.append(message["content"]["text"])

        began = time.perf_counter()
        reply = self.client.execute_interactive(code, output_hook=show, timeout=TIMEOUT_S, allow_stdin=False)
        took = time.perf_counter() - began
        if reply["content"]["status"] != "ok":
            raise RuntimeError(f"{reply['content'].get('ename')}: {reply['content'].get('evalue')}")
        return took, "".join(printed)

    def ask(self, expression: str) -> Any:
        """The value of an expression, through JSON."""
        return json.loads(self.run(f"import json as _j; print(_j.dumps({expression}))")[1])

    def steps(self) -> dict[str, Any]:
        """The steps of ``keel.status()`` by name."""
        rows = self.ask("__import__('keel_notebook').status().to_dict()['steps']")
        return {row["name"]: row for row in rows}

    def peak_kib(self) -> int:
        """The most memory that the kernel ever used."""
        status = Path(f"/proc/{self.manager.provisioner.pid}/status").read_text()  # type: ignore[union-attr]
        return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])

    def cpu_s(self) -> float:
        """Processor time that the kernel's own process used so far, in seconds."""
        used = psutil.Process(self.manager.provisioner.pid).cpu_times()  # type: ignore[union-attr]
        return float(used.user + used.system)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.client.stop_channels()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.manager.provisioner.pid, signal.SIGKILL)  # type: ignore[union-attr]
        self.manager.shutdown_kernel(now=True)
