"""A real kernel for the tests of this folder, driven message by message."""

from __future__ import annotations

import contextlib
import queue
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.support.starting import start_kernel


@dataclass
class Reply:
    """What came back for one request."""

    content: dict[str, Any]
    messages: list[dict[str, Any]] = field(default_factory=list)

    @property
    def status(self) -> str:
        return str(self.content["status"])

    @property
    def text(self) -> str:
        streams = [m["content"]["text"] for m in self.messages if m["msg_type"] == "stream"]
        return "".join(streams)

    @property
    def traceback(self) -> str:
        lines = [line for m in self.messages if m["msg_type"] == "error" for line in m["content"]["traceback"]]
        return re.sub(r"\x1b\[[\d;]*m", "", "\n".join(lines))

    @property
    def result(self) -> str | None:
        shown = [m["content"]["data"]["text/plain"] for m in self.messages if m["msg_type"] == "execute_result"]
        return str(shown[-1]) if shown else None


class Kernel:
    """A kernel that runs cells one at a time."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager, self.client = manager, client

    def run(self, code: str, *, cell_id: str = "", interrupt_on: str = "", **options: Any) -> Reply:
        """Run a cell; ``interrupt_on`` is a printed text at which it is interrupted."""
        message = self.client.session.msg(
            "execute_request",
            {
                "code": code,
                "silent": options.get("silent", False),
                "store_history": options.get("store_history", True),
                "user_expressions": {},
                "allow_stdin": False,
                "stop_on_error": False,
            },
            metadata={"cellId": cell_id} if cell_id else {},
        )
        self.client.shell_channel.send(message)
        return self._collect(message["header"]["msg_id"], interrupt_on)

    def _collect(self, msg_id: str, interrupt_on: str) -> Reply:
        messages: list[dict[str, Any]] = []
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                message = self.client.get_iopub_msg(timeout=5)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") != msg_id:
                continue
            messages.append(message)
            if interrupt_on and message["msg_type"] == "stream" and interrupt_on in message["content"]["text"]:
                self.manager.interrupt_kernel()
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
        else:
            raise TimeoutError("the cell did not end")
        while True:
            reply = self.client.get_shell_msg(timeout=60)
            if reply["parent_header"].get("msg_id") == msg_id:
                return Reply(reply["content"], messages)

    def value(self, expression: str) -> Any:
        """The value of a plain expression in the kernel, fetched without any event of a cell."""
        return eval(self.run(f"print(repr({expression}))", silent=True, store_history=False).text)


@contextlib.contextmanager
def started(cwd: str) -> Iterator[Kernel]:
    manager, client = start_kernel(cwd=cwd)
    try:
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
