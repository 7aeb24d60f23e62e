"""What to say of a subcommand that `%keel` does not have: the one that was meant, or where it is to be had."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from keel_notebook.core.why import hint

IN_A_TERMINAL = frozenset({"disable", "enable", "explain", "fsck", "log", "mv", "resolve", "resume", "run", "show"})
"""Commands of `keel` that are none of `%keel`."""


def meant(name: str, known: Collection[str]) -> str:
    """What may have been meant with ``%keel NAME``, to be put behind "no such subcommand"."""
    near = difflib.get_close_matches(name, [*known, *IN_A_TERMINAL], n=1)
    if near and near[0] in IN_A_TERMINAL:
        return f"; in a terminal: `keel {near[0]}`"
    return hint(name, known, most=len(known))
