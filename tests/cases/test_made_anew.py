"""`%keel restore --run`: what no record holds is made anew and brought to where it stood. Real kernels and kills."""

import pytest

pytestmark = pytest.mark.kernel

MADE = """
import threading, sqlite3
open("lines.txt", "w").write("one\\ntwo\\nthree\\n")
# ---
%%keel_step mk
hit("mk"); made = {make}
# ---
%%keel_step other
hit("other"); n = 1
# ---
{change}
"""


@pytest.mark.parametrize("mark", ["%%keel_step use\n", ""], ids=["step", "plain"])
@pytest.mark.parametrize(
    "made",
    [
        ("(x * x for x in range(5))", "first = next(made)", "next(made)", "1"),
        ("iter([4, 5, 6])", "first = next(made)", "next(made)", "5"),
        ("map(str, [4, 5, 6])", "first = next(made)", "next(made)", "5"),
        ("zip([1, 2], [3, 4])", "for first in made: break", "next(made)", "(2, 4)"),
        ("open('lines.txt')", "first = made.readline()", "made.readline().strip()", "two"),
        ("threading.Lock()", "first = made.acquire()", "made.locked()", "True"),
        ("sqlite3.connect(':memory:')", "first = made.execute('create table t as select 7') and 1",
         "made.execute('select * from t').fetchone()", "(7,)"),
    ],
)  # fmt: skip
def test_what_is_made_anew_is_brought_to_where_it_stood(notebook, made, mark):
    make, change, ask, was = made
    book = notebook(MADE.replace("{make}", make).replace("{change}", f"{mark}hit('use'); {change}"))
    if change.startswith("for"):
        book.cells[-1] = book.cells[-1].replace("; for", "\nfor")
    assert [shown.status for shown in book.run_all()][-1] == "ok"
    book.kill()
    book.start()
    book.execute("%load_ext keel_notebook")
    assert "not restored: made" in book.execute("%keel restore").text
    shown = book.execute("%keel restore --run").text
    assert book.execute(f"print({ask})").text.strip() == was, shown
    assert "made anew by running them:" in shown
    assert "made" not in shown.partition("\n")[0], "it was not restored without running a cell"
    assert book.hits == "mk other use mk use", "what has nothing to do with it does not run"


def test_what_cannot_be_brought_to_where_it_stood_is_named(notebook):
    book = notebook("""
%%keel_step mk
made = (x * x for x in range(5))
# ---
%%keel_step use --effect exactly_once
first = next(made); hit("use")
""")
    book.run_all()
    book.kill()
    book.start()
    book.execute("%load_ext keel_notebook")
    book.execute("%keel restore")
    shown = book.execute("%keel restore --run").text
    assert "not restored: made (made anew, step use below it did not run: run step use yourself:" in shown
    assert "made anew by running them" not in shown
    assert book.hits == "use"
