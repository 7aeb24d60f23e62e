"""The code behind functions and classes: exactly the text that was executed, or nothing (C25, STYLE rule 10)."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keel_notebook.capture.definitions import IMPORTED, NotebookDefinitions
from tests.cell.shells import run, shell


class Notebook:
    def __init__(self, made: Any) -> None:
        self.shell = made
        self.definitions = NotebookDefinitions(made)

    def run(self, *cells: str) -> None:
        for cell in cells:
            run(self.shell, cell)

    def of(self, expression: str) -> Any:
        return self.definitions.of(eval(expression, self.shell.user_ns))

    def source(self, expression: str) -> str | None:
        found = self.of(expression)
        return None if found is None else found.source.strip()

    def reads(self, expression: str) -> set[str]:
        return set(self.of(expression).reads)


@pytest.fixture
def notebook() -> Iterator[Notebook]:
    with shell() as made:
        yield Notebook(made)


TWICE = (
    "def twice(f):\n  import functools\n  @functools.wraps(f)\n  def inner(*a): return f(*a) * factor\n  return inner"
)


@pytest.mark.parametrize(
    ("cell", "expression", "source"),
    [
        ("x = 1\ndef f():\n  return x  # why", "f", "def f():\n  return x  # why"),
        ("async def f(): return 1", "f", "async def f(): return 1"),
        ("f = lambda a: a + 1", "f", "lambda a: a + 1"),
        ("f, g = lambda: 1, lambda: 2", "f", "lambda: 1"),
        ("f, g = lambda: 1, lambda: 2", "g", "lambda: 2"),
        ("f = lambda: lambda: (1, lambda: 2)", "f", "lambda: lambda: (1, lambda: 2)"),
        ("f = lambda: lambda: (1, lambda: 2)", "f()", "lambda: (1, lambda: 2)"),
        ("f = lambda: lambda: (1, lambda: 2)", "f()()[1]", "lambda: 2"),
        ("f = [lambda i=i: i for i in range(2)][1]", "f", "lambda i=i: i"),
        ("é = {'ü': lambda: 'ä', 'ö': lambda: 'ß'}", "é['ö']", "lambda: 'ß'"),
        ("def f():\n  def g(): return 1\n  return g", "f()", "def g(): return 1"),
        (
            TWICE + "\nfactor = 2\n@twice\ndef f(x): return x",
            "f",
            "@functools.wraps(f)\ndef inner(*a): return f(*a) * factor",
        ),
        (TWICE + "\n@twice\ndef f(x): return x", "f.__wrapped__", "@twice\ndef f(x): return x"),
        ("import functools\n@functools.lru_cache\ndef f(x): return x", "f", "@functools.lru_cache\ndef f(x): return x"),
        ("import functools\ndef f(x): return x\ng = functools.partial(f, 1)", "g", "def f(x): return x"),
        ("class A:\n  def m(self): return 1", "A.m", "def m(self): return 1"),
        ("class A:\n  def m(self): return 1", "A().m", "def m(self): return 1"),
        ("class A:\n  @property\n  def p(self): return 1", "vars(A)['p']", "@property\ndef p(self): return 1"),
        ("class A:\n  @classmethod\n  def c(cls): return 1", "A.c", "@classmethod\ndef c(cls): return 1"),
        ("class A:\n  def m(self): return 1", "A", "class A:\n  def m(self): return 1"),
        ("class A:\n  x = 1\n  class B:\n    y = 2", "A.B", "class B:\n  y = 2"),
        ("def f():\n  class L:\n    def m(self): pass\n  return L", "f()", "class L:\n  def m(self): pass"),
        ("from enum import Enum\nclass E(Enum):\n  A = 1", "E", "class E(Enum):\n  A = 1"),
        ("%%time\ndef f(): return 1\nx = 2", "f", "def f(): return 1"),
        ("%time f = lambda: 1", "f", "lambda: 1"),
        ("%%capture\ndef f(): return 1", "f", "def f(): return 1"),
        ("%%time\nclass A:\n  x = 1", "A", "class A:\n  x = 1"),
        ("def gen(): yield 1", "gen", "def gen(): yield 1"),
    ],
)
def test_c25_the_source_is_that_of_this_very_definition(
    notebook: Notebook, cell: str, expression: str, source: str
) -> None:
    notebook.run(cell)
    assert notebook.source(expression) == source


DATACLASS = "from dataclasses import dataclass\n@dataclass\nclass P:\n  x: int = 1"


@pytest.mark.parametrize("method", ["P.__init__", "P.__repr__", "P.__eq__"])
def test_generated_methods_belong_to_their_class(notebook: Notebook, method: str) -> None:
    notebook.run(DATACLASS)
    assert notebook.source(method) == "@dataclass\nclass P:\n  x: int = 1"


@pytest.mark.parametrize(
    ("cell", "expression"),
    [
        ("exec('def f(): return 1')", "f"),
        ("f = eval('lambda: 1')", "f"),
        ("A = type('A', (), {'x': 1})", "A"),
        ("import json", "json.dumps"),
        ("f = len", "f"),
        ("f = 3", "f"),
    ],
)
def test_what_was_not_written_in_a_cell_has_no_definition(notebook: Notebook, cell: str, expression: str) -> None:
    notebook.run(cell)
    assert notebook.of(expression) is None


def test_who_belongs_to_the_notebook(notebook: Notebook) -> None:
    notebook.run(
        "import json, functools\ndef f(): pass\nclass A: pass\nexec('def e(): pass')\nw = functools.lru_cache(f)"
    )
    space = notebook.shell.user_ns
    told = {name: notebook.definitions.belongs(space[name]) for name in ("f", "A", "e", "w", "json")}
    assert told == {"f": True, "A": True, "e": True, "w": True, "json": False}
    assert not notebook.definitions.belongs(space["json"].dumps)
    assert not notebook.definitions.belongs(space["json"].JSONDecoder)
    assert not notebook.definitions.belongs(3)


def test_the_digest_is_of_the_code_and_not_of_its_place(notebook: Notebook) -> None:
    notebook.run("def f(): return 1")
    first = notebook.of("f").code
    notebook.run("# moved\n\n\ndef f():\n    return 1  # same")
    assert notebook.of("f").code == first
    notebook.run("def f(): return 2")
    assert notebook.of("f").code != first


def test_a_class_that_was_defined_again_is_the_one_that_it_is(notebook: Notebook) -> None:
    notebook.run("class A:\n  x = 1", "Old = A", "class A:\n  x = 2")
    assert notebook.source("Old") == "class A:\n  x = 1"
    assert notebook.source("A") == "class A:\n  x = 2"
    notebook.run("A = Old")
    assert notebook.source("A") == "class A:\n  x = 1"


def test_a_class_of_before_keel_is_known_where_there_is_no_doubt() -> None:
    with shell() as made:
        for cell in ("class A:\n  x = 1", "class B:\n  x = 1", "Old = B", "class B:\n  x = 2"):
            run(made, cell)
        definitions = NotebookDefinitions(made)
        sources = {name: definitions.of(made.user_ns[name]) for name in ("A", "B", "Old")}
        assert sources["A"] is not None
        assert sources["B"] is not None
        assert "x = 2" in sources["B"].source
        assert sources["Old"] is None


@pytest.mark.parametrize(
    ("cells", "expression", "reads"),
    [
        (["def f(x, y=dflt0): return x + g + len(k)"], "f", {"g", "k"}),
        (["len = 1", "def f(): return len"], "f", {"len"}),
        (["def f():\n  def h(): return a\n  return [b for b in h() if c]"], "f", {"a", "c"}),
        (["def f():\n  global n\n  n = 1\n  return n"], "f", set()),
        (["class A:\n  x = top\n  def m(self): return a\n  class B:\n    def n(self): return b"], "A", {"a", "b"}),
        (["class DataFrame: pass", "df = DataFrame()", "def f(): return con.sql('from df')"], "f", {"con", "df"}),
        (["def f(): return con.sql('from df')"], "f", {"con"}),
        (["a = b = 1", "def f(code): return eval(code)"], "f", {"a", "b", "f", "dflt0"}),
    ],
)
def test_what_a_function_reads(notebook: Notebook, cells: list[str], expression: str, reads: set[str]) -> None:
    notebook.run("dflt0 = 0", "class DataFrame: pass" if "DataFrame" in "".join(cells) else "pass")
    notebook.run(*[cell.replace("x = top", "x = dflt0") for cell in cells])
    assert notebook.reads(expression) - {"DataFrame"} == reads


def test_a_module_that_a_function_imports_is_among_what_it_reads(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lazy77.py").write_text("def g(): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    notebook.run("def f():\n  import json\n  from lazy77 import g\n  return g()")
    assert notebook.reads("f") == {IMPORTED + "lazy77"}


def test_a_script_of_run_is_known_while_its_names_are_the_notebooks(notebook: Notebook, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("k = 1\ndef f(): return k\ndef g(): return 2\n")
    notebook.run(f"%run {script}")
    assert notebook.source("f") == "def f(): return k"
    assert notebook.definitions.belongs(notebook.shell.user_ns["f"])
    notebook.run("k = 5")  # f still reads the script's own k
    assert notebook.of("f") is None
    assert notebook.source("g") == "def g(): return 2"


def test_an_edited_script_is_not_taken_for_the_one_that_ran(notebook: Notebook, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("def f(): return 1\n")
    notebook.run(f"%run {script}")
    script.write_text("def f(): return 2\n")
    linecache.checkcache(str(script))
    assert notebook.of("f") is None


def test_equal_cells_and_cells_run_again_do_not_confuse(notebook: Notebook) -> None:
    cell = "def f(): return [lambda: 1, lambda: 2]"
    notebook.run(cell, "first = f", "def f(): return 0", cell)
    assert notebook.source("first") == notebook.source("f") == "def f(): return [lambda: 1, lambda: 2]"
    assert notebook.source("first()[1]") == "lambda: 2"


def test_two_timed_cells_are_told_apart(notebook: Notebook) -> None:
    notebook.run("%%time\ndef f(): return 1\ny = 0", "old = f", "%%time\ndef f(): return 2\ny = 0")
    assert notebook.source("old") == "def f(): return 1"
    assert notebook.source("f") == "def f(): return 2"


def test_names_that_a_function_binds(notebook: Notebook) -> None:
    notebook.run("def f():\n  global n\n  n = 1\n  local = 2")
    assert notebook.definitions.stores(notebook.shell.user_ns["f"]) == {"n"}
    assert notebook.definitions.stores(3) == set()


def test_what_was_put_back_from_a_record_is_learnt(notebook: Notebook) -> None:
    notebook.run("def f():\n  global n\n  n = k")
    told = notebook.of("f")
    with shell() as other:
        definitions = NotebookDefinitions(other)
        other.user_ns["k"] = 1
        exec("def f(): return 1\nclass A: pass", other.user_ns)
        assert definitions.of(other.user_ns["f"]) is None
        definitions.learn(other.user_ns["f"], told)
        definitions.learn(other.user_ns["A"], told)
        assert definitions.of(other.user_ns["f"]) == definitions.of(other.user_ns["A"]) == told
        assert definitions.stores(other.user_ns["f"]) == {"n"}


def test_what_a_cell_defines_is_not_what_a_record_says(notebook: Notebook) -> None:
    notebook.run("def f(): return 1")
    told = notebook.of("f")
    notebook.run("def f(): return 2")
    notebook.definitions.learn(notebook.shell.user_ns["f"], told)
    assert notebook.source("f") == "def f(): return 2"


def test_the_shell_is_as_before_after_closing() -> None:
    with shell() as made:
        before = list(made.events.callbacks["post_run_cell"])
        definitions = NotebookDefinitions(made)
        assert made.events.callbacks["post_run_cell"] != before
        definitions.close()
        definitions.close()
        assert made.events.callbacks["post_run_cell"] == before
