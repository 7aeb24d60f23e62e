"""One notebook with every way in which a step can depend on something, run, edited, run again: never an old number,
and nothing runs twice for nothing (C25, C28, C30, traps 5, 9 and 16)."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.kernel


@dataclass(frozen=True)
class Way:
    """A step, what stands above it, and an edit that changes its result."""

    name: str
    above: str
    step: str
    before: object
    after: object
    edit: tuple[str, str] | None = None
    """In ``above``; None where a file changes."""
    file: str = ""
    text: tuple[str, str] = ("", "")


ONE, TWO = "def f(): return 1\n", "def f(): return 2\n"
WAYS = [
    Way("variable", "a1 = 7", "r_variable = a1 * 2", 14, 18, ("7", "9")),
    Way("function", "def f2(x): return x + 1", "r_function = f2(1)", 2, 3, ("+ 1", "+ 2")),
    Way("below", "k3 = 1\ndef g3(): return k3\ndef f3(): return g3()", "r_below = f3()", 1, 5, ("k3 = 1", "k3 = 5")),
    Way("default", "d4 = 1\ndef f4(x=d4): return x", "r_default = f4()", 1, 6, ("d4 = 1", "d4 = 6")),
    Way("method", "class A5:\n  def m(self): return 1\na5 = A5()", "r_method = a5.m()", 1, 2, ("n 1", "n 2")),
    Way("attribute", "class A6: reg = {}\nA6.reg['x'] = 1", "r_attribute = A6.reg['x']", 1, 2, ("= 1", "= 2")),
    Way("query", "t7 = 1\nq7 = 'v > @t7'", "r_query = len(frame.query(q7))", 2, 1, ("t7 = 1", "t7 = 2")),
    Way("sql", "df8 = frame.head(1)", "r_sql = sql('select count(*) from df8')", 1, 2, ("(1)", "(2)")),
    Way("timed", "u9 = 3", "%%time\nr_timed = u9 + 1", 4, 5, ("3", "4")),
    Way("shell", "w10 = 'a'", "r_shell = !echo {w10}", ["a"], ["b"], ("'a'", "'b'")),
    Way("flag", "x11 = 1\nflag11 = False", "if flag11: x11 = 1\nr_flag = x11", 1, 5, ("x11 = 1", "x11 = 5")),
    Way("branch", "r_branch = 1\nflag12 = False", "if flag12: r_branch = 1", 1, 5, ("h = 1", "h = 5")),
    Way("loop", "n13, e13 = 0, 8", "for i in range(n13): e13 = i\nr_loop = e13", 8, 9, ("8", "9")),
    Way("eval", "s14 = 1", "r_eval = eval('s' + '14')", 1, 2, ("= 1", "= 2")),
    Way("module", "import mod15", "r_module = mod15.f()", 1, 2, None, "mod15.py", (ONE, TWO)),
    Way("from", "from mod16 import f as f16", "r_from = f16()", 1, 2, None, "mod16.py", (ONE, TWO)),
    Way("inside", "", "import mod17\nr_inside = mod17.f()", 1, 2, None, "mod17.py", (ONE, TWO)),
    Way(
        *("deep", "def f18():\n  import mod18\n  return mod18.f()", "r_deep = f18()"),
        *(1, 2, None, "low18.py", ("x = 1\n", "x = 2\n")),
    ),
    Way(
        *("path", "import sys", "sys.path.append('src')\nimport mod19\nr_path = mod19.f()\ndel mod19"),
        *(1, 2, None, "src/mod19.py", (ONE, TWO)),
    ),
    Way("setting", "import cfg20\ncfg20.LR = 1", "r_setting = cfg20.lr()", 1, 2, ("LR = 1", "LR = 2")),
]
FIRST = """
import pandas as pd
frame = pd.DataFrame({'v': [1, 2, 3]})
def sql(text):  # reads the caller's frames as DuckDB does
    import sys
    return len(sys.modules['__main__'].__dict__[text.split()[-1]])
"""


def notebook_of(folder: Path) -> str:
    (folder / "src").mkdir()
    (folder / "mod18.py").write_text("import low18\ndef f(): return low18.x\n")
    (folder / "cfg20.py").write_text("LR = 0\ndef lr(): return LR\n")
    cells = [FIRST]
    for way in WAYS:
        if way.file:
            (folder / way.file).write_text(way.text[0])
        cells += [way.above or "pass", f"%%keel_step {way.name}\n{way.step}"]
    return "\n# ---\n".join(cells)


def results(book: Any) -> dict[str, object]:
    shown = book.execute(f"print({{name: globals()['r_' + name] for name in {[way.name for way in WAYS]}}})")
    assert shown.status == "ok", shown.error
    return dict(eval(shown.text))


def executed(book: Any) -> set[str]:
    return {name for name, step in book.table().items() if step["decision"] == "executed"}


def test_no_way_gives_an_old_number_and_nothing_runs_for_nothing(notebook: Any, tmp_path: Path) -> None:
    book = notebook(notebook_of(tmp_path))
    shown = book.run_all()
    assert [each.error for each in shown if each.error] == []
    assert results(book) == {way.name: way.before for way in WAYS}

    shown = book.rerun()
    assert [each.stderr for each in shown if each.stderr] == []
    assert results(book) == {way.name: way.before for way in WAYS}
    assert executed(book) == set()

    for at, way in enumerate(WAYS):
        if way.edit is not None:
            book.edit(1 + 2 * at, *way.edit)
        else:
            path = tmp_path / way.file
            path.write_text(way.text[1])
            os.utime(path, ns=(time.time_ns() + 2_000_000_000,) * 2)  # a later save, as the clock of the disk sees it
    shown = book.rerun()
    assert [each.error for each in shown if each.error] == []
    assert results(book) == {way.name: way.after for way in WAYS}
    assert executed(book) == {way.name for way in WAYS}

    book.rerun()
    assert results(book) == {way.name: way.after for way in WAYS}
    assert executed(book) == set()
    book.run_all()  # the same kernel, once more
    assert results(book) == {way.name: way.after for way in WAYS}
    # "eval" and "sql" read every name, and there are more of them by now; where "path" finds its module was not known.
    assert executed(book) <= {"eval", "path", "sql"}
