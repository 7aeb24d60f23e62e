"""Files that several steps change one after the other (DESIGN 6, Files).

Where all of them replay, the file stays as the last one left it, and a step between counts with what it would hold at
its place. Who would read a later state makes the step above execute, or stops (E031).
"""

import pytest

from tests.cases.test_files import LIBRARIES, step
from tests.cases.test_rewritten_files import SHOW, Pair
from tests.crash.shells import Zygote
from tests.support.notebook import Notebook

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def zygote():
    process = Zygote(*LIBRARIES)
    yield process
    process.close()


@pytest.fixture
def pair(zygote, tmp_path):
    return Pair(zygote, tmp_path)


WRITE_1, WRITE_B = "open('a.txt', 'w').write('1'); v = 1", "open('a.txt', 'w').write('B'); v = 1"
WRITE_LONG = "open('a.txt', 'w').write('long'); v = 1"
UP = "v = int(open('a.txt').read()); open('a.txt', 'w').write(str(v + 1))"
READ = "v = open('a.txt').read()"
PATH = "import sys; sys.path.insert(0, os.getcwd()); sys.dont_write_bytecode = True"
MODULE_1, MODULE_2 = (f"v = open('helper.py', 'w').write('def f(): return {'-' * n}1')" for n in (0, 1))
CHAINS = {
    "read between": ([step("one", WRITE_1), step("read", READ), step("two", WRITE_B), SHOW], []),
    "changed and read between": (
        [step("one", WRITE_1), step("up", UP), step("read", READ), step("more", UP), SHOW],
        [],
    ),
    "read by a plain cell between": ([step("one", WRITE_1), SHOW, step("two", WRITE_B), SHOW], ["one", "two"]),
    "read between through a name": (
        ["OUT = Path('a.txt')", step("one", WRITE_1), "print(OUT.read_text())", step("two", WRITE_B), SHOW],
        ["one", "two"],
    ),
    "read between through a function": (
        ["def show(): print(open('a.txt').read())", step("one", WRITE_1), "show()", step("two", WRITE_B), SHOW],
        ["one", "two"],
    ),
    "imported by a plain cell between": (
        [PATH, step("one", MODULE_1), "import helper", step("read", "v = helper.f()"), step("two", MODULE_2)],
        ["one", "two"],
    ),
    "imported by a step between": (
        [PATH, step("one", MODULE_1), step("read", "import helper; v = helper.f()"), step("two", MODULE_2), "pass"],
        ["one", "two"],
    ),
    "asked for its size between": (
        [step("one", WRITE_1), step("size", "v = os.path.getsize('a.txt')"), step("two", WRITE_LONG), SHOW],
        ["one", "size", "two"],
    ),
    "asked whether it is there between": (
        [step("one", WRITE_1), step("there", "v = os.path.exists('a.txt')"), step("two", WRITE_B), SHOW],
        [],
    ),
    "imported in part between": (
        [PATH, step("one", MODULE_1), "from helper import f", step("read", "v = f()"), step("two", MODULE_2)],
        ["one", "two"],
    ),
    "removed below": (
        [step("one", WRITE_1), step("read", READ), step("gone", "os.remove('a.txt'); v = 1"), "pass"],
        [],
    ),
    "read natively between": (
        [
            step("one", "pd.DataFrame({'a': [1]}).to_parquet('a.parquet'); v = 1"),
            step("read", "v = pd.read_parquet('a.parquet').a[0]"),
            step("two", "pd.DataFrame({'a': [2]}).to_parquet('a.parquet'); v = 1"),
        ],
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("chain", CHAINS)
def test_a_replay_knows_what_a_file_would_hold_between_two_steps(pair, chain):
    cells, again = CHAINS[chain]
    pair.run(*cells)
    assert pair.run(*cells) == again
    assert pair.run(*cells) == again


def test_other_inputs_at_the_head_of_a_chain_and_back(pair):
    cells = [step("one", "open('a.txt', 'w').write(str(p)); v = p"), step("up", UP), step("read", READ), SHOW]
    for p in (1, 5, 1, 5, 5):
        pair.run(f"p = {p}", *cells)


EDITS = {
    "the step that changes it": (1, UP.replace("+ 1", "+ 10")),
    "the step that reads it between": (2, READ + " * 2"),
}


def _story(folder, at, edited):
    texts = [WRITE_1, UP, READ, "open('a.txt', 'w').write('end'); v = 1"]
    cells = [f"%%keel_step s{n}\nhit('s{n}')\n{text}\nprint(v)" for n, text in enumerate(texts)] + [SHOW]
    nb = Notebook(folder, cells)
    nb.run_all()
    nb.edit(at, texts[at], edited)
    nb.edit(at, f"hit('s{at}')", f"hit('s{at}!')")
    return nb


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_step_reads_what_the_steps_above_it_leave_and_not_what_those_below_left(tmp_path, edit):
    at, edited = EDITS[edit]
    nb = _story(tmp_path, at, edited)
    try:
        shown = nb.rerun()
        assert [each.text for each in shown] == (
            ["1\n", "1\n", "11\n", "1\n", "end\n"] if at == 1 else ["1\n", "1\n", "22\n", "1\n", "end\n"]
        )
        assert f"file a.txt was changed below, and step s{at} was edited" in shown[0].stderr
    finally:
        nb.close()


@pytest.mark.parametrize("same_kernel", [True, False])
def test_where_nobody_could_tell_beforehand_a_step_stops_that_would_read_a_later_state(tmp_path, same_kernel):
    """E031, and the way out works: the file is never read as a later step left it."""
    texts = (WRITE_1, UP.replace("+ 1", "+ k"))
    steps = (f"%%keel_step s{n}\nhit('s{n}')\n{text}" for n, text in enumerate(texts))
    nb = Notebook(tmp_path, ["k = 1", *steps, SHOW])
    try:
        assert nb.run_all()[-1].text == "2\n"
        nb.edit(0, "k = 1", "k = 10")
        shown = nb.rerun()
        assert "KEEL-E031" in shown[-1].error
        assert "a.txt holds what this step or one below it left" in shown[-1].error
        assert nb.hits == "s0 s1"
        shown = (nb.run_all if same_kernel else nb.rerun)()
        assert "step s1 was refused for it" in shown[1].stderr
        assert shown[-1].text == "11\n", "Run All once more is the way out"
        assert nb.hits == "s0 s1 s0 s1"
        assert nb.rerun()[-1].text == "11\n"
        assert nb.hits == "s0 s1 s0 s1", "and none of both runs again then"
    finally:
        nb.close()


@pytest.mark.parametrize("imported", ["above", "between"])
def test_a_module_that_two_steps_write_and_autoreload_takes_in(notebook, imported):
    """A step between never sees what the step below wrote: Run All of an unchanged notebook gives what it gave."""
    load = "%load_ext autoreload\n%autoreload 2"
    one, two = (f"%%keel_step {n}\nhit('{n}'); w = open('helper.py', 'w').write({t!r})" for n, t in MODULES.items())
    above, between = ("import helper", "pass") if imported == "above" else ("pass", "import helper")
    uses = [f"%%keel_step {n}\nhit('{n}'); {n} = helper.f()" for n in ("early", "late")]
    nb = notebook([load, above, one, between, uses[0], two, uses[1], "print(early, late)"])
    (nb.folder / "helper.py").write_text("def f(): return 0\n")
    assert nb.run_all()[-1].text == "1 22\n"
    for _ in range(2):
        assert nb.rerun()[-1].text == "1 22\n"


MODULES = {"one": "def f(): return 1\n", "two": "def f(): return 22\n"}
