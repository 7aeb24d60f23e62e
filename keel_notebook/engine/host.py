"""Who records the durable calls of this process. Imports nothing: the session sets it when keel is loaded."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from keel_notebook.engine.calls import Calls
    from keel_notebook.engine.scope import StepScope


class Host(Protocol):
    """The kernel that records: asked at the first durable call of a cell."""

    def calls(self, *, needed: bool) -> Calls | None:
        """What carries durable calls out. None: nothing is recorded now (KEEL_MODE=off, no journal); run plainly.

        ``needed``: the call must not run without a journal. Then, and in replay mode, raises what the journal raises;
        else the host tells the person that calls are not durable.
        """

    def plain_scope(self) -> StepScope:
        """The implicit step of the plain cell that is running; the same one for all of its calls."""


class _Process:
    host: Host | None = None


def install(host: Host | None) -> None:
    """Let durable calls of this process be recorded by ``host``; None: let them run plainly."""
    _Process.host = host


def installed() -> Host | None:
    """Who records the durable calls of this process."""
    return _Process.host


def _in_child() -> None:
    install(None)  # a forked child computes; it records nothing


os.register_at_fork(after_in_child=_in_child)
