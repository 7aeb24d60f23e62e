"""`%keel restore`: everything the newest run had, without executing a cell. Real kernels, real SIGKILL."""

import pytest

pytestmark = pytest.mark.kernel

CELLS = """
import numpy as np
class P:
    def __init__(self, x): self.x = x
def helper(v): return v + 1
n = 3
# ---
%%keel_step load
hit("load"); big = np.arange(300_000.0); p = P(5)
# ---
%%keel_step grow
hit("grow"); big += 1; rows = [helper(n)]
# ---
view = big[:2]
"""


def test_after_a_kill_the_session_is_back_without_a_run_all(notebook):
    book = notebook(CELLS)
    book.run_all()
    book.kill()
    book.start()
    book.execute("%load_ext keel_notebook")
    shown = book.execute("%keel restore")
    assert shown.status == "ok", shown.error
    assert "restored without running a cell: big, p, rows" in shown.text
    assert "not restored: n (run cell In[3])" in shown.text
    assert "not restored: view (run cell In[6])" in shown.text
    assert (
        book.execute("print(big[0], isinstance(p, P), p.x, rows, np.pi > 3, helper(1))").text
        == "1.0 True 5 [4] True 2\n"
    )
    assert book.hits == "load grow"


def test_an_in_place_step_after_a_restore_is_already_applied(notebook):
    book = notebook(CELLS)
    book.run_all()
    book.kill()
    book.start()
    for at in range(2):
        book._run(at)
    book.execute("%keel restore")
    book.run(0)
    book.run(2)
    assert book.execute("print(big[0])").text == "1.0\n"
    assert book.hits == "load grow"


def test_what_a_person_changed_since_is_left_alone_unless_asked_for(notebook):
    book = notebook("""
%%keel_step a
x = 1; y = 2
""")
    book.run_all()
    book.execute("x = 99; del y")
    book.execute("%keel restore")
    assert book.execute("print(y)").status == "error", "the plain cell deleted it last"
    book.execute("%keel restore y")
    assert book.execute("print(x, y)").text == "99 2\n"
    book.execute("%keel restore x")
    assert book.execute("print(x, y)").text == "1 2\n"
    shown = book.execute("%keel restore nothing")
    assert "nothing is recorded under this name" in shown.text


@pytest.mark.parametrize(
    ("plain", "gone"),
    [
        ("K.n += 1", "o"),
        ("setattr(K, 'n', 2)", "o"),
        ("rows.append(2)", "rows box get"),
        ("same = box\n# ---\nsame['r'].append(2)", "rows box get"),
        ("fill = rows.append\n# ---\nfill(2)", "rows box get"),
        ("get().append(2)", "rows box get"),
        ("def more(): rows.append(2)\n# ---\nmore()", "rows box get"),
        ("def again():\n    global rows\n    rows = [2]\n# ---\nagain()", "rows"),
        ("def again():\n    global rows\n    rows = [2]\nagain()", "rows"),
        ("print(o, rows, box)", ""),
        ("p = K(); print(K.n, get())", ""),
    ],
)
def test_what_a_plain_cell_changed_through_another_name_does_not_come_back_as_it_was(book, plain, gone):
    nb = book(f"""
# keel: step a
class K:
    n = 1
o = K(); rows = [1]; box = {{"r": rows}}; apart = [1]
get = lambda rows=rows: rows
# ---
{plain}
""")
    nb.run_all()
    nb.cells = []
    left = nb.shows("%keel restore", 'print([x for x in ("o", "rows", "box", "get", "apart") if x in globals()])')
    assert left == str([name for name in ("o", "rows", "box", "get", "apart") if name not in gone.split()])


def test_a_class_that_a_later_step_changed_comes_back_with_its_change(book):
    nb = book("""
# keel: step a
class K: n = 1
o = K()
# ---
# keel: step b
K.n += 1
""")
    nb.run_all()
    nb.cells = []
    assert nb.shows("%keel restore", "print(o.n, K.n, type(o) is K)") == "2 2 True"


STATES = "import keel_notebook as k; print({s['name']: s['state'] for s in k.status().to_dict()['steps']})"


