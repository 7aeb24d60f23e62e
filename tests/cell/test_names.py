"""What a cell read and wrote, seen on a real shell before and after it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from keel_notebook.capture.definitions import NotebookDefinitions
from keel_notebook.capture.names import Changed, NameWatch
from keel_notebook.core.cellcode import parse_cell
from keel_notebook.core.fileholds import ABSENT
from keel_notebook.core.reads import CellNames, analyse
from tests.cell.shells import Digests, Unknown, run, shell


class Notebook:
    def __init__(self, made: Any) -> None:
        self.shell = made
        self.definitions = NotebookDefinitions(made)
        self.digests = Digests(self.definitions)
        self.watch = NameWatch(made, self.digests, self.definitions)

    def run(self, *cells: str) -> None:
        for cell in cells:
            run(self.shell, cell)

    def names(self, cell: str) -> CellNames:
        return analyse(parse_cell(self.shell.transform_cell(cell), transform=self.shell.transform_cell))

    def inputs(self, cell: str) -> set[str]:
        names = self.names(cell)
        return set(self.watch.reached(names.reads, names))

    def step(self, cell: str) -> Changed:
        names = self.names(cell)
        self.watch.reached(names.reads, names)
        snapshot = self.watch.before(names)
        self.run(cell)
        return self.watch.after(snapshot)


@pytest.fixture
def notebook() -> Iterator[Notebook]:
    with shell() as made:
        yield Notebook(made)


@pytest.mark.parametrize(
    ("before", "cell", "inputs"),
    [
        (["a = 1"], "b = a + missing", {"a", "missing"}),
        (["a = 1"], "b = len([a])\nprint(b, display, get_ipython)", {"a"}),
        (["len = 3"], "b = len", {"len"}),
        # C25: what functions of the notebook reach, as deep as it goes.
        (["k = 1", "def g(): return k", "def f(): return g()"], "y = f()", {"f", "g", "k"}),
        (["def f(): return f() + h"], "y = f", {"f", "h"}),
        (["k = 1", "class A:\n  def m(self): return k", "a = A()"], "y = a.m()", {"a", "k"}),
        # The cell's own names are no inputs of the functions that it calls after storing them.
        (["df = k = 1", "def plot(): return df, k"], "df = 2\nplot()", {"plot", "k"}),
        (["df = k = 1", "def plot(): return df, k"], "plot()\ndf = 2", {"plot", "k", "df"}),
        (
            ["df = 1", "def plot(): return show()", "def show(): return df"],
            "df = 2\nplot()\nx = show",
            {"plot", "show"},
        ),
        (["df = 1", "def plot(): return df"], "h = plot\ndf = 2\nplot()", {"plot", "df"}),
        # Traps 5.
        (
            ["import types\nclass DataFrame: pass", "df, t = DataFrame(), 3"],
            "q = sql('from df where v > $t')",
            {"df", "t", "sql"},
        ),
        (["class DataFrame: pass", "df = DataFrame()", "q = 'select * from df'"], "r = run(q)", {"df", "q", "run"}),
        (
            ["class DataFrame: pass", "df = DataFrame()", "def f(): return sql('from df')"],
            "r = f()",
            {"df", "f", "sql"},
        ),
        (["a = 1", "b = [2]"], "eval(code)", {"a", "b", "code"}),
        (["a = 1", "def f(): return globals()"], "f()", {"a", "f"}),
        (["1 + 1"], "x = _ + 1", {"_"}),
        # What a cell reads only after its own loop is no input, unless it may be changed in place.
        (["n, loss = 1, 0.5"], "for e in range(n): loss = e\nprint(loss)", {"n"}),
        (["n, loss = 1, 0.5"], "for e in range(n): loss = e\nlog.append(loss)", {"n", "log"}),
        (["n, hist = 1, [1]"], "for e in range(n): hist = [e]\nhist.append(1)", {"n", "hist"}),
        (["n, loss = 1, 0.5"], "for e in range(n): loss = e\ntry: loss\nexcept NameError: pass", {"n", "loss"}),
    ],
)
def test_inputs(notebook: Notebook, before: list[str], cell: str, inputs: set[str]) -> None:
    notebook.run(*before)
    assert notebook.inputs(cell) - {"types", "DataFrame"} == inputs


def test_a_missing_name_is_a_known_state(notebook: Notebook) -> None:
    names = notebook.names("y = missing")
    assert notebook.watch.reached(names.reads, names)["missing"].digest == ABSENT


@pytest.mark.parametrize(
    ("before", "cell", "expected"),
    [
        ("", "x = 1", Changed(written=("x",))),
        ("x = 1", "x = 1", Changed(written=("x",))),
        ("a = [1]", "b = a", Changed(written=("b",))),
        ("x = 1", "del x", Changed(deleted=("x",))),
        ("", "tmp = 1\ndel tmp", Changed(deleted=("tmp",))),
        ("x = [1]", "x.append(2)", Changed(written=("x",), in_place=("x",))),
        ("x = [1]\ny = x", "x.append(2)", Changed(written=("x", "y"), in_place=("x", "y"))),
        ("x = [1]\ny = x", "x = x + [2]", Changed(written=("x",))),
        ("x = [1]\ny = x", "x.append(2)\nx = 3", Changed(written=("x", "y"), in_place=("y",))),
        ("x = [1]\nboxes = {'a': [x]}", "x.append(2)", Changed(written=("boxes", "x"), in_place=("boxes", "x"))),
        ("x = [1]\nboxes = [x, [2]]", "boxes[0].append(2)", Changed(written=("boxes", "x"), in_place=("boxes", "x"))),
        ("x = [1]\nz = [2]", "len(x)", Changed()),
        ("n = [0]\ndef f(): n[0] += 1", "f()", Changed(written=("n",), in_place=("n",))),
        ("def f():\n  global n\n  n = 1", "f()", Changed(written=("n",))),
        ("x = 1\nflag = False", "if flag: x = 1", Changed(ambiguous=("x",))),
        ("x = 1\nflag = True", "if flag: x = 1", Changed(ambiguous=("x",))),
        ("x = 1\nflag = True", "if flag: x = 2", Changed(written=("x",))),
        ("flag = False", "if flag: x = 1", Changed()),
        ("x = 1\nflag = True", "if flag:\n  x = 1\n  y = []", Changed(written=("x", "y"))),
        ("x = 1\ny = 5\nflag = False", "if flag:\n  x = 1\n  y = []", Changed(ambiguous=("x", "y"))),
        ("x = 1\nflag = True", "if flag: x = 1\nelse: y = []", Changed(ambiguous=("x",))),
        ("x = 1", "try:\n  x = 1\n  y = []\nexcept E: pass", Changed(written=("y",), ambiguous=("x",))),
        ("n = 1\ndef f():\n  global n\n  n = 1", "f()", Changed(ambiguous=("n",))),
        ("x = [1]\nflag = 1", "if flag: x = x\nx.append(2)", Changed(written=("x",), in_place=("x",))),
        ("n = 2", "for i in range(n): loss = i\nprint(loss)", Changed(written=("i", "loss"))),
        ("n = 0\nloss = 5", "for i in range(n): loss = i\nprint(loss)", Changed(ambiguous=("loss",))),
        ("", "1 + 1", Changed()),
        ("", "_ = 3", Changed(written=("_",))),
        ("", "exec('made = 1')", Changed(written=("made",))),
        ("name = 'made'", "globals()[name] = 1", Changed(written=("made",))),
        ("", "from math import pi, e as euler", Changed(written=("euler", "pi"))),
        ("x = {1: 2}", "for k in x: pass\ndel k", Changed(deleted=("k",))),
    ],
)
def test_what_a_cell_wrote(notebook: Notebook, before: str, cell: str, expected: Changed) -> None:
    notebook.run(before)
    assert notebook.step(cell) == expected


def test_a_star_import_writes_what_it_binds(notebook: Notebook) -> None:
    written = notebook.step("from math import *").written
    assert {"sqrt", "pi"} <= set(written)


def test_using_a_value_that_cannot_be_digested_is_not_writing_it(notebook: Notebook) -> None:
    notebook.shell.user_ns["client"] = Unknown()
    assert notebook.step("client.x = 1") == Changed()


@pytest.mark.parametrize("cell", ["big = big.copy()", "if flag: big = big.copy()", "del big"])
def test_the_old_value_is_not_kept_alive(notebook: Notebook, cell: str) -> None:
    notebook.run("class Big:\n  def copy(self): return Big()", "big, flag = Big(), True")
    alive = weakref.ref(notebook.shell.user_ns["big"])
    names = notebook.names(cell)
    notebook.watch.reached(names.reads, names)
    snapshot = notebook.watch.before(names)
    notebook.run(cell)
    notebook.digests.asked.clear()
    gc.collect()
    assert alive() is None
    changed = notebook.watch.after(snapshot)
    assert (changed.written, changed.deleted) == (((), ("big",)) if cell == "del big" else (("big",), ()))


def test_a_value_that_went_and_left_none_behind_was_bound_again(notebook: Notebook) -> None:
    notebook.run("class Big: pass", "big, flag = Big(), True")
    assert notebook.step("if flag: big = None").written == ("big",)


def test_numbers_and_texts_are_not_digested_again(notebook: Notebook) -> None:
    notebook.run("a, b, c = 1, 'x', [1]")
    names = notebook.names("d = f'{a}{b}{len(c)}'")
    notebook.watch.reached(names.reads, names)
    snapshot = notebook.watch.before(names)
    notebook.digests.asked.clear()
    notebook.watch.after(snapshot)
    assert notebook.digests.asked == [[1]]


def test_an_array_that_is_only_looked_at_is_not_digested_again(notebook: Notebook) -> None:
    notebook.run("import numpy as np\nx = np.zeros(3)\ny = np.zeros(3)")
    names = notebook.names("m = float(x.mean()) + len(x); y.sort()")
    notebook.watch.reached(names.reads, names)
    snapshot = notebook.watch.before(names)
    notebook.digests.asked.clear()
    notebook.watch.after(snapshot)
    assert [value is notebook.shell.user_ns["y"] for value in notebook.digests.asked] == [True]


def test_views_of_one_array_change_together(notebook: Notebook) -> None:
    notebook.run("import numpy as np\nx = np.zeros(4)\nv = x[:2]\nw = x[1:]\nz = np.zeros(4)")
    assert notebook.step("v[:] = 1").written == ("v", "w", "x")


def test_aliases(notebook: Notebook) -> None:
    notebook.run("a = [1]\nb = a\nc = [1]\nd = c")
    assert sorted(notebook.watch.aliases(["a", "missing"])) == [("a", "b")]
    assert sorted(notebook.watch.aliases(["a", "c"])) == [("a", "b"), ("c", "d")]


def test_a_module_that_the_cell_imports_is_an_input_by_its_file(
    notebook: Notebook, tmp_path: Any, monkeypatch: Any
) -> None:
    # C28: the cell binds `helper28` itself, so the name alone is no input.
    (tmp_path / "helper28.py").write_text("import below28\ndef f(): return 1\n")
    (tmp_path / "below28.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    cell = "import json, helper28\ny = helper28.f()"
    names = notebook.names(cell)
    first = notebook.watch.reached(names.reads, names)
    assert set(first) == {"helper28.py"}
    (tmp_path / "below28.py").write_text("x = 2\n")
    assert notebook.watch.reached(names.reads, names)["helper28.py"] != first["helper28.py"]


def test_objects_of_one_model_change_together_and_frames_do_not(notebook: Notebook) -> None:
    notebook.run(
        "class Model: pass\nclass Opt: pass",
        "model, opt = Model(), Opt()\nmodel.w = [1.0]\nopt.params = [model.w]",
        "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})\ncopy = df[['a']]\ncol = df['a']\nip = get_ipython()",
    )
    assert notebook.step("model.w[0] = 2.0").written == ("model", "opt")
    assert notebook.step("df['b'] = 1").written == ("df",)


def test_proxies_that_refuse_to_tell_do_not_matter(notebook: Notebook) -> None:
    refuse = "  @property\n  def {}(self): raise RuntimeError\n"
    notebook.run(
        "class Proxy:\n" + refuse.format("__dict__") + refuse.format("__class__"),
        "p, box = Proxy(), [1]",
    )
    assert notebook.step("box.append(len([p]))").written == ("box",)
