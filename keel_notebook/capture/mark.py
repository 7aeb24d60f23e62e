"""The input transformer: how a step's line becomes Python (DESIGN 4.1, C65). Pure text, safe to run at any time.

IPython transforms a cell twice for one execution, and again whenever somebody asks whether it is complete.
"""

from __future__ import annotations

import re
from textwrap import dedent

from keel_notebook.core.harmless import RUN_ONCE_MAGICS
from keel_notebook.core.options import Marker, find_marker

_CELL_MAGIC = re.compile(r"%%(\w\S*)")


def mark(lines: list[str]) -> list[str]:
    """The lines of a cell with its step line as a comment; every other cell as it is. The number of lines stays.

    A ``%%magic`` as the first line of the step's body becomes the one call that IPython would have made of it, had
    it stood in the first line of the cell.
    """
    marker = find_marker("".join(lines))
    if marker is None:
        return lines
    marked = list(marker.lines)
    if marker.magic:
        marked[marker.at] = f"# keel: step {marker.line}".rstrip() + "\n"
    at = _first_of_body(marked, marker.at + 1)
    if at is not None and (match := _CELL_MAGIC.match(marked[at].lstrip())) and "?" not in match[1]:
        marked[at:] = _called(marked[at:])
    return marked


def find_step(raw: str) -> Marker | None:
    """The step line of a cell as a person wrote it, also where it stands below ``%%time`` and its like."""
    marker = find_marker(raw)
    if marker is None and raw.lstrip().startswith("%%"):
        line, _, body = raw.lstrip().partition("\n")
        if line[2:].split()[0:1] and line[2:].split()[0] in RUN_ONCE_MAGICS:
            return find_marker(body)
    return marker


def _first_of_body(lines: list[str], start: int) -> int | None:
    for at in range(start, len(lines)):
        bare = lines[at].strip()
        if bare and not bare.startswith("#"):
            return at
    return None


def _called(lines: list[str]) -> list[str]:
    first, *rest = dedent("".join(lines)).splitlines(keepends=True)
    name, _, line = first[2:].rstrip().partition(" ")
    return [f"get_ipython().run_cell_magic({name!r}, {line!r}, {''.join(rest)!r})\n", *["\n"] * len(rest)]