@pytest.mark.parametrize(
    ("between", "restore", "load", "fit"),
    [
        ("", "%keel restore", "replayed", "replayed"),
        ("", "%keel restore rows", "replayed", "saved"),
        ("rows = 5", "%keel restore", "saved", "replayed"),  # what a person bound is no value of the step
        ("", "pass", "saved", "saved"),
    ],
)
def test_a_step_is_in_memory_once_all_that_it_left_came_back(book, between, restore, load, fit):
    nb = book("# keel: step load\nrows = [1]\n# ---\n# keel: step fit\nmodel = 1\n# ---\n")
    nb.run_all()
    nb.cells = []
    assert nb.shows(between, restore, STATES) == str({"load": load, "fit": fit})


def test_a_step_whose_value_a_plain_cell_changed_is_not_in_memory_after_a_restore(book):
    nb = book("# keel: step load\nrows = [1]\n# ---\n# keel: step fit\nmodel = 1\n# ---\nrows.append(2)")
    nb.run_all()
    nb.cells = []
    assert nb.shows("%keel restore", STATES) == "{'load': 'saved', 'fit': 'replayed'}"


def there(names):
    """A cell that prints which of the names exist."""
    return f"print(*[name for name in {names.split()} if name in globals()])"


def test_what_an_edited_step_no_longer_makes_does_not_come_back(book):
    nb = book("""
# keel: step a
v = 1
# ---
# keel: step b
w = 2
""")
    nb.run_all()
    nb.edit(0, "v = 1", "u = 1")
    nb.run_all()
    nb.cells = []
    assert nb.shows("%keel restore", there("u v w")) == "u w"
    assert nb.shows("%keel restore", there("u v w")) == "u w", "what was restored is there, and its run is the newest"
    assert nb.shows("%keel restore v", there("u v w")) == "v", "by name it is still to be had"


def test_what_was_restored_name_by_name_is_all_there_for_the_next_restore(book):
    nb = book("# keel: step a\nu, v, w = 1, 2, 3")
    nb.run_all()
    nb.cells = []
    assert nb.shows("%keel restore u", "%keel restore w", there("u v w")) == "u w"
    assert nb.shows("%keel restore", there("u v w")) == "u w"


@pytest.mark.parametrize(
    ("cells", "gone"),
    [
        ("class K: n = 1\n# ---\n# keel: step a\no = K(); x = 1\n# ---\nK.n = 2", "K o"),
        ("class K: n = 1\n# ---\nK.n = 2\n# ---\n# keel: step a\nx = 1", "K"),
        ("class K: seen = []\n# ---\nK.seen.append(1)\n# ---\n# keel: step a\nx = 1", "K"),
        ("class K: pass\n# ---\nK.n = 2\n# ---\n# keel: step a\nx = 1", "K"),
        ("# keel: step a\nx = 1\n# ---\nclass K: seen = []\n# ---\nK.seen.append(1)", "K"),
        ("# keel: step a\nx = 1\n# ---\ndef f(q=[]): q.append(1)\n# ---\nf()", "f"),
        ("def f(q=[]): q.append(1)\n# ---\nf()\n# ---\n# keel: step a\nx = 1", "f"),
        ("class K: n = 1\n# ---\nk = K()\n# ---\n# keel: step a\no = K(); x = 1\n# ---\nprint(o.n, K())", ""),
        ("def f(q=3): return q\n# ---\nf()\n# ---\n# keel: step a\nx = f()\n# ---\nf()", ""),
    ],
)
def test_what_a_plain_cell_defined_and_another_one_changed_does_not_come_back_as_it_was_at_first(book, cells, gone):
    nb = book(cells)
    nb.run_all()
    nb.cells = []
    names = [name for name in ("K", "f", "o", "x") if f"{name} = " in cells or f" {name}" in cells]
    names = [name for name in names if f"class {name}" in cells or f"def {name}" in cells or f"{name} = " in cells]
    shown = nb.shows("%keel restore", there(" ".join(names)))
    assert shown.split() == [name for name in names if name not in gone.split()]


