"""A copied notebook is another flow: it never changes what the original replays, and never replays it wrongly."""

import nbformat
import pytest

from tests.support.notebook import HIT, LOAD

pytestmark = pytest.mark.crash

CELLS = [
    "import threading\nlock = threading.Lock(); n = 1",
    "%%keel_step a\nhit('a'); rows = [n, lock.locked()]",
    "%%keel_step b\nhit('b'); alias = rows",
    "rows.append(0); print(rows, alias is rows)",
]


def test_the_original_and_its_edited_copy_in_turns(warm_process, tmp_path):
    def run(name, cells):
        book = nbformat.v4.new_notebook()
        book.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
        nbformat.write(book, tmp_path / name)
        named = f"import os; os.environ['JPY_SESSION_NAME'] = {str(tmp_path / name)!r}"
        done = warm_process.run(tmp_path, [named, LOAD, HIT, *cells])
        assert not done.error
        return done.printed[-1].strip()

    copy = [cell.replace("n = 1", "n = 2") for cell in CELLS]
    assert run("a.ipynb", CELLS) == "[1, False, 0] True"
    assert run("copy.ipynb", copy) == "[2, False, 0] True"
    before = (tmp_path / "hits.txt").read_text()
    assert before.split() == ["a", "b", "a", "b"]
    for name, cells, truth in (("a.ipynb", CELLS, 1), ("copy.ipynb", copy, 2)) * 2:
        assert run(name, cells) == f"[{truth}, False, 0] True"
    assert (tmp_path / "hits.txt").read_text() == before
