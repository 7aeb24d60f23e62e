"""State that has no name as an input of a step: what of it is compared, and in what words (DESIGN 6).

A record keeps, under ``INPUTS``, what its step used of that state, by group: global generators of random numbers that
were seeded, the working directory, environment variables, settings of libraries, the day. A setting that is as it
comes is not in it, so that a new version of a library is no difference. Values of environment variables are only
ever there as digests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from keel_notebook.core.model import Entry

INPUTS = "inputs"
"""The ``ambient`` key under which an entry keeps what its step used of the state that has no name."""

Settings = Mapping[str, str]
"""Setting to value, as short texts. What is as it comes is left out."""
Surroundings = Mapping[str, Settings]
"""The settings of every group."""

CWD, VARIABLES, FROM_START, DAY = "cwd", "environ", "environ since start", "day"
"""``VARIABLES`` are compared by value; ``FROM_START`` only where a cell has set them since the kernel started."""
CHILDREN = "environ of children"
"""Every variable that a cell has set since the kernel started: a child process inherits all of them."""
ELSE = " before it was put back"
"""Ends the name of a group that tells variables as they were before keel's own imports set them: both count."""
POLARS = "polars"
"""polars keeps its options in environment variables."""
PANDAS_SHOWN = "pandas display"
"""Options of pandas that only matter to what is shown."""
TOLD = "told"
"""What plain cells told libraries whose settings nobody can look at, by package."""
GENERATORS = ("random", "numpy.random", "torch.random")
STATE, SEED = "state", "seed"
UNSEEDED = "unseeded"
EVERYBODYS = frozenset({"decimal", "locale"})
"""Groups that any step may use without a trace."""

_NO_VARIABLE = "absent"
_BY_NAME = (VARIABLES, FROM_START, PANDAS_SHOWN, TOLD)
"""Groups of which a record keeps every name that its step asked for, and nothing else counts."""


class Differing(NamedTuple):
    """One thing that differs, as the parts of a ``Difference``."""

    name: str
    recorded: str = ""
    current: str = ""
    detail: str = ""


def wanted(records: Iterable[Entry]) -> dict[str, set[str]]:
    """The groups that these records speak of, with the names in them."""
    found: dict[str, set[str]] = {}
    for entry in records:
        for group, names in entry.ambient.get(INPUTS, {}).items():
            found.setdefault(group, set()).update(names)
    return found


def accepted(ambient: Mapping[str, Any], now: Surroundings) -> dict[str, Any]:
    """The ``ambient`` of a record once a person has said that it is right as things are now."""
    used = {group: now.get(group, kept) for group, kept in ambient.get(INPUTS, {}).items()}
    return {**ambient, INPUTS: used | {group: now[group] for group in EVERYBODYS & now.keys()}}


def differing(recorded: Surroundings, now: Surroundings, *, same_day: bool) -> Iterator[Differing]:
    """What a step used and finds otherwise now.

    Args:
        recorded: what the record keeps under ``INPUTS``.
        now: the same groups as they are now; one that is not there cannot be told, and unknown is never equal.
        same_day: whether the day of the record counts as today, because its run is gone on with.
    """
    return iter(dict.fromkeys(_differing(recorded, now, same_day=same_day)))  # a variable is in several groups


def _differing(recorded: Surroundings, now: Surroundings, *, same_day: bool) -> Iterator[Differing]:
    for group in sorted(recorded.keys() | (now.keys() & EVERYBODYS)):
        was, there = recorded.get(group, {}), now.get(group)
        if there is None:
            yield Differing(_subject(group), detail="cannot be compared")
        elif group in GENERATORS:
            yield from _generator(group, was, there)
        elif group != DAY or not same_day:
            yield from _settings(group, was, there, now.get(group + ELSE, {}))


def _generator(group: str, was: Settings, there: Settings) -> Iterator[Differing]:
    before, state = was.get(STATE), there.get(STATE)
    if before == state:
        return
    if before == UNSEEDED:
        yield Differing(group, detail="is seeded now (it was not)")
    elif state == UNSEEDED:
        yield Differing(group, detail="is not seeded any more")
    elif was.get(SEED) and there.get(SEED) and was[SEED] != there[SEED]:
        yield Differing(f"the seed of {group}", was[SEED], there[SEED])
    else:
        yield Differing(group, detail="starts from another state (its seed, or what was drawn since, changed)")


def _settings(group: str, was: Settings, there: Settings, other: Settings) -> Iterator[Differing]:
    for name in sorted(was.keys() | there.keys()):
        if group in _BY_NAME and name not in was:
            continue  # asked for by another record
        before, value = was.get(name, ""), there.get(name, "")
        if before in {value, other.get(name, value)}:
            continue
        if group in (VARIABLES, FROM_START, CHILDREN, POLARS):
            yield Differing(f"environment variable {name}", detail=_variable(before, value))
        elif group == TOLD:
            yield Differing(f"settings of {name}", detail="a plain cell calls something else of it now")
        else:
            yield Differing(_subject(group, name), before or "default", value or "default")


def _variable(before: str, value: str) -> str:
    if value == _NO_VARIABLE:
        return "is not set any more"
    return "is set now" if before == _NO_VARIABLE else "changed"


def _subject(group: str, name: str = "") -> str:
    match group:
        case "cwd":
            return "working directory"
        case "day":
            return "today's date"
        case "environ" | "environ since start" | "environ of children":
            return "environment variables"
        case "pandas display":
            return f"pandas {name}"
        case _:
            return f"{group} {name}" if name and name != group else group
