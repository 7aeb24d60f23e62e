"""Random histories of a notebook, and the player that compares every Run All with the truth.

The truth: the same cells in a fresh process without keel, in a copy of the folder. Where the same notebook and files
were run to the end before, nothing may execute.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from tests.histories.kernels import Died, Kernel, Shown, Warm
from tests.histories.notebooks import FILES, SLOTS, Cell, filled, lines, notebooks, statements, with_constant

Do = tuple[Any, ...]
"""What a person does: a word of ``Player`` and its arguments."""


class History(Struct, frozen=True):
    """A notebook, the files beside it, and what happens."""

    cells: tuple[Cell, ...]
    files: dict[str, str]
    deeds: list[Do]

    def __repr__(self) -> str:
        texts = "\n# ---\n".join(cell.source(keel=True) for cell in self.cells)
        return "\n".join([texts, *(f"## {name}: {text!r}" for name, text in self.files.items()), *map(str, self.deeds)])


_at = st.integers(0, 7)
_digit = st.sampled_from(SLOTS["n"])
_step = st.integers(1, 7).map("s{}".format)
_few = st.one_of(
    st.tuples(st.just("run"), _at),
    st.tuples(st.just("run"), _at),
    st.tuples(st.just("run"), _at),
    st.tuples(st.just("say"), st.sampled_from(("%keel rerun {}", "%keel forget {}")), _step),
    st.tuples(st.just("say"), st.just("%keel restore"), st.just("")),
)
_edits = st.one_of(
    st.tuples(st.just("number"), _at, st.integers(0, 9), _digit),
    st.tuples(st.just("number"), _at, st.integers(0, 9), _digit),
    st.tuples(st.just("line"), _at, st.integers(0, 3), statements),
    st.tuples(st.just("add"), _at, statements),
    st.tuples(st.just("drop"), _at, st.integers(0, 3)),
    st.tuples(st.just("insert"), _at, lines, st.booleans()),
    st.tuples(st.just("delete"), _at),
    st.tuples(st.just("swap"), _at, _at),
    st.tuples(st.just("rename"), _at),
    st.tuples(st.just("step"), _at),
    st.tuples(st.just("comment"), _at),
    st.tuples(st.just("back")),
    st.sampled_from(sorted(FILES)).flatmap(lambda name: st.tuples(st.just("file"), st.just(name), filled(FILES[name]))),
)
_runs = st.one_of(
    st.tuples(st.just("run_all")),
    st.tuples(st.just("run_all")),
    st.tuples(st.just("dies_at_hit"), st.integers(1, 5)),
    st.tuples(st.just("dies_at_write"), st.integers(1, 40)),
    st.tuples(st.just("session"), st.booleans(), st.lists(st.one_of(_few, _edits), min_size=1, max_size=5)),
    st.tuples(st.just("second"), _at),
    st.tuples(st.just("restore")),
)
_deeds = st.lists(st.one_of(_runs, _edits, _edits), min_size=1, max_size=7)
histories = st.builds(
    History, notebooks(), st.fixed_dictionaries({name: filled(text) for name, text in FILES.items()}), _deeds
)


@dataclass
class Player:
    """One history as it is played."""

    warm: Warm
    folder: Path
    cells: list[Cell]
    before: list[list[Cell]] = field(default_factory=list)
    """The notebook before each edit."""
    renamed: int = 0
    finished: set[tuple[Any, ...]] = field(default_factory=set)
    """Notebooks with their files that a Run All went through to the end, with nothing retired since."""
    truths: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)
    newest: dict[str, str] = field(default_factory=dict)
    """What the newest run left, if that was a whole one and nothing ran since."""

    def play(self, deed: Do) -> None:
        """Do one thing."""
        word, *args = deed
        getattr(self, word)(*args)

    # ---- runs

    def run_all(self) -> None:
        """Run All in a new process, and the comparison."""
        now, truth = self._now(), self._truth()
        with Kernel(self.warm, self.folder) as kernel:
            shown = self._through(kernel, self.cells)
            self._compare(kernel, shown, truth)
            self.newest = {} if shown[-1].error else truth["single"]
            known = now in self.finished
        failed = self.cells[len(shown) - 1].step if shown[-1].error else ""
        again = [name for name in kernel.hits if name != failed]
        assert not (known and again), f"executed for nothing: {again}"
        if self._now() == now or not failed:
            self.finished.add(now)

    def dies_at_hit(self, at: int) -> None:
        """Run All; the kernel dies in the body of the ``at``-th step that executes."""
        self._dies(at_hit=at)

    def dies_at_write(self, at: int) -> None:
        """Run All; the kernel dies at its ``at``-th write to the journal."""
        self._dies(at_write=at)

    def _dies(self, **how: int) -> None:
        self.newest = {}
        kernel = None
        try:
            kernel = Kernel(self.warm, self.folder, **how)
            self._through(kernel, self.cells)
        except Died:
            pass
        if kernel:
            kernel.close()

    def session(self, from_top: bool, deeds: Sequence[Do]) -> None:
        """One kernel in which cells run in any order and are edited between."""
        self.newest = {}
        with Kernel(self.warm, self.folder) as kernel:
            if from_top:
                self._through(kernel, self.cells)
            for word, *args in deeds:
                if word == "run" and self.cells:
                    kernel.run(self.cells[args[0] % len(self.cells)].source(keel=True))
                elif word == "say":
                    kernel.run(args[0].format(args[1]))
                    self.finished.clear()
                elif word != "run":
                    self.play((word, *args))

    def second(self, at: int) -> None:
        """Two kernels side by side: the second one runs everything while the first is in the middle."""
        truth = self._truth()
        self.newest = {}
        with Kernel(self.warm, self.folder) as one, Kernel(self.warm, self.folder) as two:
            shown = self._through(one, self.cells[:at])
            self._through(two, self.cells)
            if not (shown and shown[-1].error):
                shown += self._through(one, self.cells[at:])
            if not any("txt" in line for cell in self.cells for line in cell.lines):  # else they meet in the files
                self._compare(one, shown, truth)

    def restore(self) -> None:
        """``%keel restore`` in a new kernel: what comes back is what the newest run left."""
        if not self.newest:
            return
        with Kernel(self.warm, self.folder) as kernel:
            kernel.run("%keel restore")
            for name, value in kernel.picture()["single"].items():
                assert value == self.newest.get(name), f"restored {name}\n  is {value}\n  not {self.newest.get(name)}"

    def _through(self, kernel: Kernel, cells: Sequence[Cell], *, keel: bool = True) -> list[Shown]:
        shown: list[Shown] = []
        for cell in cells:
            shown.append(kernel.run(cell.source(keel=keel)))
            if shown[-1].error:
                break
        return shown

    def _truth(self) -> dict[str, Any]:
        if (now := self._now()) not in self.truths:
            self.truths[now] = self._without_keel()
        return self.truths[now]

    def _without_keel(self) -> dict[str, Any]:
        copy = self.folder.with_name(self.folder.name + "-truth")
        shutil.copytree(self.folder, copy, ignore=shutil.ignore_patterns(".keel"))
        try:
            with Kernel(self.warm, copy, keel=False) as kernel:
                shown = self._through(kernel, self.cells, keel=False)
                return {**kernel.picture(), "shown": shown, "files": _files(copy)}
        finally:
            shutil.rmtree(copy)

    def _compare(self, kernel: Kernel, shown: list[Shown], truth: dict[str, Any]) -> None:
        picture = kernel.picture()
        for at, (one, other) in enumerate(zip(shown, truth["shown"], strict=False)):
            _same(f"error of cell {at}", _plain(one.error), _plain(other.error))
            _same(f"print of cell {at}", _plain(one.printed), _plain(other.printed))
        for name in sorted({*picture["single"], *truth["single"]}):
            _same(f"value of {name}", picture["single"].get(name), truth["single"].get(name))
        # A step that was put back holds copies of what lies deep in objects of plain cells (docs/guarantees.md).
        if len(kernel.hits) == sum(bool(cell.step) for cell in self.cells[: len(shown)]):
            for name in sorted(picture["whole"]):
                _same(f"objects in {name}", picture["whole"][name], truth["whole"][name])
        _same("files", _files(self.folder), truth["files"])
        ran = [line for cell in self.cells[: len(shown) - bool(shown and shown[-1].error)] for line in cell.lines]
        for seed, state in truth["generators"].items():
            if any(line.startswith(seed) for line in ran):  # else each process has a state of its own
                _same(seed, picture["generators"][seed], state)

    def _now(self) -> tuple[Any, ...]:
        return (*((cell.step, cell.lines) for cell in self.cells), *_files(self.folder).items())

    # ---- edits

    def _edit(self, at: int, change: Callable[[Cell], Cell]) -> None:
        if self.cells:
            cells = list(self.cells)
            cells[at % len(cells)] = change(cells[at % len(cells)])
            self._becomes(cells)

    def _becomes(self, cells: list[Cell]) -> None:
        self.before.append(self.cells)
        self.cells = cells

    def number(self, at: int, which: int, digit: str) -> None:
        """Another number in a cell."""
        self._edit(at, lambda cell: with_constant(cell, which, digit))

    def line(self, at: int, which: int, text: str) -> None:
        """Another statement instead of one."""
        self._edit(at, lambda cell: replace(cell, lines=_put(cell.lines, which % len(cell.lines), text)))

    def add(self, at: int, text: str) -> None:
        """One more statement at a cell's end."""
        self._edit(at, lambda cell: replace(cell, lines=(*cell.lines, text)))

    def drop(self, at: int, which: int) -> None:
        """One statement less."""
        self._edit(at, lambda cell: replace(cell, lines=_put(cell.lines, which % len(cell.lines), "pass")))

    def comment(self, at: int) -> None:
        """A comment more: the same code."""
        self._edit(at, lambda cell: replace(cell, lines=(*cell.lines, "# more")))

    def rename(self, at: int) -> None:
        """Another name for a step."""
        self.renamed += 1
        self._edit(at, lambda cell: replace(cell, step=cell.step and f"r{self.renamed}"))

    def step(self, at: int) -> None:
        """A plain cell becomes a step, a step a plain cell."""
        self.renamed += 1
        self._edit(at, lambda cell: replace(cell, step="" if cell.step else f"r{self.renamed}"))

    def insert(self, at: int, text: tuple[str, ...], step: bool) -> None:
        """A new cell."""
        self.renamed += 1
        self._becomes([*self.cells[:at], Cell(f"r{self.renamed}" if step else "", text), *self.cells[at:]])

    def delete(self, at: int) -> None:
        """A cell less; never the first, which imports."""
        if 1 <= at < len(self.cells):
            self._becomes([*self.cells[:at], *self.cells[at + 1 :]])

    def swap(self, one: int, other: int) -> None:
        """Two cells change places."""
        if self.cells and 0 not in (one := one % len(self.cells), other := other % len(self.cells)):
            cells = list(self.cells)
            cells[one], cells[other] = cells[other], cells[one]
            self._becomes(cells)

    def back(self) -> None:
        """The last edit is taken back."""
        if self.before:
            self.cells = self.before.pop()

    def file(self, name: str, text: str) -> None:
        """Somebody writes a file."""
        (self.folder / name).write_text(text)


def play(history: History, warm: Warm, folder: Path) -> None:
    """Play a history, and then Run All twice. Raises AssertionError where keel is not as it promises."""
    folder.mkdir()
    for name, text in history.files.items():
        (folder / name).write_text(text)
    player = Player(warm, folder, list(history.cells))
    try:
        for deed in [*history.deeds, ("run_all",), ("restore",), ("run_all",)]:
            player.play(deed)
    finally:
        shutil.rmtree(folder)


def _files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.suffix in (".txt", ".py")}


def _same(what: str, now: object, should: object) -> None:
    assert now == should, f"{what}\n  is {now}\n  not {should}"


def _put(texts: tuple[str, ...], at: int, text: str) -> tuple[str, ...]:
    return (*texts[:at], text, *texts[at + 1 :])


def _plain(text: str) -> str:
    return re.sub(r" at 0x[0-9a-f]+", " at 0x", text)
