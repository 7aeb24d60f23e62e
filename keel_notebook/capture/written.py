"""What the cells of this kernel did to files since keel was loaded, steps and plain cells alike (DESIGN 6, Files).

A step whose product somebody else changed is only told so; one whose product a cell of this very kernel wrote anew
executes, because a plain Run All ends with what the step writes. Two roads: the audit hook names what Python changes,
with the cell; native code and child processes are known by the time at which a file changed: it lies in a cell's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from msgspec import Struct

from keel_notebook.capture.audit import FILES, Args, unwatch, watch
from keel_notebook.capture.started import process_started
from keel_notebook.core.rewritten import Rewritten

_TICK_NS = 10_000_000
"""File systems stamp with a clock that ticks: a stamp may be older than the change by so much."""
_CHANGES = frozenset({"write", "append", "remove", "rename"})
_NAMED_BY = frozenset(FILES) - {"open", "os.listdir", "os.scandir", "sqlite3.connect", "os.mkdir"}
_MOST = 100_000
Stamp = tuple[int, ...]
"""As in ``core.filerules``: (size, mtime_ns, ctime_ns, inode)."""
_WITH_THE_PROCESS = -1
"""When a cell began that nobody saw begin: no sooner than this process. Asked late, for `%load_ext` costs nothing."""


class _Cell(Struct):
    """A cell of this kernel: what a person calls it, and when it ran."""

    name: str
    began: int
    ended: int = 0


class _Change(Struct, frozen=True):
    at: int
    how: str
    cell: _Cell


_THREAD = _Cell("a thread of this kernel", 0)


class Written:
    """Notes which files this process changes, and when each cell ran. All times are wall time in nanoseconds."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._anew: dict[str, _Change] = {}
        """By absolute path: its last change through Python but for appending to it."""
        self._appended: dict[str, _Change] = {}
        self._read: dict[str, _Change] = {}
        """Of the products of steps alone."""
        self._products: dict[str, Stamp | None] = {}
        """How the files stood that steps of this kernel left."""
        self._cells: list[_Cell] = []
        self._cell = _THREAD
        self._stood: dict[str, int] = {}

    def start(self, *, ran_before: bool) -> None:
        """Note from now on. ``ran_before``: cells ran in this kernel already, and nobody knows what they wrote."""
        self.stop()
        self._forget()
        if ran_before:
            self._cells.append(_Cell("a cell that ran before keel was loaded", _WITH_THE_PROCESS, time.time_ns()))
        watch(self)

    def stop(self) -> None:
        """Note no longer. Safe to call twice."""
        unwatch(self)

    def begins(self, cell: str) -> None:
        """A cell begins; ``cell`` is what a person calls it."""
        self._cell = _Cell(cell, time.time_ns())

    def ends(self) -> None:
        """It ended, and its record is written."""
        if self._cell is not _THREAD:
            self._cell.ended = time.time_ns()
            self._cells.append(self._cell)
            self._cell = _THREAD

    def stands(self, step: str, products: Mapping[str, Stamp | None]) -> None:
        """The running cell is this step, and its files are now as it leaves them: it was executed or replayed.
        ``products``: those that it wrote, absolute, as they stand."""
        self._stood[step] = time.time_ns()
        if self._cell is not _THREAD:
            self._cell.name = f"step {step}"
        self._products.update(products)

    def changed_here(self, stands: Callable[[str], Stamp | None]) -> dict[str, bool]:
        """The files that steps of this kernel left and that the running cell changed, absolute; and whether it surely
        wrote them anew, without having opened them for anything else as far as Python knows."""
        found = {}
        for full, stamp in self._products.items():
            now = stands(full)
            if now is None or now == stamp:
                continue
            self._products[full] = now
            by = [noted.get(full) for noted in (self._anew, self._appended, self._read)]
            anew, *others = (change is not None and change.cell is self._cell for change in by)
            if anew or any(others) or max(now[1:3]) >= self._cell.began - _TICK_NS:
                found[full] = anew and not any(others)
        return found

    def note(self, event: str, args: Args) -> None:
        """Called by the audit hook. Never raises: that would undo what the cell does."""
        try:
            if event == "open":
                if not (self._products or args[2] & (os.O_WRONLY | os.O_RDWR)):
                    return
            elif event not in _NAMED_BY:
                return
            for how, path in FILES[event](args):
                if isinstance(path, int):
                    continue
                full = os.path.abspath(os.fsdecode(path))
                noted = self._appended if how == "append" else self._read if how == "read" else self._anew
                if len(noted) < _MOST and (how in _CHANGES or (how == "read" and full in self._products)):
                    noted[full] = _Change(time.time_ns(), how, self._cell)
        except Exception:  # noqa: BLE001 - a path that is none: nothing was changed
            return

    def since(self, full: str, step: str) -> Rewritten | None:
        """Who in this kernel changed a file (absolute) after ``step`` last left it, as far as can be told."""
        stood = self._stood.get(step, 0)
        if (change := self._changed_anew(full)) is not None and change.at > stood:
            return Rewritten(change.cell.name, anew=True)
        if (change := self._appended.get(full)) is not None and change.at > stood:
            return Rewritten(change.cell.name, appended=True)
        try:
            found = os.stat(full)
        except (OSError, ValueError):
            return None
        content, other = (self._ran_at(at, stood) for at in (found.st_mtime_ns, found.st_ctime_ns))
        if content or other:
            return Rewritten(content or other, surely=bool(content))
        return None

    def _changed_anew(self, full: str) -> _Change | None:
        """The last change of a file but for appending; a folder that was moved or removed takes its files along."""
        last = self._anew.get(full)
        folder = os.path.dirname(full)
        while folder != os.path.dirname(folder):
            change = self._anew.get(folder)
            if change is not None and (last is None or change.at > last.at):
                last = change
            folder = os.path.dirname(folder)
        return last

    def _ran_at(self, at: int, stood: int) -> str:
        """The cell that ran when a file was stamped, if that was after a step left it."""
        if at <= stood - _TICK_NS:
            return ""
        ran = (each for each in reversed(self._cells) if each.ended > stood)
        return next((each.name for each in ran if _began(each) - _TICK_NS <= at <= each.ended), "")


def _began(cell: _Cell) -> int:
    return int(process_started() * 1e9) if cell.began == _WITH_THE_PROCESS else cell.began


WRITTEN = Written()
"""Of this process."""
