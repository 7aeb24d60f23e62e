"""Parameters of a notebook as papermill understands them, and the flow that a set of them stands for (C78, K1).

The cell tagged ``parameters`` holds defaults; given values go into a cell tagged ``injected-parameters`` right below
it, whose first line is ``# Parameters``. Pure: text and plain values only.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from keel_notebook.core.ids import text_digest
from keel_notebook.core.secrets import looks_secret
from keel_notebook.core.sources import names_in
from keel_notebook.errors import SettingsError

COMMENT = "# Parameters"
"""The first line of a cell whose values choose the record."""
DEFAULTS_TAG, INJECTED_TAG = "parameters", "injected-parameters"
_READABLE = 60
"""Characters of a key that are still good to read; a longer one is shortened and told apart by a digest."""


def typed(text: str) -> bool | int | float | str | None:
    """The value that a word on a command line means: as papermill reads ``-p``."""
    match text:
        case "True":
            return True
        case "False":
            return False
        case "None":
            return None
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def named(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Parameters by name; of a name given twice the last counts. Raises SettingsError for what is no name."""
    for name, _ in pairs:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise SettingsError(where=f"parameter {name}", detail="is not a name that a cell can bind")
    return dict(pairs)


def cell_source(parameters: Mapping[str, Any]) -> str:
    """The text of the injected cell."""
    lines = (f"{name} = {_literal(value)}" for name, value in parameters.items())
    return "\n".join([COMMENT, *lines]) + "\n"


def _literal(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


class Place(Struct, frozen=True):
    """Where the injected cell goes: before the cell at ``at``, or instead of it."""

    at: int
    instead: bool
    defaults: int | None
    """The cell with the defaults, if one is tagged."""


def place(tags: Sequence[Sequence[str]]) -> Place:
    """Where the injected cell goes in a notebook whose cells carry these tags."""
    injected = next((at for at, own in enumerate(tags) if INJECTED_TAG in own), None)
    defaults = next((at for at, own in enumerate(tags) if DEFAULTS_TAG in own), None)
    if injected is not None:
        return Place(injected, True, defaults)
    return Place(0 if defaults is None else defaults + 1, False, defaults)


def unknown(parameters: Mapping[str, Any], defaults: str) -> list[str]:
    """Parameters that the cell with the defaults does not bind: most likely a slip of the pen."""
    return sorted(parameters.keys() - names_in(defaults).binds)


def slip(
    parameters: Mapping[str, Any], defaults: str | None, cells: Sequence[str]
) -> tuple[str, frozenset[str]] | None:
    """A parameter that nothing in the notebook knows, and the names that may have been meant; None where there is none.

    Known is what the cell with the ``defaults`` binds, and what any of the ``cells`` mentions: papermill allows a
    parameter without a default.
    """
    bound = names_in(defaults).binds if defaults is not None else frozenset().union(*(names_in(c).binds for c in cells))
    for name in parameters:
        if name not in bound and not any(re.search(rf"\b{name}\b", cell) for cell in cells):
            return name, frozenset(bound)
    return None


def choose_record(source: str) -> bool:
    """Whether the values that a cell binds choose the record, instead of differing from it."""
    lines = (line.strip() for line in source.splitlines())
    return next((line for line in lines if line), "") == COMMENT


def flow_key(parameters: Mapping[str, Any], key: str = "") -> str:
    """The key of the flow that a parameter set stands for: a pure function of names, values and ``key`` (K1).

    Short ones can be read (``alpha=0.1, n=3``). A credential is no part of it: a new token is not a new sweep, and
    the key is written into the journal.
    """
    told = {name: parameters[name] for name in sorted(parameters) if not looks_secret(name, parameters[name])}
    text = ", ".join(f"{name}={_literal(value)}" for name, value in told.items())
    if len(text) > _READABLE or not text.isprintable():
        text = f"{', '.join(told)[:_READABLE]} #{text_digest('parameters', text)[:12]}"
    return "; ".join(part for part in (key, text) if part)
