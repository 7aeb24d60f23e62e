"""Names that a restore gives back though they are not what the notebook would hold now: said, never passed as current.

Pure. Whoever asks for a name gets the newest value that a record holds; whose code it is of, and when it was made,
goes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from keel_notebook.core.entries import RECORDS
from keel_notebook.core.model import Entry
from keel_notebook.core.restore import Holdings, Lost, called
from keel_notebook.core.sources import same_code
from keel_notebook.core.why import near


def spelled_out(
    names: Sequence[str], holding: Holdings, entries: Sequence[Entry]
) -> tuple[tuple[str, ...], tuple[Lost, ...]]:
    """The variables that are asked for, a step's name taken for those that it made; and what is neither.

    A variable comes before a step of the same name.
    """
    variables = holding.recorded.keys() | {item.name for item in holding.lost}
    steps = {entry.step for entry in entries if entry.step and entry.kind in RECORDS}
    found: dict[str, None] = {}
    unknown: list[Lost] = []
    for name in names:
        if name in variables:
            found[name] = None
        elif made := sorted(one for one, entry in holding.recorded.items() if entry.step == name and name in steps):
            found |= dict.fromkeys(made)
        elif name in steps:
            unknown.append(Lost(name, "a step that no record holds a variable of"))
        else:
            unknown.append(Lost(name, "nothing is recorded under this name" + near(name, [*variables, *steps])))
    return tuple(found), tuple(unknown)


def former(
    source: Mapping[str, Entry],
    holding: Holdings,
    entries: Sequence[Entry],
    *,
    written: Callable[[str], str | None],
    when: Callable[[float], str],
) -> tuple[Lost, ...]:
    """The names among those that come back whose value is not current, each with where it is from and why.

    Args:
        source: the names, and the records that hold them.
        holding: what the newest run held.
        entries: all of the flow, in the order written.
        written: the cell of a step in the notebook's file; None where nobody knows.
        when: writes a time for people.
    """
    newest = {entry.step: entry.source for entry in entries if entry.kind in RECORDS and entry.source}
    lost = {item.name: item.reason for item in holding.lost}
    found = []
    for name, entry in sorted(source.items()):
        code = written(entry.step) or newest.get(entry.step, "") if entry.step else ""
        held = holding.held.get(name)
        if code and not same_code(entry.source, code):
            why = f"{called(entry)} has been edited since"
        elif held is not None and held.entry == entry.entry:
            continue
        elif name in lost:
            why = f"no record holds what it was last; {lost[name]}"
        else:
            why = "the newest run did not have it"
        made = when(entry.ended_at or entry.started_at)
        found.append(Lost(name, f"as {called(entry)} left it in run {entry.run}, {made}: {why}"))
    return tuple(found)
