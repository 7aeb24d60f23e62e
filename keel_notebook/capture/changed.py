"""What a cell did to the names of the notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field


class Changed(Struct, frozen=True, eq=False):
    """What a cell did to the namespace. Every tuple is sorted."""

    written: tuple[str, ...] = ()
    """Names bound again or changed in place."""
    deleted: tuple[str, ...] = ()
    in_place: tuple[str, ...] = ()
    """Of ``written``: names whose object stayed and whose content changed, and names that share parts with them."""
    ambiguous: tuple[str, ...] = ()
    """Names that a branch or loop may have bound, to the very object that they had before or not at all."""
    apart: tuple[str, ...] = ()
    """Names not in ``written`` that changed with others by memory which no record can make them share again: an
    array on a ``bytearray``."""
    patched: tuple[str, ...] = ()
    """Classes whose change is told by their attributes in ``written`` and ``deleted``: ``Cfg`` for ``Cfg.lr``."""
    unknown: tuple[str, ...] = ()
    """What changed and nobody can name or put back."""
    unsure: tuple[str, ...] = ()
    """Names whose object stayed, may have been changed in place, and was too large to be looked at."""
    objects: Mapping[str, Any] = field(default_factory=dict)
    """Which names shared objects before, as ``core.sharing`` compares it; no part of what changed."""

    def __eq__(self, other: object) -> bool:
        told = [name for name in self.__struct_fields__ if name != "objects"]
        return isinstance(other, Changed) and all(getattr(self, name) == getattr(other, name) for name in told)

    __hash__ = None  # type: ignore[assignment]  # it holds maps
