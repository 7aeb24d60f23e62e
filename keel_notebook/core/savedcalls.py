"""What a step that is not finished has already: durable calls whose results are recorded. Pure.

Whether a record holds, the call itself finds out when it is made again: its function may read something else by then.
So they are counted, and nobody is told that they will all come back.
"""

from __future__ import annotations

from collections.abc import Iterable

from keel_notebook.core.calls import calls_in
from keel_notebook.core.fileholds import same
from keel_notebook.core.model import Entry, Status
from keel_notebook.core.units import count


def saved_calls(entries: Iterable[Entry], step: str) -> int:
    """How many calls of a step are recorded with the code that their function had last. Calls inside of calls count
    with the outer one. ``entries``: those of the step, oldest first."""
    places = {place: found for place, found in calls_in(entries, step).calls.items() if "/" not in place[0]}
    newest: dict[str, Entry] = {}
    for (call, *_), found in places.items():
        if call not in newest or (found[0].run, found[0].seq) > (newest[call].run, newest[call].seq):
            newest[call] = found[0]
    return sum(any(_counts(entry, newest[call]) for entry in found) for (call, *_), found in places.items())


def _counts(entry: Entry, newest: Entry) -> bool:
    return entry.status is Status.OK and not entry.not_stored and same(entry.code, newest.code)


def with_saved(why: str, saved: int) -> str:
    """A clause with what is saved behind it: ``"it failed last time; 231 of its calls are saved"``."""
    if not saved:
        return why
    told = f"{count(saved, 'call')} of it {'is' if saved == 1 else 'are'} saved"
    return f"{why}; {told}" if why else told
