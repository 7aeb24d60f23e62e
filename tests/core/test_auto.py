"""Auto mode, decided: which way a cell goes, when it is cheap, when it is the same cell again (DESIGN 3.1)."""

import itertools

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from keel_notebook.core.auto import AUTO, Role, is_automatic, is_cheap, role_of
from keel_notebook.core.model import Digest, Entry, FlowId, Kind, Status, entry_id
from keel_notebook.core.passes import Places
from keel_notebook.payload.sizes import about, look

transform = TransformerManager().transform_cell

ROLES = {
    Role.NOTHING: ["", "\n\n", "# a comment", "%keel auto on", "%load_ext keel_notebook\n%keel auto on\n"],
    Role.PLAIN: [
        "!pip install x",
        "files = !ls",
        "x = 1\n!echo $x",
        "%%bash\nls",
        "%%writefile a.py\nx = 1",
        "%%html\n<b>",
        "%%time\n!ls",
        "%%time\n%%bash\nls",
        "%load_ext autoreload\n%autoreload 2",
        "%pip install x",
        "name = input('who? ')",
        "import getpass\nkey = getpass.getpass()",
        "breakpoint()",
        "df?",
        "%%\nx",
    ],
    Role.STEP: [
        "x = 1",
        "# a comment\nx = 1",
        "%matplotlib inline\nimport matplotlib",
        "%time x = f()",
        "%%time\nx = f()",
        "%%timeit\nf()",
        "%%capture out\nf()",
        "%%time\n%matplotlib inline\nf()",
        "%run train.py",
        "def f():\n    return my_input(1)",
        "node.input(3)",
        "text = '''\n!important\n'''",
    ],
}


@pytest.mark.parametrize(("role", "source"), [(role, source) for role, cells in ROLES.items() for source in cells])
def test_what_auto_mode_makes_of_a_cell(role, source):
    assert role_of(source, transform(source)) is role


CODE = Digest("c")


def entry(took, *, kind=Kind.PLAIN, status=Status.OK, code=CODE, looks=None, seq=1):
    ambient = {} if looks is None else {AUTO: looks}
    return Entry(entry_id(1, seq), FlowId("f"), 1, seq, "", kind, status, code=code, took_s=took, ambient=ambient)


LOOKS = {"n": "3"}


def test_a_cell_is_cheap_once_it_was_quick_with_inputs_that_look_alike():
    quick = entry(0.1, looks=LOOKS)
    assert is_cheap([quick], CODE, LOOKS, min_s=1.0)
    assert not is_cheap([], CODE, LOOKS, min_s=1.0), "nobody knows it"
    assert not is_cheap([quick], CODE, {"n": "4"}, min_s=1.0), "an input looks different"
    assert not is_cheap([quick], None, LOOKS, min_s=1.0), "its code cannot be read"
    assert not is_cheap([quick], Digest("d"), LOOKS, min_s=1.0), "edited"
    assert not is_cheap([quick], CODE, LOOKS, min_s=0.05), "a person cares for shorter cells now"
    assert not is_cheap([entry(0.1, status=Status.FAILED, looks=LOOKS)], CODE, LOOKS, min_s=1.0)
    assert not is_cheap([entry(0.1)], CODE, LOOKS, min_s=1.0), "a plain cell from before auto mode"


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_one_slow_record_of_the_same_code_is_enough_to_look_closely(order):
    entries = [entry(0.1, looks=LOOKS), entry(3.0, kind=Kind.STEP), entry(0.2, looks=LOOKS)]
    assert not is_cheap([entries[at] for at in order], CODE, LOOKS, min_s=1.0)


def test_only_what_ended_in_auto_mode_is_kept_as_a_plain_cell():
    assert is_automatic(entry(0.1, looks={}))
    assert is_automatic(entry(0.1, looks={}, status=Status.FAILED))
    assert not is_automatic(entry(0.1, looks={}, status=Status.RUNNING))
    assert not is_automatic(entry(0.1))
    assert not is_automatic(entry(3.0, kind=Kind.STEP, looks={}))


@pytest.mark.parametrize(
    ("cells", "again"),
    [
        ("abc", "..."),
        ("abcabc", "......"),
        ("abb", "..!"),
        ("abcb", "...!"),
        ("abcab", "....."),
        ("abcac", "....."),
        ("aa", ".!"),
        ("aba", "..."),
        ("abccc", "...!!"),
        ("abcbcb", "...!.!"),
    ],
)
def test_the_same_cell_again_though_no_earlier_cell_ran_since(cells, again):
    places = Places()
    assert "".join("!" if places.again(cell) else "." for cell in cells) == again


class Hostile:
    @property
    def nbytes(self):
        raise RuntimeError

    def __len__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        (1, 0, 100),
        ("x" * 10_000, 10_000, 11_000),
        (list(range(100_000)), 800_000, 8_000_000),
        ([["x" * 1000] * 100] * 100, 1_000_000, 20_000_000),
        ({n: str(n) * 1000 for n in range(1000)}, 1_000_000, 5_000_000),
        (bytearray(1_000_000), 1_000_000, 1_100_000),
        (about, 0, 0),
        (pytest, 0, 0),
        (Hostile(), 1, 1000),
    ],
)
def test_about_how_large_a_value_is(value, least, most):
    assert least <= about(value) <= most


def test_arrays_and_frames_say_it_themselves():
    np = pytest.importorskip("numpy")
    pd = pytest.importorskip("pandas")
    array = np.zeros((1000, 1000))
    assert about(array) == 8_000_000
    assert about(pd.DataFrame(array)) >= 8_000_000
    assert about({"weights": [array]}) >= 8_000_000
    assert look(array) == "ndarray (1000, 1000)"
    assert look([1, 2]) == "list 2"
    assert look(Hostile()) == "Hostile "
