"""Durations, sizes, ages and foreign text as people read them. Pure: the same in the kernel and on the command line."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime

_SPANS = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))
"""Each unit with the one below it, in seconds."""

_SIZES = ("B", "kB", "MB", "GB", "TB", "PB")

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(B|kB|MB|GB|TB|PB)?")

ELLIPSIS = "…"


def duration(seconds: float | None) -> str:
    """``0.4 ms``, ``12 ms``, ``3.2 s``, ``4 min 5 s``, ``3 h 2 min``, ``2 d 4 h``; a dash for None."""
    if seconds is None:
        return "-"
    if seconds < 0:
        return "-" + duration(-seconds)
    if seconds < 0.0995:
        return f"{seconds * 1000:.1f} ms" if seconds < 0.00995 else f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for span, unit, smaller, below in _SPANS:
        if whole >= span:
            tail = whole % span // smaller
            return f"{whole // span} {unit} {tail} {below}" if tail else f"{whole // span} {unit}"
    return f"{whole} s"


def size_b(text: str) -> int:
    """Bytes in ``20GB``, ``500 MB``, ``812``: powers of 1000. Raises ValueError for anything else."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError("a size reads like 500MB, 20GB or 1.5TB")
    return int(float(match[1]) * 1000 ** _SIZES.index(match[2] or "B"))


def size(count: int | None) -> str:
    """``0 B``, ``812 B``, ``2.1 MB``, ``1.0 GB``: powers of 1000, as disks are sold; a dash for None."""
    if count is None:
        return "-"
    value = float(count)
    for unit in _SIZES:
        if value < 999.5 or unit == _SIZES[-1]:
            break
        value /= 1000
    return f"{value:.1f} {unit}" if value < 9.95 and unit != "B" else f"{value:.0f} {unit}"


def age(seconds: float) -> str:
    """``just now``, ``12 min ago``, ``3 h ago``, ``5 d ago``. A time that lies ahead is said to be now."""
    if seconds < 45:
        return "just now"
    for span, unit, _, _ in _SPANS:
        if seconds >= span * 0.99:
            return f"{round(seconds / span)} {unit} ago"
    return "1 min ago"


def day_of(at: float) -> str:
    """The calendar day of a wall time, where this process runs."""
    return datetime.fromtimestamp(at, UTC).astimezone().date().isoformat()


def local_second(at: float) -> str:
    """A time as people here write it, to the second: ``2026-11-29 09:41:07``. ``at``: seconds since the epoch."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def count(number: int, noun: str) -> str:
    """``1 step``, ``3 steps``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def in_a_row(number: int) -> str:
    """``once``, ``3 times in a row``."""
    return "once" if number == 1 else f"{number} times in a row"


def one_line(text: str) -> str:
    """Foreign text made safe for one line of a terminal.

    Names and previews come from notebooks that others may have written. Line breaks, escape sequences and marks
    that change the direction of writing are shown as ``\\n``, ``\\x1b``, ``\\u202e``: nothing in a record can move
    the cursor, colour the screen or make a line read as another one.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _harmless(char) else _escaped(char) for char in text)


def _harmless(char: str) -> bool:
    # Joiners (Cf) inside emoji and Indic text are wanted; the other format marks can turn a line around.
    return unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} or char in "\u200c\u200d"


def _escaped(char: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char) or char.encode("unicode_escape").decode("ascii")


def middle(text: str, limit: int) -> str:
    """At most ``limit`` characters of a text, cut in the middle: names differ at their ends (``limit`` >= 3)."""
    if len(text) <= limit:
        return text
    keep = limit - len(ELLIPSIS)
    head = (keep + 1) // 2
    return text[:head] + ELLIPSIS + text[len(text) - (keep - head) :]


def ran_as(count: int) -> str:
    """What to call a plain cell that ran: by its prompt, as tracebacks do. "cell 7" is the seventh from the top."""
    return f"cell In[{count}]"


_BEFORE = re.compile(r"cell (\d+)")


def maker(producer: str) -> str:
    """The cell that made a value, as entries keep it, for people; older ones say "cell 7" of a prompt."""
    found = _BEFORE.fullmatch(producer)
    return ran_as(int(found[1])) if found else producer
