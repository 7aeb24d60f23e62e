"""What keel itself looks at while a step runs is no input of it: in a real kernel, whose cells have file names."""

import json
import subprocess
import sys

import pytest

from tests.support.notebook import Notebook

HELPER = "LIMIT = 3\ndef helped(): return LIMIT\n"
PLAIN = 9
BODIES = {
    "environment": "import os\nfound = os.environ.get('NOT_SET', '2')",
    "local module": "import helper\nfound = helper.helped()",
    "class": "class Point:\n    def __init__(self): self.x = 1\nfound = Point().x",
    "warning": "import warnings\nwarnings.warn('careful')\nfound = 1",
    "log": "import logging\nlogging.getLogger('x').warning('hm')\nfound = 1",
    "thread": "import threading\nt = threading.Thread(target=int); t.start(); t.join(); found = 1",
    "durable call": "import keel_notebook as keel\nfound = keel.call(len, 'abc')",
    "traceback": "import traceback as tb\ntry: 1 / 0\nexcept ZeroDivisionError: found = bool(tb.format_exc())",
    "source": "import inspect\ndef f(): return 1\nfound = len(inspect.getsource(f))",
    "settings": "import pandas as pd\npd.set_option('display.max_rows', 7)\nfound = 1",
    "plot": "import matplotlib.pyplot as plt\nplt.plot([1, 2]); found = 1",
}


LIBRARIES = ("numpy", "pandas", "pyarrow", "polars", "matplotlib.figure")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What a second kernel said about each step, where the records are, and which libraries keel brought along."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "helper.py").write_text(HELPER)
    loaded = f"import sys\nprint([name for name in {LIBRARIES!r} if name in sys.modules])"
    marks = [f"%%keel_step s{at}\n{body}" for at, body in enumerate(BODIES.values())]
    notebook = Notebook(folder, [*marks[:PLAIN], loaded, *marks[PLAIN:]])
    try:
        first = notebook.run_all()
        assert [shown.error for shown in first] == [""] * (len(marks) + 1)
        again = notebook.rerun()
    finally:
        notebook.close()
    said = [shown.stderr for shown in again[:PLAIN] + again[PLAIN + 1 :]]
    return said, notebook.path, [first[PLAIN].text, again[PLAIN].text]


@pytest.mark.parametrize("at", range(len(BODIES)), ids=list(BODIES))
def test_a_step_that_uses_no_file_has_none_and_replays_in_a_new_kernel(told, at):
    said, path, _ = told
    assert "executes" not in said[at]
    command = [sys.executable, "-m", "keel_notebook", "show", f"s{at}", "--in", str(path), "--json"]
    record = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    read = ["helper.py"] if "import helper" in list(BODIES.values())[at] else []  # where the step itself found it
    assert [file["path"] for file in record["files"]] == read


def test_keel_imports_no_library_that_the_notebook_does_not(told):
    assert told[2] == ["[]\n", "[]\n"]
