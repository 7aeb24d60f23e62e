"""What a local module found in files or the environment when it was imported is an input of who uses it (traps 16)."""

import ast

import pytest

from keel_notebook.core.computed import computed

HERE = "import sys; sys.path.insert(0, '.')"
CELLS = f"""
{HERE}
import MODULE
# ---
%%keel_step price
hit("price"); total = USE
# ---
print(total)
"""


@pytest.mark.parametrize(
    ("source", "use"),
    [
        ("import json\nRATE = json.load(open('conf.txt'))", "settings.RATE"),
        ("import json\n_C = json.load(open('conf.txt'))\ndef rate(): return _C", "settings.rate()"),
        ("import json\nwith open('conf.txt') as f:\n    CFG = {'r': json.load(f)}\nRATE = CFG['r']", "settings.RATE"),
        ("RATES = []\nfor line in open('conf.txt'):\n    RATES.append(int(line))", "settings.RATES[0]"),
        ("import pandas as pd\nT = pd.read_csv('conf.txt', header=None)", "int(settings.T.iloc[0, 0])"),
        ("import numpy as np\nT = np.loadtxt('conf.txt')", "int(settings.T)"),
        ("import os\nif open('conf.txt').read() == '2':\n    RATE = 2\nelse:\n    RATE = 1", "settings.RATE"),
        ("RATES = {n: int(open('conf.txt').read()) for n in range(3000)}", "settings.RATES[7]"),
        (
            "from dataclasses import dataclass as d\n@d\nclass C:\n    rate: str\nCFG = C(open('conf.txt').read())",
            "settings.CFG.rate",
        ),
        ("import types\nCFG = types.SimpleNamespace(rate=int(open('conf.txt').read()))", "settings.CFG.rate"),
        ("import pathlib\nP = pathlib.Path('in') / open('conf.txt').read()", "settings.P.name"),
        ("def _load(): return int(open('conf.txt').read())\nRATE = _load()", "settings.RATE"),
    ],
)
def test_a_module_that_read_another_file_at_its_import_is_another_input(book, source, use):
    notebook = book(CELLS.replace("MODULE", "settings").replace("USE", use))
    (notebook.folder / "settings.py").write_text(source + "\n")
    (notebook.folder / "conf.txt").write_text("1")
    assert [notebook.shows(), notebook.shows()] == ["1", "1"]
    assert notebook.hits == "price"
    (notebook.folder / "conf.txt").write_text("2")
    assert [notebook.shows(), notebook.shows()] == ["2", "2"]
    assert notebook.hits == "price price"


@pytest.mark.parametrize(
    "source",
    [
        "import time, random, datetime\n"
        "T0 = time.time(); X = random.SystemRandom().random(); D = datetime.datetime.now()",
        "import threading, logging\nlock = threading.Lock(); log = logging.getLogger(__name__)",
        "from time import perf_counter as p\nstart = p()",
    ],
)
def test_clocks_and_what_cannot_be_compared_make_no_step_execute(book, source):
    notebook = book(CELLS.replace("MODULE", "settings").replace("USE", "settings.K"))
    (notebook.folder / "settings.py").write_text(source + "\nK = 1\n")
    assert [notebook.shows() for _ in range(3)] == ["1", "1", "1"]
    assert notebook.hits == "price"


def test_a_step_that_imports_the_module_itself_replays_too(book):
    cell = "%%keel_step {0}\nimport settings\nhit('{0}'); {0}{0} = settings.RATE"
    notebook = book(f"{HERE}\n# ---\n{cell.format('a')}\n# ---\n{cell.format('b')}")
    (notebook.folder / "settings.py").write_text("RATE = int(open('conf.txt').read())\n")
    (notebook.folder / "conf.txt").write_text("1")
    for _ in range(3):
        notebook.run_all()
    assert notebook.hits == "a b"
    (notebook.folder / "conf.txt").write_text("2")
    assert notebook.shows("print(aa, bb)") == "2 2"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import os as o\na = o.environ['X']\nfrom os import environ\nb = 'Y' in environ", ("a", "b")),
        ("a = 1; b = [a, 2]; c = 'x y'.split(); d = dict(k=1)", ()),
        ("a = f(); b = a + 1; c = b", ("a", "b", "c")),
        ("def f():\n    a = g()\nclass C:\n    a = g()", ()),
        ("import time\nt = time.time(); u = t + 1; v = h(time.time())", ()),
        ("rows = []\nfor line in open('f'):\n    rows.append(line)", ("line", "rows")),
        ("import json\nC = {}\nC.update(json.load(f))\nimport logging\nlogging.basicConfig()", ("C",)),
        ("try:\n    import x\n    n = x.n()\nexcept ImportError:\n    n = 0", ("n",)),
    ],
)
def test_names_that_the_source_does_not_determine(source, names):
    assert computed(ast.parse(source)) == names
