"""Tracebacks show the line of a step as its person wrote it, not as the comment that Python was given (``mark``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from keel_notebook.core.options import find_marker

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CELL = re.compile(r"^Cell In\[(\d+)\]", re.MULTILINE)
_NUMBERED = re.compile(r"\s*(?:-+>\s*)?\d+ (.*)")


def as_written(frame: str, cell: Callable[[int], str]) -> str:
    """One frame of a traceback with the step's line as it is in the cell. ``cell`` gives the text of a prompt."""
    found = _CELL.search(_COLOUR.sub("", frame))
    marker = find_marker(cell(int(found[1]))) if found is not None else None
    if marker is None or not marker.magic:
        return frame
    given, wrote = f"# keel: step {marker.line}".rstrip(), marker.lines[marker.at].strip()
    lines = frame.split("\n")
    for at, line in enumerate(
        lines
    ):  # not by its number: of a comprehension over lines IPython numbers them its own way
        numbered = _NUMBERED.match(_COLOUR.sub("", line))
        if numbered is not None and numbered[1].strip() == given:
            lines[at] = line.replace(given, wrote, 1)
    return "\n".join(lines)


class Tracebacks:
    """Stands where a shell shows its tracebacks."""

    def __init__(self) -> None:
        self._shell: Any = None

    def install(self, shell: Any) -> None:
        """Take the place. Whoever takes it later goes first and passes on here."""
        self._shell, show = shell, shell._showtraceback
        prompts = shell.history_manager

        def cell(prompt: int) -> str:
            kept: Sequence[str] = prompts.input_hist_raw if prompts is not None else ()
            return kept[prompt] if 0 < prompt < len(kept) else ""

        def shown(etype: Any, evalue: Any, stb: list[str]) -> Any:
            return show(etype, evalue, [as_written(frame, cell) for frame in stb])

        shown.keel_tracebacks = self  # type: ignore[attr-defined]
        shell._showtraceback = shown

    def uninstall(self) -> None:
        """Give the place back, where nobody took it since."""
        shell, self._shell = self._shell, None
        if getattr(vars(shell).get("_showtraceback") if shell is not None else None, "keel_tracebacks", None) is self:
            del shell._showtraceback
