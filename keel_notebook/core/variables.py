"""What the KEEL_… variables say, read in one place: a value that cannot be read is refused, never passed over.

A job's author who misspells a setting must not find out in the morning that it did not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from keel_notebook.errors import SettingsError

MODES = ("live", "replay", "verify", "off")
"""``core.decide.Mode`` in words: importing it would cost `%load_ext` more than all the rest."""
ACROSS_RUNS = ("auto", "replay", "execute")
MOST_STEPS = 10_000
"""``core.flowstate.MOST_STEPS``, for the same reason."""

_YES, _NO = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})


def told(environ: Mapping[str, str], name: str) -> Any:
    """What a variable says, or what holds where it says nothing. Raises SettingsError (E001)."""
    text = environ.get(name, "").strip()
    read, default = _READ[name]
    if not text:
        return default
    try:
        return read(text)
    except ValueError as error:
        raise SettingsError(where=name, detail=f"{text!r} is not {error}") from None


def check(environ: Mapping[str, str]) -> None:
    """Read all of them. Raises SettingsError (E001)."""
    for name in _READ:
        told(environ, name)


def _one_of(words: tuple[str, ...]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return text

    return read


def _flag(text: str) -> bool:
    if text.lower() not in _YES | _NO:
        raise ValueError("1 or 0")
    return text.lower() in _YES


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("a whole number, 0 or more")
    return int(text)


def _budget(text: str) -> str:
    from keel_notebook.core.units import size_b  # noqa: PLC0415 - not at %load_ext, where nothing is said

    try:
        if text != "off":
            size_b(text)
    except ValueError:
        raise ValueError("a size like 5GB, or off") from None
    return text


_READ: Mapping[str, tuple[Callable[[str], Any], Any]] = {
    "KEEL_MODE": (_one_of(MODES), "live"),
    "KEEL_ACROSS_RUNS": (_one_of(ACROSS_RUNS), "auto"),
    "KEEL_STRICT": (_flag, False),
    "KEEL_FROZEN": (_flag, False),
    "KEEL_MOST_STEPS": (_count, MOST_STEPS),
    "KEEL_BUDGET": (_budget, ""),
}
"""Each variable that not every text fits: how it is read, and what holds without it."""
