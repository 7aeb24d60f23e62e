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
    assert "not restored: n (run cell 3)" in shown.text
    assert "not restored: view (run cell 6)" in shown.text
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
        ("print(o, rows, box)", ""),
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
