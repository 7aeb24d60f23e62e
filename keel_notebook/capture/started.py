"""What a kernel was like when keel came: what plain cells set since then may be an input of a step (DESIGN 6)."""

from __future__ import annotations

import locale
import os

STARTED: dict[str, str] = {}
"""The environment variables of that moment."""
_locale: list[str] = []


def note_start() -> None:
    """Remember this moment, once per process."""
    if not _locale:
        STARTED.update(os.environ)
        _locale.append(locale.setlocale(locale.LC_ALL))


def locale_at_start() -> str:
    """The locale of that moment; empty where nobody noted it."""
    return _locale[0] if _locale else ""
