"""What plain cells told libraries that keep it to themselves is an input of the steps that use them (DESIGN 6)."""

import pytest

PACKAGE = """
_now = {"a": 1, "b": 1}
def set_mode(a): _now["a"] = a
def tell(a, **more): _now["a"] = a
def enable(a=2):
    _now["a"] = a
    return "before"
def plot(a): _now["b"] = a
def save(a): _now["b"] = a
class Session:
    @classmethod
    def configure(cls, a): _now["a"] = a
def get(): return _now["a"]
"""
HEAD = """
import sys; sys.path.insert(0, "site-packages")
import secretive
from secretive import set_mode, get, Session
import colorsys
level = 3
def start(n): secretive.tell(n)
def outer(): start(5)
"""
STEPS = """
# keel: step uses
hit("uses"); x = secretive.get()
# ---
# keel: step function
hit("function"); y = get()
# ---
# keel: step none
hit("none"); z = colorsys.rgb_to_hls(0.1, 0.2, 0.3)
"""


@pytest.fixture
def nb(book):
    made = book(HEAD + "# ---\npass\n# ---\n" + STEPS + "# ---\nprint(x == y == get())")
    package = made.folder / "site-packages" / "secretive"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(PACKAGE)
    return made


@pytest.mark.parametrize(
    ("says", "edited"),
    [
        ("pass", "secretive.set_mode(2)"),
        ("secretive.set_mode(2)", "pass"),
        ("secretive.set_mode(2)", "secretive.set_mode(3)"),
        ("set_mode(2)", "set_mode(3)"),
        ("secretive.tell(2)", "secretive.tell(4)"),
        ("if level: secretive.tell(2)", "if level: secretive.tell(4)"),
        ("Session.configure(2)", "Session.configure(3)"),
        ("old = secretive.enable(2)", "old = secretive.enable(3)"),
        ("n = 2\nsecretive.tell(n)", "n = 3\nsecretive.tell(n)"),
        ("more = {'a': 2}\nsecretive.tell(**more)", "more = {'a': 3}\nsecretive.tell(**more)"),
        ("secretive.tell(2)\nsecretive.tell(3)", "secretive.tell(3)\nsecretive.tell(2)"),
        ("start(2)", "start(3)"),
        ("start(2)", "outer()"),
        ("for n in [1, 2]: start(n)", "for n in [1, 3]: start(n)"),
    ],
)
def test_an_edited_call_makes_the_steps_of_that_library_execute_and_no_other(nb, says, edited):
    nb.cells[1] = says
    assert nb.shows() == nb.shows() == "True"
    assert nb.hits == "uses function none", "unedited, everything replays"
    nb.cells[1] = edited
    run = nb.run_all()
    assert run.printed[-1] == "True\n"
    assert nb.hits == "uses function none uses function"
    assert (
        "uses executes: settings of secretive a plain cell calls something else of it now" in run.acknowledged[4]["err"]
    )
    nb.run_all()
    assert nb.hits == "uses function none uses function"
    nb.cells[1] = says
    assert nb.shows() == "True"
    assert nb.hits == "uses function none uses function", "going back is instant"


@pytest.mark.parametrize(
    ("says", "edited"),
    [
        ("secretive.plot(2)", "secretive.plot(3)"),
        ("secretive.save(2)", "secretive.save(3)"),
        ("secretive.get()", "pass"),
        ("v = secretive.get()", "v = [secretive.get()]"),
        ("import csv; csv.field_size_limit(10)", "import csv; csv.field_size_limit(20)"),
        ("print(level)", "print(level + 1)"),
        ("secretive.set_mode(2)", "# the mode\nsecretive.set_mode( 2 )"),
        ("def f(): secretive.set_mode(4)", "def f(): secretive.set_mode(5)"),
    ],
)
def test_an_edit_that_tells_that_library_nothing_executes_nothing(nb, says, edited):
    nb.cells[1] = says
    nb.run_all()
    nb.cells[1] = edited
    nb.run_all()
    assert nb.hits == "uses function none"


def test_the_settings_of_sklearn_are_an_input(book):
    sklearn = pytest.importorskip("sklearn")
    assert sklearn
    nb = book("""
import sklearn, numpy as np
from sklearn.preprocessing import StandardScaler
# ---
sklearn.set_config(transform_output="default")
# ---
# keel: step fit
hit("fit"); t = type(StandardScaler().fit_transform(np.ones((2, 2)))).__name__
# ---
print(t)
""")
    assert nb.shows() == nb.shows() == "ndarray"
    nb.edit(1, "default", "pandas")
    assert nb.shows() == nb.shows() == "DataFrame"
    assert nb.hits == "fit fit"