def test_a_step_that_its_kernel_died_in_or_that_failed_is_listed(book):
    nb = book("""
# keel: step a
x = 1
# ---
# keel: step fails
y = 2; 1 / 0
""")
    assert nb.run_all().error
    nb.cells[1] = "# keel: step dies\nimport os, signal; x = 3; os.kill(os.getpid(), signal.SIGKILL)"
    assert nb.run_all().signal
    nb.cells = []
    said = nb.run_all("r = get_ipython().run_line_magic('keel', 'restore')", "print(r)").printed[-1]
    assert "restored without running a cell: x" in said
    assert "not restored: step dies (its kernel went away while it ran)" in said


def test_an_interrupted_map_is_listed_and_never_run_from_here(notebook):
    book = notebook("""
%%keel_step scrape
import keel_notebook as keel
def get(n):
    hit("get")
    if n == 3: raise KeyboardInterrupt
    return n * 2
count = 3; rows = (n for n in "nobody can store it"); rows = keel.map(get, [1, 2, 3], max_workers=1)
""")
    assert book.run_all()[0].status == "error"
    book.kill()
    book.start()
    book.execute("%load_ext keel_notebook")
    before = book.hits
    shown = book.execute("%keel restore --run")
    assert "restored without running a cell: count, get, keel\n" in shown.text
    assert "not restored: rows (run step scrape yourself: it" in shown.text
    assert (book.hits, before) == ("get get get", "get get get")


def test_what_several_steps_took_of_a_value_that_has_no_name_any_more_is_one_object_again(book):
    nb = book("""
# keel: step a
import numpy as np; rows = [1]; grid = np.zeros(4)
# ---
# keel: step b
first = [rows]; left = grid[:2]
# ---
# keel: step c
second = [rows]; all_of_it = grid[:]
# ---
# keel: step d
rows = 5; grid = 6
""")
    nb.run_all()
    nb.cells = []
    ask = "print(first[0] is second[0], np.shares_memory(left, all_of_it), rows, grid)"
    assert nb.shows("%keel restore", ask) == "True True 5 6"


def test_a_record_that_was_replayed_comes_back_over_what_was_executed_above_it(book):
    nb = book("""
# keel: step a
class K: n = 1
o = K(); x = 1
# ---
# keel: step b
K.n = 2
""")
    nb.run_all()
    nb.edit(0, "x = 1", "x = 3")
    assert nb.run_all().printed
    nb.cells = []
    assert nb.shows("%keel restore", "print(K.n, o.n, x)") == "2 2 3"


@pytest.mark.parametrize(("change", "there_again"), [("local.SEEN.append(1)", "x"), ("print(local.SEEN)", "local x")])
def test_a_local_module_in_which_a_plain_cell_set_something_is_not_imported_as_it_was(book, change, there_again):
    nb = book(f"""
import sys; sys.path.insert(0, "")
# ---
# keel: step a
x = 1
# ---
import local
# ---
{change}
""")
    (nb.folder / "local.py").write_text("SEEN = []\ndef f(): return 1\n")
    nb.run_all()
    nb.cells = nb.cells[:1]
    assert nb.shows("%keel restore", there("local x")) == there_again


def test_the_cell_that_loads_keel_and_does_more_comes_back_like_others(book):
    notebook = book("")
    first = "%load_ext keel_notebook\nimport math\nk = 3\ndef double(x): return 2 * x"
    step = "%%keel_step s\nn = double(k)"

    def run(*cells):
        return notebook._zygote.run(notebook.folder, list(cells))

    assert run(first, step, "print(n)").printed[-1] == "6\n"
    assert run(first, step, "print(n)").printed[-1] == "6\n"
    shown = run("%load_ext keel_notebook", "%keel restore", "print(math.floor(2.5), double(4), n)")
    assert shown.printed[-1] == "2 8 6\n", shown.printed


OLD = """
class P:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return self.x == other.x
    def __hash__(self): return 1
class Kept:
    def __init__(self, x): self.x = x
def scale(v): return v * 2
from collections import namedtuple
import functools, numpy as np, pandas as pd
# ---
# keel: step a
"""


