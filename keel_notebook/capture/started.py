"""What a kernel was like when keel came: what plain cells set since then may be an input of a step (DESIGN 6)."""

from __future__ import annotations

import functools
import locale
import os
import time

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


@functools.cache
def process_started() -> float:
    """When this process began, seconds since the epoch; rather too early than too late.

    Asked only where something happened before keel came. On Linux by the kernel's own clock, in hundredths of a second:
    what psutil says there is counted from a boot time in whole seconds.
    """
    try:
        with open("/proc/self/stat", "rb") as stat:
            ticks = int(stat.read().rpartition(b")")[2].split()[19])
        since_boot = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        import psutil  # noqa: PLC0415 other systems

        return float(psutil.Process().create_time())
    return time.clock_gettime(time.CLOCK_REALTIME) - since_boot
