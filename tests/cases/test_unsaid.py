"""What a step changes without naming it: by way of a handler of ``logging``, of a module that holds the same list, of a
registry of a library (DESIGN 6, Writes; trap 16). Each story is compared with the same cells in a folder without keel.
"""

import pytest

from tests.cases.test_files import LIBRARIES, step
from tests.cases.test_rewritten_files import Pair
from tests.crash.shells import Zygote

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def zygote():
    process = Zygote(*LIBRARIES)
    yield process
    process.close()


@pytest.fixture
def pair(zygote, tmp_path):
    made = Pair(zygote, tmp_path)
    for book in (made.keel, made.plain):
        (book.folder / "local.py").write_text("BASE = 4\nSEEN = []\ndef add(x): SEEN.append(x)\n")
    return made


HANDLER = """
import logging
rows = []
class Keeps(logging.Handler):
    def emit(self, record): rows.append(record.getMessage())
log = logging.getLogger("x"); log.setLevel("INFO"); log.handlers[:] = [Keeps()]
"""
STREAM = """
import io, logging
kept = io.StringIO()
log = logging.getLogger("x"); log.setLevel("INFO"); log.handlers[:] = [logging.StreamHandler(kept)]
"""
INSIDE = """
import logging
class Keeps(logging.Handler):
    def __init__(self): super().__init__(); self.rows = []
    def emit(self, record): self.rows.append(record.getMessage())
keeps = Keeps()
log = logging.getLogger("x"); log.setLevel("INFO"); log.handlers[:] = [keeps]
"""
HERE = "import sys; sys.path.insert(0, '.'); sys.dont_write_bytecode = True"
SEEN = "print(local.SEEN, seen is local.SEEN)"
ONE = step("s", "log.info('one'); v = 1")
ARRAY = step("t", "seen.append(np.ones(1)); v = 2")
STORIES = {
    "a handler that appends": ([HANDLER, step("s", "log.info('one'); v = 1"), "log.info('two')\nprint(rows)"], True),
    "a handler, by the logger's name": (
        [HANDLER, step("s", "logging.getLogger('x').info('one'); v = 1"), "print(rows)"],
        True,
    ),
    "a handler, in a function": (
        [HANDLER, "def say(): log.info('one')", step("s", "say(); v = 1"), "print(rows)"],
        True,
    ),
    "two steps that log": (
        [HANDLER, step("s", "log.info('one'); v = 1"), step("t", "log.info('two'); v = len(rows)"), "print(rows)"],
        True,
    ),
    "a stream": ([STREAM, step("s", "log.info('one'); v = 1"), "log.info('two')\nprint(kept.getvalue())"], False),
    "a handler that keeps": ([INSIDE, ONE, "log.info('two')\nprint(keeps.rows)"], False),
    "a module's list": (
        [HERE, "import local", step("s", "seen = local.SEEN; v = 1"), step("t", "seen.append(1); v = 2"), SEEN],
        True,
    ),
    "a module's list, of an import in the step": (
        [HERE, step("s", "import local; seen = local.SEEN; v = 1"), step("t", "seen.append(1); v = 2"), SEEN],
        True,
    ),
    "a module's list, changed by a plain cell": (
        [HERE, step("s", "from local import SEEN as seen; v = 1"), "import local; local.add(2)", SEEN],
        True,
    ),
    "a module's list that holds an array": (
        [HERE, "import local", step("s", "seen = local.SEEN; v = 1"), ARRAY, SEEN],
        True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_what_a_step_changed_without_a_name_is_there_after_a_replay(pair, story):
    cells, replays = STORIES[story]
    first = pair.run(*cells)
    for _ in range(2):
        again = pair.run(*cells)
        assert (again == []) or (not replays and again == first)


ACCESSOR = """
@{register}("acc")
class Acc:
    def __init__(self, of): self.of = of
    def total(self): return {factor} * int(self.of["a"].sum())
"""
FRAMES = {
    "pandas": ("df = pd.DataFrame({'a': [1, 2]})", "pd.api.extensions.register_dataframe_accessor"),
    "polars": ("df = pl.DataFrame({'a': [1, 2]})", "pl.api.register_dataframe_namespace"),
}


@pytest.mark.parametrize("library", FRAMES)
def test_an_accessor_that_a_step_registers_is_there_after_a_replay_and_its_code_counts(pair, library):
    """C53 for what hangs on a class of a library; and C25: who uses ``df.acc`` uses the class behind it."""
    frame, register = FRAMES[library]
    use, show = step("use", "v = df.acc.total()"), "print(v, df.acc.total())"
    for factor, again in ((1, ["reg", "use"]), (1, []), (2, ["reg", "use"]), (2, []), (1, [])):
        made = step("reg", ACCESSOR.format(register=register, factor=factor) + "v = 0")
        assert pair.run(frame, made, use, show) == again
    for factor, again in ((3, ["use"]), (3, []), (4, ["use"])):
        assert pair.run(frame, ACCESSOR.format(register=register, factor=factor), use, show) == again


NOTED = "asked.append('it')"
LOOKED_AT = {
    "__getattr__": f"class P:\n    def __getattr__(self, name):\n        {NOTED}\n        raise AttributeError(name)",
    "a property": f"class P:\n    shape = nbytes = property(lambda self: {NOTED})",
    "__len__": f"class P:\n    def __len__(self):\n        {NOTED}\n        return 3",
    "__iter__": f"class P:\n    def __iter__(self):\n        {NOTED}\n        return iter(())",
    "__eq__": f"class P:\n    __hash__ = None\n    def __eq__(self, other): {NOTED}",
    "__repr__": f"class P:\n    def __repr__(self): {NOTED}",
    "__bool__": f"class P:\n    def __bool__(self): {NOTED}",
}


@pytest.mark.parametrize("way", LOOKED_AT)
def test_looking_at_a_value_runs_no_code_of_its_class(pair, way):
    """What a class of the notebook does when it is asked is the notebook's own affair: keel does not ask."""
    made = f"asked = []\n{LOOKED_AT[way]}\np = P()"
    assert pair.run(made, step("s", "v = id(p) > 0"), step("t", "q = P(); v = 1"), "print(asked)")[:1] == ["s"]
