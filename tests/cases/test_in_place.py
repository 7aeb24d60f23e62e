"""In-place steps: a step's own change is never its input (DESIGN 5; C09, C31). Real kernels."""

import pytest

pytestmark = pytest.mark.kernel


def test_c31_an_in_place_step_run_twice_is_already_applied(notebook):
    book = notebook("""
%%keel_step s1
box = [1, 2, 3]
# ---
%%keel_step s2
hit("s2"); box.append(4); n = len(box)
# ---
alias = box
# ---
print(box, n, alias is box)
""")
    book.run_all()
    book.rerun()
    assert book.run(1).status == "ok"
    assert book.run(3).text == "[1, 2, 3, 4] 4 True\n"
    assert book.run(1).stderr == ""
    assert book.run(3).text == "[1, 2, 3, 4] 4 True\n"
    assert book.hits == "s2"


def test_c09_an_edited_in_place_step_starts_from_the_value_before_it(notebook):
    book = notebook("""
%%keel_step load
hit("load"); d = {"a": 1}
# ---
%%keel_step clean
d["a"] = d["a"] * 10
# ---
print(d)
""")
    book.run_all()
    book.edit(1, "* 10", "* 2")
    assert book.run(1).status == "ok"
    assert book.run(2).text == "{'a': 2}\n"
    assert book.rerun()[2].text == "{'a': 2}\n"
    assert book.hits == "load"


def test_c09_also_where_a_plain_cell_made_the_value_and_after_a_failure(notebook):
    book = notebook("""
rows = [1]; alias = rows
# ---
%%keel_step add
import os
rows.append(2)
assert os.path.exists("ready"), "not yet"
rows.append(3)
# ---
print(rows, alias is rows)
""")
    assert book.run_all()[1].status == "error"
    (book.folder / "ready").write_text("")
    assert book.run(1).status == "ok"
    assert book.run(2).text == "[1, 2, 3] True\n"


def test_an_equal_value_bound_by_another_cell_is_not_already_applied(notebook):
    book = notebook("""
x = 10
# ---
%%keel_step dbl
x = x * 2
# ---
print(x)
""")
    book.run_all()
    book.edit(0, "x = 10", "x = 20")
    for at in range(2):
        book.run(at)
    assert book.run(2).text == "40\n"
    assert book.rerun()[2].text == "40\n"


def test_later_steps_are_taken_back_with_it_and_named(notebook):
    book = notebook("""
d = {"a": 1}
# ---
%%keel_step first
d["a"] *= 10
# ---
%%keel_step second
d["b"] = d["a"] + 1
# ---
print(d)
""")
    book.run_all()
    book.edit(1, "*= 10", "*= 2")
    assert "run again: second" in book.run(1).stderr
    assert book.run(3).text == "{'a': 2}\n"
    book.run(2)
    assert book.run(3).text == "{'a': 2, 'b': 3}\n"


def test_a_plain_change_on_top_cannot_be_told_apart_and_stops(notebook):
    book = notebook("""
d = {"a": 1}
# ---
%%keel_step first
d["a"] *= 10
# ---
d["b"] = 5
# ---
print(d)
""")
    book.run_all()
    book.edit(1, "*= 10", "*= 2")
    shown = book.run(1)
    assert shown.status == "error"
    assert "E031" in shown.error
    assert "--as-is" in shown.error
    book.execute("%keel rerun first --as-is")
    assert book.run(1).status == "ok"
    assert book.run(3).text == "{'a': 20, 'b': 5}\n"


def test_c45_dataclasses_of_plain_cells_and_of_steps_replay(notebook):
    book = notebook("""
from dataclasses import dataclass, field
import numpy as np
@dataclass
class C:
    a: int = 1
    b: list = field(default_factory=list)
cfg = C(3); rng = np.random.default_rng(0)
# ---
%%keel_step use
hit("use"); v = cfg.a + 1
# ---
%%keel_step make
hit("make")
@dataclass(frozen=True)
class D: x: int = 1
d = D(4)
# ---
%%keel_step read
hit("read"); z = d.x + rng.integers(1)
# ---
%%keel_step absent
hit("absent")
if "ww" not in globals(): ww = []
ww.append(1)
# ---
print(v, d, isinstance(d, D), D(4) == d, z, ww)
""")
    truth = "4 D(x=4) True True 4 [1]\n"
    assert book.run_all()[5].text == truth
    shown = book.rerun()
    assert shown[5].text == truth
    assert [cell.stderr for cell in shown] == [""] * 6
    assert book.hits == "use make read absent"


CHANGES = """
{a}.shape = (2, 3)
{a}.T[0] = 9
{a}.flat[0] = 9
{a}.real[0] = 9
{a}[1:][0] = 9
{a}.view()[0] = 9
{a}.sort(); {a}[::-1].sort()
np.copyto({a}, 7)
np.add({a}, 1, out={a})
{a}.byteswap(inplace=True)
{f}.columns = ["p", "q"]
{f}.index = [5, 6, 7]
{f}.columns.name = "n"
{f}.index.name = "n"
{f}.columns.set_names("n", inplace=True)
{f}.rename(columns={{"x": "z"}}, inplace=True)
{f}.columns, {f}.index.name = ["p", "q"], "i"
{f}.sort_values("x", ascending=False, inplace=True)
{f}.drop(columns="x", inplace=True)
{f}.set_index("x", inplace=True)
{f}.eval("q = x + 1", inplace=True)
{f}.attrs["k"] = 1
{f}.pop("x")
{f}.insert(0, "q", 1)
{f}.loc[0, "x"] = 9
{f}.at[0, "x"] = 9
del {f}["x"]
setattr({f}, "columns", ["p", "q"])
for {f}.columns.name in ["n"]: pass
with contextlib.nullcontext(["p", "q"]) as {f}.columns: pass
{s}.name = "other"
{s}.index.name = "n"
{s}.update([9])
{s}.array[0] = 9
{t}.shape = (3, 2)
""".strip().split("\n")


def test_every_way_to_change_an_array_or_frame_in_place_comes_back(book):
    cells = [
        "import contextlib, numpy as np, pandas as pd\n"
        "def make():\n    a = np.array([3, 1, 2, 6, 5, 4])\n"
        "    return a, pd.DataFrame({'x': [1, 2, 3], 'y': [4, 5, 6]}), pd.Series([1, 2, 3], name='s'), a[:]"
    ]
    tell = (
        "({a}.tolist(), {a}.dtype.str, {f}.to_dict(), str({f}.index), str({f}.columns), {f}.attrs, "
        "{s}.tolist(), {s}.name, {s}.index.name, {t}.tolist())"
    )
    for at, change in enumerate(CHANGES):
        own = {name: f"{name}{at}" for name in "afst"}
        cells += [
            f"# keel: step made{at}\n{', '.join(own.values())} = make()",
            f"# keel: step change{at}\n{change.format(**own)}",
            f"print({tell.format(**own)})",
        ]
    nb = book("\n# ---\n".join(cells))
    live = nb.run_all()
    assert not live.error, live.error
    for _ in range(2):
        again = nb.run_all()
        assert not again.error, again.error
        for change, one, two in zip(CHANGES, live.printed[5::3], again.printed[5::3], strict=True):
            assert (change, two) == (change, one)
