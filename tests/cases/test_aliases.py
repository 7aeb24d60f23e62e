"""One object under names of several steps is one object after a restart, and is stored once (DESIGN 6)."""

import json

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


@pytest.mark.parametrize(
    ("made", "shared", "change"),
    [
        ("class K: seen = []", "xs = K.seen", "K.seen.append(1)"),
        ("class K: seen = []", "box = {'x': K.seen}; xs = [0]", "K.seen.append(1)"),
        ("class K: seen = []", "xs = []; K.seen = xs", "K.seen.append(1)"),
        ("class K: seen = []", "xs = K.seen", "xs.append(1)"),
        ("import sys; sys.path.insert(0, ''); import local", "xs = local.SEEN", "local.SEEN.append(1)"),
        ("import sys; sys.path.insert(0, ''); import local", "xs = local.SEEN", "xs.append(1)"),
    ],
)
def test_an_attribute_and_a_name_that_hold_one_object_change_together(book, made, shared, change):
    nb = book(f"""
{made}
# ---
# keel: step a
{shared}
# ---
# keel: step b
{change}
""")
    (nb.folder / "local.py").write_text("SEEN = []\n")
    for _ in range(2):
        held = "K.seen" if "class" in made else "local.SEEN"
        ask = f"print(xs, globals().get('box'), {held})"
        assert nb.shows(ask) == ("[0] {'x': [1]} [1]" if "box" in shared else "[1] None [1]")


@pytest.mark.parametrize(
    ("base", "view", "change"),
    [
        ("grid = np.arange(16).reshape(4, 4)", "upper, lower = np.vsplit(grid, [2])", "grid[0, 0] = 9"),
        ("grid = np.arange(16).reshape(4, 4)", "upper = grid[:2]; lower = {'x': [upper]}", "grid[0, 0] = 9"),
        ("grid = np.arange(16).reshape(4, 4)", "upper = grid.T; lower = fields(upper)", "upper[0, 0] = 9"),
        ("grid = np.arange(90_000.0).reshape(300, 300)", "upper = grid[::2, 5:]; lower = 0", "upper[0, 0] = 9"),
        ("grid = np.arange(16)[4:].reshape(3, 4)", "upper = grid[1]; lower = fields(upper)", "upper[0] = 9"),
        ("grid = np.zeros((0, 3)).reshape(3, 0)", "upper = grid[:2]; lower = 0", "grid.sum()"),
    ],
)
def test_a_view_of_a_view_that_another_step_made_stays_one(book, base, view, change):
    nb = book(f"""
import numpy as np
class fields:
    def __init__(self, a): self.a = a
# ---
# keel: step a
{base}
# ---
# keel: step b
{view}
# ---
{change}
print(np.shares_memory(grid, upper), (grid == 9).sum(), (upper == 9).sum())
""")
    live = nb.shows()
    assert nb.shows() == live
    assert live.startswith("True") or "zeros" in base


PLAIN = """
import numpy as np, pandas as pd, threading, sqlite3
class Cfg:
    def __init__(self, lr): self.lr = lr
class App: pass
# ---
cfg = Cfg(1); rows = [1]; grid = np.arange(6.0).reshape(2, 3); df = pd.DataFrame({"x": [1, 2]})
lock = threading.Lock(); con = sqlite3.connect(":memory:"); nested = {"cfg": cfg}
# ---
%%keel_step a
hit("a")
STEP
# ---
CHANGE
print(SAYS)
"""


@pytest.mark.parametrize(
    ("step", "change", "says"),
    [
        ("app = App(); app.cfg = cfg", "cfg.lr = 3", "app.cfg is cfg, app.cfg.lr"),
        ("more = [rows, rows]", "rows.append(2)", "more, more[0] is rows"),
        ("view = grid[1:]; grid_too = grid", "grid[1, 0] = 9", "view, grid_too is grid"),
        ("app = App(); app.view = grid.T", "grid[1, 0] = 9", "app.view"),
        ("held = {'df': df}", "df['y'] = 3", "held['df'] is df, list(held['df'])"),
        (
            "app = App(); app.lock = lock; app.db = con",
            "con.execute('create table t (x)')",
            "app.lock is lock, app.db is con",
        ),
        ("pair = (cfg, rows)", "cfg.lr = 3", "pair[0] is cfg, pair[0].lr, pair[1] is rows"),
        ("get = lambda c=cfg: c", "cfg.lr = 3", "get() is cfg"),
        ("app = App(); app.get = rows.append", "app.get(3)", "rows"),
        ("alias = nested", "cfg.lr = 3", "alias['cfg'] is cfg"),
    ],
)
def test_an_object_of_a_plain_cell_in_what_a_step_made_is_that_object(book, step, change, says):
    nb = book(PLAIN.replace("STEP", step).replace("CHANGE", change).replace("SAYS", says))
    live = nb.shows()
    for _ in range(2):
        assert nb.shows() == live
    assert nb.hits == "a"
    nb.cells.pop()
    nb.run_all()
    nb.cells = []
    names = [name for name in ("app", "more", "view", "held", "pair", "get", "alias") if f" {name} = " in f" {step}"]
    stays = "lock" in step  # nobody can store a lock: that is named, and its cell has to run first
    shown = nb.shows("%keel restore", f"print([name for name in {names} if name in globals()])")
    assert shown == ("[]" if stays else str(names)), "a restore without a run takes the copy"


