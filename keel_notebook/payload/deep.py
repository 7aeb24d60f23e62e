"""Room for values that are nested deeper than the stack of the calling thread allows, such as a linked list."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

_STACK = 512 << 20
_DEPTH = 200_000


def with_deep_stack(call: Callable[[], Any]) -> Any:
    """The result of ``call``, run in a thread with a large stack. Raises what it raises."""
    outcome: list[Any] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
            failure.append(error)

    limit = sys.getrecursionlimit()
    size = threading.stack_size(_STACK)
    try:
        sys.setrecursionlimit(max(limit, _DEPTH))
        thread = threading.Thread(target=run, name="keel-deep")
        thread.start()
    finally:
        threading.stack_size(size)
    try:
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
    if failure:
        raise failure[0]
    return outcome[0]
