"""Writes that something begins which must not happen twice, and takes that back where it could not be acknowledged."""

from __future__ import annotations

import contextlib

from msgspec.structs import replace

from keel_notebook.core.model import Entry, Problem, Status
from keel_notebook.core.ports import Clock, Journal
from keel_notebook.errors import KeelError


def announce(entry: Entry, journal: Journal, clock: Clock) -> None:
    """Write the entry, power-safe, before the body (Z4). Raises what the journal raises: then nothing has begun.

    A sync that fails or stands still (Z24) comes after the write: the intent would stand, and a person would be asked
    about something that never happened.
    """
    try:
        journal.append(entry, synced=True)
    except (KeelError, KeyboardInterrupt) as error:
        code = error.code if isinstance(error, KeelError) else ""
        problem, why = Problem(type(error).__qualname__, code), "not acknowledged, so it did not begin"
        back = replace(entry, status=Status.FAILED, ended_at=clock.now(), error=problem, why=why)
        with contextlib.suppress(KeelError):  # where nothing can be written, the intent was not either
            journal.append(back)
        raise
