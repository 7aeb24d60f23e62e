"""Who changed a file in this kernel after a step last left it. Imports next to nothing: `%load_ext` needs it."""

from __future__ import annotations

from msgspec import Struct


class Rewritten(Struct, frozen=True):
    """A file that a step left was changed in this kernel since."""

    by: str
    """The cell, as a person calls it."""
    surely: bool = True
    """Whether its content was changed; else only something about it (its mode, its name)."""
    anew: bool = False
    """Whether it was surely written anew, removed or replaced."""
    appended: bool = False
    """Whether it was surely only appended to. Where it is neither, nobody can tell."""
