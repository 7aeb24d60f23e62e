"""Runs a cell's text inside a cell that is running: the code of an undo, while `%keel undo` waits for it."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any


def run_inside(shell: Any, source: str) -> BaseException | None:
    """Run a text as IPython runs a cell, and give its error.

    A text with a top-level ``await`` needs an event loop that waits for it, and the kernel's own is waiting for us: it
    runs in a thread with a loop of its own, and in the caller's context, so that its output belongs to the caller's
    cell. What a notebook bound to the kernel's loop (an open ``aiohttp`` client) cannot be awaited there.
    """
    if not _loop_runs() or not shell.should_run_async(source, transformed_cell=shell.transform_cell(source)):
        return _error(shell.run_cell(source))
    ended: list[Any] = []
    context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: ended.append(context.run(shell.run_cell, source)), name="keel-undo")
    thread.start()
    thread.join()
    return _error(ended[0])


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _error(result: Any) -> BaseException | None:
    found: BaseException | None = result.error_before_exec or result.error_in_exec
    return found
