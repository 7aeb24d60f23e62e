"""A large editable package costs only where it is reached: what is asked of files and parsed is counted (DESIGN 10)."""

from __future__ import annotations

import ast
import builtins
import importlib
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from keel_notebook.capture.ambient_modules import ModuleGlobals
from keel_notebook.capture.definitions import NotebookDefinitions
from keel_notebook.capture.loads import unwatch_loads, watch_loads
from keel_notebook.capture.modules import LoadedModules
from tests.cell.shells import run, shell

SOURCE = """import PACKAGE.part{before} as other
LIMIT = 3
ROWS = [1, 2]
class Options:
    depth = 1
OPTIONS = Options()
"""


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """How often files were asked for or opened, and sources parsed, by the function that does it."""
    asked: Counter[str] = Counter()
    names = {os.stat: "stat", os.lstat: "stat", builtins.open: "open", builtins.compile: "parse"}

    def note(frame: FrameType, event: str, what: Any) -> None:
        if event == "c_call" and what in names:
            asked[names[what]] += 1

    sys.setprofile(note)
    try:
        yield asked
    finally:
        sys.setprofile(None)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes and imports packages of so many modules, each of which imports the one before it."""
    monkeypatch.syspath_prepend(tmp_path)
    made: list[str] = []

    def make(count: int, package: str = "") -> str:
        name = f"pack{count}_{tmp_path.name}"
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(package)
        for at in range(count):
            (tmp_path / name / f"part{at}.py").write_text(
                SOURCE.replace("PACKAGE", name).format(before=at - 1) if at else "LIMIT = 3\n"
            )
        importlib.invalidate_caches()
        importlib.import_module(f"{name}.part{count - 1}")
        made.append(name)
        return name

    yield make
    unwatch_loads()
    for name in [each for each in sys.modules if each.partition(".")[0] in made]:
        del sys.modules[name]


def loaded(here: Any) -> LoadedModules:
    """What a kernel knows whose process began after the files were written."""
    return LoadedModules(here, process_started=lambda: time.time() + 60)


@pytest.mark.parametrize("watched", [False, True])
def test_a_kernel_that_begins_parses_no_module_and_a_step_those_that_it_reaches(package: Any, watched: bool) -> None:
    if watched:
        watch_loads()
    name = package(30)
    with shell() as here:
        with counted() as asked:
            modules = loaded(here)
        assert asked["parse"] == 0
        with counted() as asked:
            assert modules.module(f"{name}.part4").digest is not None
        assert asked["parse"] == 6  # its package, itself, and the four before it
        with counted() as asked:
            assert modules.module(f"{name}.part4").digest is not None
        assert asked == {"stat": 6}


def test_modules_that_all_lead_to_each_other_are_looked_at_once_for_a_value_that_reaches_them_all(package: Any) -> None:
    name = package(30, "from . import " + ", ".join(f"part{at}" for at in range(30)))
    every = [f"{name}.part{at}" for at in range(30)]
    with shell() as here:
        modules = loaded(here)
        with counted() as asked:
            alone = [modules.module(each).digest for each in every]
        with counted() as together:
            ask = modules.at_once()
            assert [ask(each).digest for each in every] == alone
        assert len(set(alone)) == 30
        assert together == {"stat": 31}
        assert asked["parse"] == 31


def test_a_cell_that_loads_nothing_asks_for_no_file(package: Any) -> None:
    package(30)
    with shell() as here:
        NotebookDefinitions(here)
        run(here, "x = 1")
        with counted() as asked:
            run(here, "x = 2")
        few = asked["stat"]
        package(60)
        run(here, "x = 3")
        with counted() as asked:
            run(here, "x = 4")
        assert asked["stat"] == few


def test_what_a_step_sets_in_modules_is_found_without_asking_for_files(package: Any) -> None:
    package(30)
    state = ModuleGlobals()
    state.look()
    with counted() as asked:
        before = state.look()
        assert state.look() == before
    assert not asked


def test_a_module_that_nobody_asked_for_is_known_when_it_was_edited(package: Any, tmp_path: Path) -> None:
    name = package(2)
    path = tmp_path / name / "part1.py"
    with shell() as here:
        modules = loaded(here)
        path.write_text(path.read_text() + "def more(): return 1\n")
        found = modules.module(f"{name}.part1")
        assert (found.digest is not None, found.reason) == (True, "edited but not reloaded")


def test_a_reload_while_nobody_watched_is_noticed(package: Any, tmp_path: Path) -> None:
    watch_loads()
    name = package(1)
    path = tmp_path / name / "part0.py"
    with shell() as here:
        before = NotebookDefinitions(here).module(f"{name}.part0").digest
        assert before is not None
    unwatch_loads()
    path.write_text("LIMIT = 3\ndef more(): return 1\n")
    importlib.reload(sys.modules[f"{name}.part0"])
    watch_loads()
    with shell() as here:
        found = NotebookDefinitions(here).module(f"{name}.part0")
        assert found.digest != before
        assert found.reason != "edited but not reloaded"


def test_ast_parse_is_what_is_counted() -> None:
    with counted() as asked:
        ast.parse("x = 1")
    assert asked["parse"] == 1
