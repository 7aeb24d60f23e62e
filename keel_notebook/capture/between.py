"""Which cell needs a file as a step leaves it, before a step below changes it (DESIGN 6, Files).

On a replay of all of them the file stays as the last one left it, and nobody misses the state between. But a plain
cell between them runs and would read the later state, and so would a step that was edited since: then the step above
executes. Nothing is opened here: what the cells name tells.
"""

from __future__ import annotations

import fnmatch
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

from msgspec import Struct

from keel_notebook.capture.definitions import NotebookDefinitions
from keel_notebook.capture.mentions import mentions
from keel_notebook.capture.notebookfile import NotebookFile
from keel_notebook.core.cellcode import parse_cell
from keel_notebook.core.fileholds import PLAIN
from keel_notebook.core.fingerprint import code_digest
from keel_notebook.core.model import Digest
from keel_notebook.core.reads import CellNames, analyse
from keel_notebook.core.sources import body


class Between(Struct, frozen=True):
    """Asks the notebook's file, or where nobody tells which that is, the plain cells of the last run."""

    file: NotebookFile
    namespace: Mapping[str, Any]
    definitions: NotebookDefinitions
    transform: Callable[[str], str]

    def readers(
        self,
        step: str,
        last: Mapping[str, str],
        code_of: Callable[[str], Digest | None],
        ran: Callable[[str], Sequence[str]],
    ) -> dict[str, str]:
        """By path, why a file is needed as ``step`` leaves it; a clause.

        Args:
            step: the step above.
            last: the step, or plain cell, that changed each file last, by path.
            code_of: the code of a step's newest record.
            ran: the plain cells that ran between ``step`` and another step in their last run.
        """
        found: dict[str, str] = {}
        for path, end in last.items():
            cells = self.file.between(step, end)
            if end.startswith(PLAIN):
                if not cells and self.file.cells():
                    found[path] = "the plain cell that changed it is gone"
                    continue
                cells = cells[:-1]  # that one reads nothing of it
            cells = cells or [("", source) for source in ran(end)]
            for why, names in self._that_run(cells, code_of):
                if self.names(names, path) if why else self._sees_anew(names, path):
                    found[path] = why or "a step between uses that module"
                    break
        return found

    def _that_run(
        self, cells: Iterable[tuple[str, str]], code_of: Callable[[str], Digest | None]
    ) -> Iterator[tuple[str, CellNames]]:
        for name, source in cells:
            try:
                parsed = parse_cell(self.transform(body(source)), transform=self.transform)
            except SyntaxError:
                continue
            if not name:
                yield "a plain cell between reads it", analyse(parsed)
            elif code_digest(parsed) != code_of(name):
                yield f"step {name} was edited", analyse(parsed)
            elif _RELOADING in sys.modules:
                yield "", analyse(parsed)

    def names(self, cell: CellNames, path: str) -> bool:
        """Whether a cell names a file for more than writing it anew."""
        said = mentions(cell.files, cell.reads, self.namespace, self.definitions)
        only_written = said.code.written - said.code.others
        meant = any(_is_meant(text, path) for text in said.asked.keys() - only_written)
        return meant or _is_among(cell.modules, path) or self._sees_anew(cell, path)

    def _sees_anew(self, cell: CellNames, path: str) -> bool:
        """Whether a cell uses what autoreload takes from a file before each cell."""
        if _RELOADING not in sys.modules or not path.endswith(".py"):
            return False
        values = [self.namespace[name] for name in cell.reads if name in self.namespace]
        modules = [value.__name__ for value in values if isinstance(value, ModuleType)]
        return _is_among([*modules, *(value.__module__ for value in values if type(value) in _FROM)], path)


_RELOADING = "IPython.extensions.autoreload"
_FROM = (FunctionType, type)


def _is_among(modules: Iterable[str], path: str) -> bool:
    """Whether the file is that of one of these modules, or of a package that one is in."""
    if not path.endswith(".py"):
        return False
    place = path.removesuffix(".py").replace(os.sep, "/").removesuffix("/__init__").split("/")
    for module in modules:
        parts = module.replace(":", ".").split(".")
        if any(place[-size:] == parts[:size] for size in range(1, len(parts) + 1)):
            return True
    return False


def _is_meant(text: str, path: str) -> bool:
    name = os.path.basename(path)
    return fnmatch.fnmatch(name, os.path.basename(text.rstrip("/"))) or fnmatch.fnmatch(path, text)
