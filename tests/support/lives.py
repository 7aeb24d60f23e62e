"""Many small notebooks as one, in forked shells: what a plain kernel prints, and what keel prints, live and replayed.

A ``Case`` is what stands above a step, the step, and a cell below that prints what came of it. All cases of a table
run in one shell, one after the other, each in an emptied namespace; the truth is what the same cells print without
keel. A shell is forked from a warm process, so that a whole table costs less than one kernel.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.crash.shells import Zygote

_FIRST = """
def clean():
    for name in list(globals()):
        if not name.startswith("_") and name not in keep: del globals()[name]
keep = {"keep"} | set(globals())
"""
_TABLE = """
import json as _json, keel_notebook as _keel
print(_json.dumps({step["name"]: step["decision"] for step in _keel.status().to_dict()["steps"]}))
"""


@dataclass(frozen=True)
class Case:
    """One small notebook around one step."""

    name: str
    above: str
    step: str
    below: str
    executes: bool = False
    """Whether the step has to execute again in every life, because no record could bring back what it does."""
    edit: tuple[str, str] | None = None
    """An edit of ``above``, for tables about edits."""

    def cells(self, *, edited: bool = False) -> list[str]:
        """The cells, the last one empties the namespace."""
        above = self.above.replace(*self.edit) if edited and self.edit else self.above
        return [above or "pass", f"%%keel_step {self.name}\n{self.step}", self.below, "clean()"]


def cases(table: Path) -> list[Case]:
    """The cases of a file: a head ``== name [executes] [edit OLD => NEW]`` and three cells with ``--`` between
    them. ``#`` starts a heading."""
    found = []
    for part in re.split(r"^== ", table.read_text(), flags=re.M)[1:]:
        head, _, body = part.partition("\n")
        words, _, edit = head.partition(" edit ")
        name, *more = words.split()
        cells = re.split(r"^--\n", re.sub(r"^#.*\n", "", body, flags=re.M), flags=re.M)
        above, step, below = (cell.strip("\n") for cell in cells)
        old, _, new = edit.partition(" => ")
        assert old in above
        found.append(Case(name, above, step, below, "executes" in more, (old, new) if old else None))
    return found


@dataclass(frozen=True)
class Life:
    """What one shell showed: what the cell below each step printed, what keel decided, what it said."""

    printed: dict[str, str]
    decided: dict[str, str]
    said: dict[str, str]


def truth(zygote: Zygote, folder: Path, cases: Sequence[Case], *, edited: bool = False) -> dict[str, str]:
    """What the cells print in a plain shell."""
    cells = [cell.partition("\n")[2] if cell.startswith("%%keel_step") else cell for cell in _cells(cases, edited)]
    return _below(cases, zygote.run(folder, [_FIRST, *cells]).printed[1:])


def life(zygote: Zygote, folder: Path, cases: Sequence[Case], *, edited: bool = False) -> Life:
    """A shell with keel, on the journal in the folder."""
    run = zygote.run(folder, ["%load_ext keel_notebook", _FIRST, *_cells(cases, edited), _TABLE])
    assert run.code == 0, run
    told = [cell["err"] for cell in run.acknowledged[2:-1]]
    said = {case.name: told[4 * at + 1] for at, case in enumerate(cases)}
    return Life(_below(cases, run.printed[2:-1]), json.loads(run.printed[-1]), said)


def lives_before_and_after_the_edit(zygote: Zygote, folder: Path, cases: Sequence[Case]) -> Life:
    """Live and once more, both as without keel, only ``executes`` cases executing again; then the life after the edit.

    Asserts that every edit shows without keel, and that each life prints what a plain shell prints.
    """
    for name in ("plain", "edited", "keel"):
        (folder / name).mkdir()
    before = truth(zygote, folder / "plain", cases)
    after = truth(zygote, folder / "edited", cases, edited=True)
    assert {name for name in before if before[name] == after[name]} == set()
    assert life(zygote, folder / "keel", cases).printed == before
    again = life(zygote, folder / "keel", cases)
    assert again.printed == before
    executed = {name for name, decision in again.decided.items() if decision == "executed"}
    assert executed == {case.name for case in cases if case.executes}
    edited = life(zygote, folder / "keel", cases, edited=True)
    assert edited.printed == after
    return edited


def _cells(cases: Iterable[Case], edited: bool) -> list[str]:
    return [cell for case in cases for cell in case.cells(edited=edited)]


def _below(cases: Sequence[Case], printed: Sequence[str]) -> dict[str, str]:
    return {case.name: printed[4 * at + 2] for at, case in enumerate(cases)}
