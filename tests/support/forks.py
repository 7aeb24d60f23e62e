"""A notebook whose every Run All is a shell in a fresh forked process: a restart for a few milliseconds."""

from __future__ import annotations

import re
from pathlib import Path

from tests.crash.shells import Run, Zygote
from tests.support.notebook import HIT, LOAD


class Book:
    """Cells, separated by ``# ---``, and a folder with a journal."""

    def __init__(self, zygote: Zygote, folder: Path, cells: str) -> None:
        self._zygote = zygote
        self.folder = folder
        self.cells = [part.strip("\n") for part in re.split(r"^# ---.*$", cells, flags=re.M)]

    def run_all(self, *more: str) -> Run:
        """All cells from the top in a new process, and then ``more``; stops at an error."""
        return self._zygote.run(self.folder, [LOAD, HIT, *self.cells, *more])

    def run_all_after(self, *first: str) -> Run:
        """All cells in a new process, after others that are no cells of the notebook."""
        return self._zygote.run(self.folder, [LOAD, HIT, *first, *self.cells])

    def shows(self, *more: str) -> str:
        """What the last cell of a whole run prints."""
        run = self.run_all(*more)
        assert not run.error, run.error
        return run.printed[-1].strip()

    def edit(self, at: int, old: str, new: str) -> None:
        """Change the source of a cell."""
        assert old in self.cells[at]
        self.cells[at] = self.cells[at].replace(old, new)

    @property
    def hits(self) -> str:
        """Real executions, in order, outside the journal: ``"load fit fit"``."""
        path = self.folder / "hits.txt"
        return " ".join(path.read_text().split()) if path.exists() else ""