def test_a_shown_value_that_nobody_can_store_is_no_loss_to_tell_of(book):
    nb = book(
        "# keel: step a\nimport numpy as np\na = np.zeros(2)\na.data\n# ---\n# keel: step b\nlines = (n for n in [1])"
    )
    said = [cell["err"] for cell in nb.run_all().acknowledged[2:]]
    assert said[0] == ""
    assert "not stored: lines (generator)" in said[1]


def test_a_closed_file_comes_back_closed_and_an_open_one_not(book):
    nb = book("""
# keel: step a
with open("t.txt", "w", encoding="latin-1") as out: out.write("x")
with open("t.txt", "rb") as f: f.read()
still = open("t.txt"); gone = 2
# ---
print(*[(type(g).__name__, g.name, g.mode, g.closed) for g in (out, f)], out.encoding)
""")
    live = nb.shows()
    assert nb.shows() == live
    nb.cells.pop()
    nb.run_all()
    nb.cells = []
    there = "print([name for name in ('out', 'f', 'still', 'gone') if name in globals()])"
    assert nb.shows("%keel restore", there) == "['out', 'f', 'gone']"


@pytest.mark.parametrize("option", ["--effect exactly_once --on-ambiguous fail --key k", "--ignore rows"])
def test_a_value_that_comes_back_in_spite_of_a_changed_input_holds_what_was_recorded(book, option):
    nb = book(f"""
rows = [1]
# ---
%%keel_step a {option}
hit("a"); box = {{"rows": rows}}
# ---
print(box["rows"], rows)
""")
    assert nb.shows() == nb.shows() == "[1] [1]"
    nb.edit(0, "[1]", "[2]")
    assert nb.shows() == "[1] [2]"
    assert nb.hits == "a"


REPLACED = """
class K:
    def __init__(self):
        self.got, self.table = [], {"a": []}
    def take(self, rows):
        self.got = rows
class Slotted:
    __slots__ = ("got",)
zs = []
# ---
%%keel_step make
hit("make"); o = K(); o.inner = K(); p = Slotted(); p.got = []; rows = [[], []]; d = {"x": []}
# ---
%%keel_step put
hit("put"); BODY
# ---
zs.append(1)
print(PART is zs, PART)
"""


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("o.got = zs", "o.got"),
        ("o.take(zs)", "o.got"),
        ("setattr(o, 'got', zs)", "o.got"),
        ("o.inner.got = zs", "o.inner.got"),
        ("o.table['a'] = zs", "o.table['a']"),
        ("p.got = zs", "p.got"),
        ("rows[1] = zs", "rows[1]"),
        ("rows[:] = [zs, zs]", "rows[0]"),
        ("d['x'] = zs", "d['x']"),
        ("d.update(x=zs)", "d['x']"),
        ("o.got = None; zs = []; o.got = zs", "o.got"),
    ],
)
def test_another_object_of_equal_content_put_into_a_value_is_a_change_of_it(book, body, part):
    notebook = book(REPLACED.replace("BODY", body).replace("PART", part))
    for _ in range(3):
        assert notebook.shows() == "True [1]"
    assert notebook.hits == "make put"


def test_what_only_looks_at_a_value_replaces_nothing_in_it(book):
    notebook = book(REPLACED.replace("BODY", "n = len(o.got) + len(rows) + len(d)").replace("PART", "o.got"))
    for _ in range(2):
        assert notebook.shows() == "False []"
    assert notebook.hits == "make put"
    told = notebook.run_all("import sys", "!{sys.executable} -m keel_notebook show put --in . --json").printed[-1]
    assert [write["name"] for write in json.loads(told)["writes"]] == ["n"]
