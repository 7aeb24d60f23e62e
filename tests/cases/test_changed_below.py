"""A file that a step wrote and that a plain cell below changes (DESIGN 6, Files): in every Run All the step's file is
there as it wrote it, and what the plain cell does is done to that, once.

Every story is compared with the same cells in a folder without keel, in fresh kernels: what they print, their files.
"""

import nbformat
import pytest

from tests.cases.test_files import LIBRARIES, step
from tests.cases.test_rewritten_files import SHOW, Pair
from tests.crash.shells import Zygote

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def zygote():
    process = Zygote(*LIBRARIES)
    yield process
    process.close()


@pytest.fixture
def pair(zygote, tmp_path):
    return Pair(zygote, tmp_path)


MAKE = step("make", "_ = open('a.txt', 'w').write('1'); v = 1")
APPEND = "with open('a.txt', 'a') as f: print('x', file=f)"
UP = "t = int(open('a.txt').read()); _ = open('a.txt', 'w').write(str(t + 1))"
WAYS = {
    "appends": APPEND,
    "appends in a function": f"def go():\n    {APPEND}\ngo()",
    "appends by a shell": "!echo x >> a.txt",
    "appends by a child": "_ = subprocess.run('echo x >> a.txt', shell=True)",
    "appends a frame": "pd.DataFrame({'a': [2]}).to_csv('a.txt', mode='a')",
    "reads and writes": UP,
    "opens it for both": "f = open('a.txt', 'r+'); t = f.read(); _ = f.write(t + '0'); f.close()",
    "reads natively and writes": "t = pl.read_csv('a.txt', has_header=False).item()\n"
    "_ = open('a.txt', 'w').write(str(t + 1))",
    "moves another onto it":
    "t = open('a.txt').read(); _ = open('b.txt', 'w').write(t + '0'); os.replace('b.txt', 'a.txt')",
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_what_a_plain_cell_adds_is_added_once(pair, way):
    cells = [MAKE, WAYS[way], SHOW]
    assert pair.run(*cells) == ["make"]
    for _ in range(2):
        pair.run(*cells)


APART = {
    "read in one cell and written in the next": [MAKE, *UP.split("; "), SHOW],
    "two cells append": [MAKE, APPEND, APPEND.replace("x", "y"), SHOW],
    "a step reads it as well": [MAKE, APPEND, step("read", "v = open('a.txt').read()"), SHOW],
    "a step appends below": [MAKE, APPEND, step("more", "_ = open('a.txt', 'a').write('y'); v = 1"), SHOW],
    "a step appends above": [MAKE, step("more", "_ = open('a.txt', 'a').write('y'); v = 1"), APPEND, SHOW],
    "a step reads it before": [MAKE, step("read", "v = open('a.txt').read()"), UP, SHOW],
    "a step writes it anew below": [MAKE, APPEND, SHOW, step("two", "_ = open('a.txt', 'w').write('B'); v = 1"), SHOW],
    "a step reads what another cell writes anew": [
        MAKE, step("read", "v = open('a.txt').read()"), "_ = open('a.txt', 'w').write('C')", SHOW,
    ],
    "a plain cell reads what another writes anew": [MAKE, SHOW, "_ = open('a.txt', 'w').write('C')", SHOW],
}  # fmt: skip


@pytest.mark.parametrize("story", APART)
def test_whoever_else_is_about_the_same_file(pair, story):
    for _ in range(3):
        pair.run(*APART[story])


def test_a_file_that_a_plain_cell_writes_anew_needs_no_step_to_run_again(pair):
    cells = [MAKE, step("read", "v = open('a.txt').read()"), "_ = open('a.txt', 'w').write('C')", SHOW]
    assert pair.run(*cells) == ["make", "read"]
    assert pair.run(*cells) == []
    assert pair.run(*cells) == []


def test_a_plain_cell_that_changed_it_and_is_gone(pair):
    """Where the notebook's file tells: without the cell, the step's file is as the step wrote it."""
    nb, file = pair.keel, pair.keel.folder / "a.ipynb"
    for change in (APPEND, "_ = open('a.txt', 'w').write('C')"):
        for cells, hits in (([MAKE, change], ["make"]), ([MAKE, "pass"], ["make"]), ([MAKE, "pass"], [])):
            nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells]), file)
            nb.cells = cells
            assert nb.run() == hits
            assert (nb.folder / "a.txt").read_text() == (
                "1" if change not in cells else {APPEND: "1x\n"}.get(change, "C")
            )
        nb.cells = ["%keel forget make"]
        nb.run()


def test_the_line_says_who_changed_it_and_what_to_do(notebook):
    book = notebook(["%%keel_step make\n_ = open('a.txt', 'w').write('1')", APPEND])
    book.run_all()
    shown = book.rerun()
    assert "make executes: file a.txt was changed by plain cell In[4] of run 1" in shown[0].stderr
    assert "make that cell a step" in shown[0].stderr
    book.edit(1, APPEND, f"%%keel_step add\n{APPEND}")
    book.rerun()
    shown = book.rerun()
    assert {step["decision"] for step in book.table().values()} == {"replayed"}
    assert (book.folder / "a.txt").read_text() == "1x\n"
