"""A kernel that answers: another process may take one of its ports before it does, and then a second one starts."""

from __future__ import annotations

from typing import Any

from jupyter_client import KernelManager

TIMEOUT_S = 60.0
_TRIES = 3


def start_kernel(**how: Any) -> tuple[KernelManager, Any]:
    """The manager and the client of a new kernel; ``how`` as ``KernelManager.start_kernel`` takes it."""
    for attempt in range(1, _TRIES + 1):
        manager = KernelManager(kernel_name="python3")
        manager.start_kernel(**how)
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=TIMEOUT_S)
        except RuntimeError:
            died = not manager.is_alive()
            client.stop_channels()
            manager.shutdown_kernel(now=True)
            if not died or attempt == _TRIES:
                raise
        else:
            return manager, client
    raise AssertionError("the last try either gave a kernel or raised")