@pytest.mark.parametrize(
    ("step", "gone"),
    [
        ("bad = P(1)", "bad"),
        ("bad = P", "bad"),
        ("box = [1, {'k': (P(1),)}]; other = [2]", "box"),
        (
            "keys = {P(1): 2}; members = {P(1), P(2)}; frozen = frozenset({P(1)}); ok = frozenset({1})",
            "keys members frozen",
        ),
        ("k = Kept(1); bad = Kept(P(1)); ks = [k, k]", "bad"),
        ("k = Kept(1); k.me = k; k.p = P(1); apart = Kept(2)", "k"),
        ("ps = np.array([P(1), None], dtype=object); xs = np.arange(3); zs = np.arange(100_000.0); v = zs[:2]", "ps"),
        ("df = pd.DataFrame({'p': [P(1), P(2)]}); ok = pd.DataFrame({'n': [1, 2]}); s = df['p']", "df s"),
        ("def f(a, b=P(1)): return a\ndef g(a): return a", "f"),
        ("def made(p):\n    return lambda: p\nf = made(P(1)); g = made(3)", "f"),
        ("part = functools.partial(scale, P); ok = functools.partial(max, 2)", "part"),
        ("class Sub(P): pass\nsub = Sub(1); K = Kept; k = K(1)", "Sub sub"),
        ("class Own:\n    p = P(1)\no = Own(); n = 1", "Own o"),
        ("T = namedtuple('T', 'a b'); t = T(1, P(1)); u = T(1, 2)", "t"),
        ("err = ValueError(P(1)); fine = ValueError(1)", "err"),
        ("a = [P(1)]; b = [a]; c = [b, 1]; d = [1]; a.append(d)", "a b c"),
    ],
)
def test_only_what_holds_an_instance_of_a_changed_class_stays_away(book, step, gone):
    """An old instance is never passed off as one of the new class (C46); every other name of its record comes back."""
    nb = book(OLD + "before = set(globals())\n" + step)
    told = "print(*sorted(n for n in set(globals()) - before if not n.startswith('_')))"
    had = set(nb.shows(told).split()) - {"before"}
    nb.cells = [nb.cells[0].replace("x): self.x = x", "x): self.x = x + 0", 1), "before = set(globals())"]
    run = nb.run_all("%keel restore", told, "print(P(1).x, [n for n, v in globals().items() if type(v) is P])")
    assert set(run.printed[-2].split()) - {"before"} == had - set(gone.split())
    assert run.printed[-1] == "1 []\n", "the class that a person defined since stays, and nothing poses as one of it"
    for name in gone.split():
        assert f"not restored: {name} (run step a: it needs P, which has changed since)" in run.printed[-3]


def test_what_a_person_ran_since_is_not_defined_again(book):
    """Neither a class (its instances would be strangers) nor an import, a function or what a star brings."""
    nb = book("""
class P: pass
def f(): return 1
from math import pi, tau
from string import *
# ---
# keel: step a
x = 1
""")
    nb.run_all()
    nb.cells = ["class P: n = 2\np = P()\ndef f(): return 2\npi = 3; digits = 4"]
    assert nb.shows("%keel restore", "print(type(p) is P, P.n, f(), pi, digits, tau > 6, hexdigits[:2], x)") == (
        "True 2 2 3 4 True 01 1"
    )


def test_what_a_failed_step_bound_before_it_failed_is_there_again(notebook):
    """The notebook goes on with it (allow-errors, cell by cell). What the step read and changed is no fit value."""
    book = notebook("""
n = 1; rows = [1]
# ---
%%keel_step bad
hit("bad"); fixed = (3, [4]); same = fixed[1]; n += 1; rows.append(2); gone = (x for x in rows)
fixed[0] = 5
# ---
%%keel_step again
hit("again"); twice = same * 2
""")
    book.start()
    for at in range(-2, 3):
        book.run(at)
    book.kill()
    book.start()
    book.execute("%load_ext keel_notebook")
    shown = book.execute("%keel restore").text
    assert "restored without running a cell: fixed, same, twice\\n" in shown.replace("\n", "\\n")
    for name in ("n", "rows", "gone"):
        assert f"not restored: {name} (run step bad: it failed)" in shown
    assert book.execute("print(fixed, fixed[1] is same, twice)").text == "(3, [4]) True [4, 4]\n"
    assert "fixed, same, twice" in book.execute("del fixed, same, twice\n%keel restore fixed same twice").text
    assert [book.run(at).status for at in range(3)] == ["ok", "error", "ok"]
    assert book.hits == "bad again bad", "a failure is never replayed as a success; its followers are as they were"
