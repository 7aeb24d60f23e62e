"""Modules count by what was loaded, in a real kernel with real files (C28, C104, traps 9 and 16)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cell.cell_kernel import Kernel, started

pytestmark = pytest.mark.kernel

WATCH = (
    "from keel_notebook.capture.loads import watch_loads as _w; _w()\n"
    "from keel_notebook.capture.definitions import NotebookDefinitions as _N; _n = _N(get_ipython())"
)


class Folder:
    """A folder with modules and a kernel in it."""

    def __init__(self, path: Path, kernel: Kernel) -> None:
        self.path, self.kernel = path, kernel

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        before = path.stat().st_mtime_ns if path.exists() else 0
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        # What two saves by hand are: at least the clock's tick apart, so that Python itself sees them.
        os.utime(path, ns=(max(time.time_ns(), before + 2_000_000_000),) * 2)

    def run(self, cell: str) -> None:
        reply = self.kernel.run(cell)
        assert reply.status == "ok", reply.traceback

    def digest(self, module: str) -> str | None:
        return self.kernel.value(f"_n.module({module!r}).digest")

    def edited(self) -> list[str]:
        return self.kernel.value("_n.edited_not_reloaded()")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("modules")
    (folder / "early.py").write_text("x = 1\n")
    (folder / "late.py").write_text("x = 1\n")
    # The system tells the start of a process to the second: a file of the same second may be newer.
    written = (folder / "early.py").stat().st_ctime
    while time.time() < written + 1.1:
        time.sleep(0.05)
    with started(str(folder)) as kernel:
        kernel.folder = folder  # type: ignore[attr-defined]
        kernel.run("import early, late, time")
        (folder / "late.py").write_text("x = 222\n")
        kernel.run(WATCH)
        yield kernel


@pytest.fixture
def folder(kernel: Kernel) -> Folder:
    return Folder(kernel.folder, kernel)  # type: ignore[attr-defined]


def test_installed_modules_count_by_name(folder: Folder) -> None:
    found = {folder.digest(name) for name in ("json", "sys", "IPython", "traitlets.config", "collections.abc")}
    assert len(found) == 5
    assert None not in found


def test_what_is_no_module_is_unknown(folder: Folder) -> None:
    folder.run("import sys, types\nmade = types.ModuleType('made'); sys.modules['made'] = made")
    assert folder.digest("made") is None
    assert folder.digest("never_heard_of") is None
    assert folder.digest("__main__") is None


def test_c28_a_local_module_counts_by_its_code_loaded_or_not(folder: Folder) -> None:
    folder.write("m28.py", "def f(): return 1\n")
    unloaded = folder.digest("m28")
    folder.run("import m28")
    assert folder.digest("m28") == unloaded is not None


def test_c27_formatting_a_module_is_no_change(folder: Folder) -> None:
    folder.write("m27.py", "def f(): return 1\n")
    folder.run("import m27")
    before = folder.digest("m27")
    folder.write("m27.py", "# better\ndef f():\n    return 1\n")
    assert folder.digest("m27") == before
    assert "m27.py" not in folder.edited()


def test_what_a_module_imports_counts_too_loaded_or_not(folder: Folder) -> None:
    folder.write("pkg/__init__.py", "")
    folder.write("pkg/a.py", "from . import b\ndef f():\n    import deep\n    return b.x\n")
    folder.write("pkg/b.py", "x = 1\n")
    folder.write("deep.py", "y = 1\n")
    seen = {folder.digest("pkg.a")}
    folder.write("pkg/b.py", "x = 2\n")
    seen.add(folder.digest("pkg.a"))
    folder.write("deep.py", "y = 2\n")
    seen.add(folder.digest("pkg.a"))
    folder.write("pkg/__init__.py", "setting = 1\n")
    seen.add(folder.digest("pkg.a"))
    assert len(seen) == 4
    last = folder.digest("pkg.a")
    folder.run("import pkg.a")
    assert folder.digest("pkg.a") == last
    folder.run("pkg.a.f()")
    assert folder.digest("pkg.a") == last


def test_trap_9_an_edit_that_was_not_reloaded_is_a_state_of_its_own(folder: Folder) -> None:
    folder.write("m9.py", "def f(): return 1\n")
    folder.run("import m9, importlib")
    loaded = folder.digest("m9")
    folder.write("m9.py", "def f(): return 2\n")
    stale = folder.digest("m9")
    assert stale not in (loaded, None)
    assert "m9.py" in folder.edited()
    assert folder.digest("m9") == stale  # valid for the loaded source: the same question has the same answer
    folder.run("importlib.reload(m9)")
    reloaded = folder.digest("m9")
    assert reloaded not in (loaded, stale, None)
    assert "m9.py" not in folder.edited()
    folder.write("m9.py", "def f(): return 1\n")
    folder.run("importlib.reload(m9)")
    assert folder.digest("m9") == loaded


def test_trap_9_an_edit_while_the_importing_cell_still_runs_is_seen(folder: Folder) -> None:
    folder.write("m9b.py", "def f(): return 1\n")
    unloaded = folder.digest("m9b")
    folder.run(
        "import m9b, os, time\nopen('m9b.py', 'w').write('def f(): return 2\\n')\n"
        "os.utime('m9b.py', ns=(time.time_ns() + 3_000_000_000,) * 2)"
    )
    assert folder.digest("m9b") not in (unloaded, None)
    assert "m9b.py" in folder.edited()


def test_trap_9_a_module_that_the_cell_writes_and_imports_is_what_it_wrote(folder: Folder) -> None:
    folder.run("open('fresh.py', 'w').write('x = 1\\n')\nimport fresh")
    before = folder.digest("fresh")
    assert before is not None
    folder.write("fresh.py", "x = 2\n")
    assert folder.digest("fresh") not in (before, None)


def test_trap_9_of_before_keel_only_untouched_files_are_known(folder: Folder) -> None:
    assert folder.digest("early") is not None
    assert folder.digest("late") is None
    assert "late" in folder.kernel.value("_n.module('late').reason")


@pytest.mark.parametrize(
    "change", ["cfg.LR = 0.1", "cfg.PARAMS['a'] = 2", "cfg.NEW = 1", "del cfg.LR", "cfg.set_lr(0.1)"]
)
@pytest.mark.parametrize("apart", [True, False])
def test_trap_16_variables_of_a_module_count_when_they_were_changed(folder: Folder, change: str, apart: bool) -> None:
    folder.run("import sys; sys.modules.pop('cfg', None)")
    folder.write(
        "cfg.py", "import os\nLR = float('0.01')\nPARAMS = dict(a=1)\ndef set_lr(x):\n    global LR\n    LR = x\n"
    )
    plain = folder.digest("cfg")
    if apart:
        folder.run("import cfg")
        assert folder.digest("cfg") == plain
        folder.run(change)
    else:
        folder.run(f"import cfg\n{change}")
    assert folder.digest("cfg") not in (plain, None)


def test_trap_16_what_a_module_keeps_for_itself_does_not_count(folder: Folder) -> None:
    folder.write("memo.py", "_seen = {}\ndef f(x):\n    return _seen.setdefault(x, x)\n")
    folder.run("import memo")
    before = folder.digest("memo")
    folder.run("memo.f(3)")
    assert folder.digest("memo") == before


def test_a_failing_import_shows_no_frame_of_keel(folder: Folder) -> None:
    folder.write("broken.py", "x = 1\nraise ValueError('no')\n")
    reply = folder.kernel.run("import broken")
    assert reply.status == "error"
    assert "keel_notebook" not in reply.traceback
    assert "broken.py" in reply.traceback


@pytest.mark.parametrize("edit", ["def f(): return 2\nx = 1\n", "def f(): return 1\nx = 3\n"])
def test_c104_what_autoreload_brought_up_to_date_is_what_the_disk_says(folder: Folder, edit: str) -> None:
    folder.write("auto.py", "def f(): return 1\nx = 1\n")
    folder.run("import sys; sys.modules.pop('auto', None)")
    folder.run("%load_ext autoreload\n%autoreload 2")
    folder.run("import auto")
    before = folder.digest("auto")
    folder.write("auto.py", edit)
    folder.run("now = auto.f(), getattr(auto, 'x', None)")  # autoreload works before the cell
    assert folder.kernel.value("now") == (2 if "2" in edit else 1, 3 if "3" in edit else 1)
    assert "auto.py" not in folder.edited()
    assert folder.digest("auto") not in (before, None)
    folder.run("%autoreload 0")


def test_modules_loaded_between_keel_and_its_first_step_are_known(tmp_path: Path) -> None:
    (tmp_path / "soon.py").write_text("x = 1\n")
    with started(str(tmp_path)) as kernel:
        kernel.run("from keel_notebook.capture.loads import watch_loads as _w; _w()")
        (tmp_path / "soon.py").write_text("x = 222\n")
        kernel.run("import soon\nsoon.x = 3")
        (tmp_path / "soon.py").write_text("x = 4444\n")
        kernel.run(WATCH)
        assert kernel.value("_n.module('soon').digest") is not None
        assert kernel.value("_n.edited_not_reloaded()") == ["soon.py"]
