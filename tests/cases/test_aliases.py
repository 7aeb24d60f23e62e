"""One object under names of several steps is one object after a restart, and is stored once (DESIGN 6)."""

import pytest

pytestmark = pytest.mark.crash

CELLS = """
%%keel_step base
import numpy as np, pandas as pd
hit("base"); rows = [1, 2]; big = np.zeros(400_000); df = pd.DataFrame({"n": np.arange(300_000.0)}); box = [rows, big]
# ---
%%keel_step more
hit("more"); alias = rows; held = {"r": rows, "f": df}; view = big[:3]; inner = box[1]; copy = list(rows)
# ---
%%keel_step third
hit("third"); again = held["f"]; deep = [view, alias]
# ---
rows.append(9); big[0] = 7; df.loc[0, "n"] = 5
print(alias, held["r"], view[0], inner[0], copy, again.n[0], deep[0][0], deep[1] is rows, held["f"] is df, again is df)
"""
TRUTH = "[1, 2, 9] [1, 2, 9] 7.0 7.0 [1, 2] 5.0 7.0 True True True"


def _bytes(notebook):
    return sum(path.stat().st_size for path in (notebook.folder / ".keel" / "objects").rglob("*") if path.is_file())


def test_aliases_and_views_across_steps(book):
    notebook = book(CELLS)
    assert notebook.shows() == TRUTH
    stored = _bytes(notebook)
    assert stored < 1.1 * 8 * 700_000, "the array and the frame once"
    for _ in range(2):
        assert notebook.shows() == TRUTH
    assert notebook.hits == "base more third"
    notebook.cells[1] += "\n1"
    assert notebook.shows() == TRUTH
    assert notebook.hits == "base more third more"
    assert _bytes(notebook) == stored, "nothing that was there already is written again"


def test_restore_keeps_them_too(book):
    notebook = book(CELLS)
    last = notebook.cells.pop()
    notebook.run_all()
    notebook.cells = []
    assert notebook.run_all("%keel restore", last).printed[-1].strip() == TRUTH
    assert notebook.run_all("%keel restore alias deep", "print(deep[1] is alias, alias)").printed[-1] == "True [1, 2]\n"


@pytest.mark.parametrize(
    ("at", "edit", "shown", "hits"),
    [
        (0, ("rows = [1, 2]", "rows = [5]"), "[5] [5] [5] True", "a b a b"),
        (0, ('hit("a"); rows', 'hit("a"); x = 1; rows'), "[1, 2] [1, 2] [1, 2] True", "a b a"),
        (1, ("alias = rows", "alias = rows; y = 1"), "[1, 2] [1, 2] [1, 2] True", "a b b"),
    ],
)
def test_the_base_was_made_again_or_the_reader_was(book, at, edit, shown, hits):
    notebook = book("""
%%keel_step a
hit("a"); rows = [1, 2]
# ---
%%keel_step b
hit("b"); alias = rows; pair = (rows, [3])
# ---
print(rows, alias, pair[0], alias is rows)
""")
    notebook.run_all()
    notebook.edit(at, *edit)
    for _ in range(2):
        assert notebook.shows() == shown
    assert notebook.hits == hits


def test_a_base_that_was_changed_in_between_is_taken_as_it_is_and_as_it_was(book):
    notebook = book("""
%%keel_step a
hit("a"); rows = [1]; other = [rows]
# ---
%%keel_step b
hit("b"); kept = rows
# ---
%%keel_step c
hit("c"); rows.append(2); before = list(kept); rows = [8]; late = other[0]
# ---
%%keel_step d
hit("d"); last = (kept, late)
# ---
print(rows, kept, other, before, late, last, kept is late is other[0] is last[0])
""")
    truth = "[8] [1, 2] [[1, 2]] [1, 2] [1, 2] ([1, 2], [1, 2]) True"
    for _ in range(3):
        assert notebook.shows() == truth
    assert notebook.hits == "a b c d"


def test_a_plain_cell_in_between_that_changes_the_base_behind_its_name(book):
    notebook = book("""
%%keel_step a
hit("a"); rows = [1]; box = [rows]
# ---
n = 0
# ---
%%keel_step b
hit("b"); kept = box[0]
# ---
print(rows, kept, kept is rows)
""")
    assert notebook.shows() == "[1] [1] True"
    notebook.cells[1] = "rows = [7]"
    assert notebook.shows() == "[7] [1] False"
    assert notebook.hits == "a b"
    notebook.cells[1] = "box[0].append(2)"
    assert notebook.shows() == "[1, 2] [1, 2] True"
    assert notebook.hits == "a b b"


def test_what_a_cell_showed_is_no_change_of_what_the_cell_before_it_showed(book):
    """IPython's `_` holds another object after each cell that ends in a value: that is nobody's in-place change."""
    nb = book("""
# keel: step a
class E: pass
e = E(); e.n = 1; rows = [1]
# ---
# keel: step b
e
# ---
# keel: step c
vars(e)
# ---
# keel: step d
rows
# ---
# keel: step e
rows[0]
# ---
# keel: step f
_.bit_length() + len(rows)
""")
    for _ in range(2):
        assert nb.shows("print(type(e) is E, e.n, rows, _5, _6 is rows, _)") == "True 1 [1] {'n': 1} True 2"
