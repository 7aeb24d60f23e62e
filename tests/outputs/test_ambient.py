"""State that has no name: what a step changes is put back in another process (DESIGN 6, Ambient state)."""

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keel_notebook.capture.ambient import AmbientWatch
from keel_notebook.capture.wire import NotPlainError, from_wire, to_wire
from tests.outputs.worker import Worker


@pytest.fixture
def here(tmp_path):
    """The process in which the step runs."""
    (tmp_path / "here").mkdir()
    worker = Worker(tmp_path / "here")
    yield worker
    worker.close()


@pytest.fixture
def there(tmp_path):
    """Another process, on another machine: another folder, nothing imported."""
    (tmp_path / "there").mkdir()
    worker = Worker(tmp_path / "there")
    yield worker
    worker.close()


def test_a_step_that_changes_nothing_leaves_nothing(here):
    here.run("import random, decimal, logging, numpy.random, pandas, matplotlib.pyplot")
    assert here.record("x = 1 + 1; len(str(x))") == {}


CHANGES = {
    "random": [
        ("random.seed(1); random.random()", "random.random()"),
        ("random.seed(1); random.gauss(0, 1)", "[random.gauss(0, 1), random.gauss(0, 1)]"),
    ],
    "numpy": [
        ("numpy.random.seed(1); numpy.random.rand(3)", "numpy.random.rand(3).tolist()"),
        ("numpy.random.seed(1); numpy.random.randn()", "numpy.random.randn(3).tolist()"),
        ("numpy.set_printoptions(precision=3, suppress=True)", "repr(numpy.array([1.23456, 1e-9]))"),
        ("numpy.seterr(divide='ignore', over='raise')", "numpy.geterr()"),
    ],
    "pandas": [
        ("pandas.set_option('display.max_rows', 7)", "pandas.get_option('display.max_rows')"),
        ("pandas.options.display.precision = 2", "pandas.get_option('display.precision')"),
    ],
    "matplotlib": [
        ("matplotlib.rcParams['lines.linewidth'] = 7", "matplotlib.rcParams['lines.linewidth']"),
        ("matplotlib.rcParams['figure.figsize'] = (3, 4)", "list(matplotlib.rcParams['figure.figsize'])"),
        (
            "from cycler import cycler; matplotlib.rcParams['axes.prop_cycle'] = cycler(color=['r', 'g'])",
            "matplotlib.rcParams['axes.prop_cycle'].by_key()",
        ),
    ],
    "decimal": [
        ("decimal.getcontext().prec = 5", "str(decimal.Decimal(1) / 3)"),
        (
            "decimal.getcontext().traps[decimal.Inexact] = True",
            "decimal.getcontext().traps[decimal.Inexact]",
        ),
    ],
    "locale": [("locale.setlocale(locale.LC_NUMERIC, 'C.UTF-8')", "locale.setlocale(locale.LC_NUMERIC)")],
    "logging": [
        ("logging.getLogger('a.b').setLevel(10)", "logging.getLogger('a.b').level"),
        ("logging.disable(30)", "logging.root.manager.disable"),
        (
            "logging.basicConfig(level=logging.INFO, format='%(levelname)s')",
            "[(h.level, h.formatter._fmt) for h in logging.root.handlers] + [logging.root.level]",
        ),
    ],
    "warnings": [
        ("warnings.filterwarnings('ignore', 'old', DeprecationWarning, 'my')", "str(warnings.filters[0])"),
    ],
    "os": [("os.environ['MODE'] = 'prod'; os.environ.pop('HOME')", "[os.environ['MODE'], os.environ.get('HOME')]")],
    "sys": [("sys.path.insert(1, '/opt/x'); sys.path.append('/opt/y')", "[sys.path[1], sys.path[-1]]")],
}
LIBRARIES = ("numpy", "pandas", "matplotlib")


@pytest.mark.parametrize("modules", [*([name] for name in LIBRARIES), sorted(CHANGES.keys() - LIBRARIES)], ids=",".join)
def test_what_a_step_changes_is_put_back_where_nothing_is_imported_yet(here, there, modules):
    for module in sorted(modules):
        for code, check in CHANGES[module]:
            change = here.record(f"import {module}\n{code}")
            assert there.replay(change) == [], code
            assert there.value(check, f"import {module}") == here.value(check), code


def test_c37_the_generators_go_on_from_the_recorded_state(here, there):
    change = here.record(
        "import numpy as np, random; np.random.seed(1); random.seed(1); np.random.rand(3); random.random()"
    )
    there.replay(change)
    draw = "[np.random.rand(2).tolist(), random.random()]"
    assert there.value(draw, "import numpy as np, random") == here.value(draw)


def test_the_same_change_is_the_same_bytes(here, there):
    code = "import numpy, pandas, warnings, os, sys; numpy.random.seed(3); os.environ |= {'B': '1', 'A': '2'}\n"
    code += "pandas.set_option('display.width', 50); warnings.simplefilter('ignore'); sys.path.append('/x')"
    assert msgpack.packb(here.record(code)) == msgpack.packb(there.record(code))


def test_the_working_directory_is_put_back_relative_to_where_the_kernel_started(here, there, tmp_path):
    change = here.record("import os; os.makedirs('data/raw'); os.chdir('data/raw')")
    assert change == {"cwd": "data/raw"}
    (tmp_path / "there" / "data" / "raw").mkdir(parents=True)
    assert there.replay(change) == []
    assert there.value("os.getcwd()", "import os") == str(tmp_path / "there" / "data" / "raw")


def test_a_working_directory_that_is_not_there_is_named(here, there):
    change = here.record("import os; os.mkdir('gone'); os.chdir('gone')")
    assert there.replay(change) == ["the working directory: there is no folder gone"]


def test_c103_the_value_of_a_secret_variable_is_not_stored_and_that_is_said(here):
    change = here.record("import os; os.environ['API_KEY'] = 'hunter22hunter'; os.environ['MODE'] = 'prod'")
    assert change["environ"] == {"set": {"MODE": "prod"}, "gone": []}
    assert change["unrestorable"] == ["os.environ['API_KEY']: it looks like a secret, so its value is not stored"]
    assert b"hunter22" not in msgpack.packb(change)


def test_what_cannot_be_put_back_is_named(here):
    code = """
        import logging, numpy, pandas, matplotlib
        matplotlib.use('agg')
        import matplotlib.pyplot as plt
        plt.figure(3)
        logging.root.addHandler(logging.FileHandler('x.log'))
        numpy.set_printoptions(formatter={'float': str})
        pandas.set_option('display.float_format', '{:.1f}'.format)
    """
    assert here.record("if True:\n" + code)["unrestorable"] == [
        "logging: a handler of type FileHandler",
        "np.printoptions formatter: it is a builtins.type",
        "pandas option display.float_format: it is a builtins.builtin_function_or_method",
        "pyplot figure 3: it was left open",
    ]


def test_c59_a_figure_that_a_step_closed_is_closed_again_and_none_is_opened(here, there):
    opened = "import matplotlib; matplotlib.use('agg'); import matplotlib.pyplot as plt; plt.figure(1); plt.figure(2)"
    here.run(opened)
    there.run(opened)
    change = here.record("plt.close(1)")
    assert change == {"figures": [1]}
    assert there.replay(change) == []
    assert there.value("plt.get_fignums()") == [2]


def test_a_filter_of_a_library_that_is_not_there_is_named_and_the_rest_put_back(here, there):
    here.run("import sys, types, warnings; sys.modules['lib'] = lib = types.ModuleType('lib')")
    here.run("class Odd(Warning): pass\nOdd.__module__ = 'lib'; lib.Odd = Odd")
    change = here.record("warnings.simplefilter('ignore', Odd); warnings.simplefilter('error', UserWarning)")
    assert there.replay(change) == ["a warnings filter: there is no lib.Odd"]
    assert there.value("str(warnings.filters[0][:3])", "import warnings") == "('error', None, <class 'UserWarning'>)"


def test_a_filter_works_at_once_after_a_replay(here, there):
    change = here.record("import warnings; warnings.simplefilter('error', UserWarning)")
    there.run("import warnings\ndef warn():\n    warnings.warn('x', UserWarning)\nwarn()")
    there.replay(change)
    caught = "try:\n    warn(); caught = False\nexcept UserWarning: caught = True"
    assert there.value("caught", caught) is True


def test_trap_16_plain_values_set_in_a_local_module_are_put_back(here, there, tmp_path):
    source = "LR = 0.5\nPATHS = {'a': [1, (2,)]}\nNAME = str(LR)\n"
    source += "class Model:\n    depth = 3\n    def run(self): return LR\n"
    for side in ("here", "there"):
        (tmp_path / side / "config.py").write_text(source)
    importing = "import sys; sys.path.insert(0, ''); import config"
    here.run(importing)
    change = here.record(
        "config.LR = 0.1; config.PATHS['a'].append(True); config.Model.depth = 4; del config.NAME; config.new = (1,)"
    )
    there.run(importing)
    assert there.replay(change) == []
    assert there.value("[config.LR, config.Model().depth, hasattr(config, 'NAME')]") == [0.1, 4, False]
    assert there.value("[config.PATHS == {'a': [1, (2,), True]}, config.new == (1,)]") == [True, True]


def test_trap_16_a_module_imported_by_the_step_that_set_it(here, there, tmp_path):
    for side in ("here", "there"):
        (tmp_path / side / "config.py").write_text(f"LR = 0.5\nWHERE = {side!r} + ''\nN = 1\n")
    change = here.record("import sys; sys.path.insert(0, ''); import config; config.LR = 0.1")
    assert change["modules"] == [["config", "LR", 0.1]]
    assert there.replay(change) == []
    assert there.value("[config.LR, config.WHERE, config.N]", "import config") == [0.1, "there", 1]


def test_trap_16_a_computed_value_set_by_the_step_that_imported_the_module(here, there, tmp_path):
    for side in ("here", "there"):
        (tmp_path / side / "config.py").write_text("LR = float('0.5')\nN = int('1')\n")
    here.run("from keel_notebook.capture.loads import watch_loads; watch_loads()")
    change = here.record("import sys; sys.path.insert(0, ''); import config; config.LR = 0.1; config.new = 2")
    assert change["modules"] == [["config", "LR", 0.1], ["config", "new", 2]]
    assert there.replay(change) == []
    assert there.value("[config.LR, config.new]", "import config") == [0.1, 2]


def test_trap_16_an_object_set_in_a_local_module_is_named(here, tmp_path):
    (tmp_path / "here" / "config.py").write_text("db = None\n")
    here.run("import sys; sys.path.insert(0, ''); import config")
    assert here.record("config.db = object()") == {"unrestorable": ["config.db: it is a builtins.object"]}


def test_installed_libraries_are_not_looked_into(here):
    here.run("import json")
    assert here.record("json.my_setting = 1") == {}


def test_torch_goes_on_from_the_recorded_state_through_torchs_own_functions():
    """torch is not installed here: its documented functions, on a stand-in."""
    import sys
    import types

    class Tensor(list):
        def tolist(self):
            return list(self)

        def numpy(self):
            import numpy

            return numpy.array(self, numpy.uint8)

    torch = types.ModuleType("torch")
    torch.state, torch.uint8 = Tensor([1, 2, 3]), "uint8"
    torch.get_rng_state = lambda: torch.state
    torch.set_rng_state = lambda state: setattr(torch, "state", Tensor(state))
    torch.frombuffer = lambda buffer, dtype: Tensor(buffer)
    sys.modules["torch"] = torch
    try:
        watch = AmbientWatch()
        before = watch.before()
        assert watch.after(before) == {}
        torch.state = Tensor([4, 5, 6])
        change = watch.after(before)
        assert change == {"torch_random": [b"\x04\x05\x06"], "seeded": {"torch.random": False}}
        torch.state = Tensor([0])
        assert watch.apply(change) == []
        assert torch.state == [4, 5, 6]
    finally:
        del sys.modules["torch"]


def test_other_keys_of_an_entry_are_left_alone():
    assert AmbientWatch().apply({"root": "x", "saw": ["network"], "unrestorable": ["y"]}) == []


def test_a_change_that_does_not_fit_is_named_and_the_rest_is_put_back(here):
    left = here.replay({"random": [3, b"short", 1, None], "environ": {"set": {"MODE": "x"}, "gone": []}})
    assert left == ["random: error"]
    assert here.value("os.environ['MODE']", "import os") == "x"


atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.complex_numbers(allow_nan=False)
)
keys = st.text() | st.integers() | st.tuples(st.integers(), st.booleans())
plain = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner) | st.dictionaries(keys, inner) | st.tuples(inner, inner) | st.sets(keys) | st.frozensets(keys)
    ),
    max_leaves=12,
)


@given(value=plain)
def test_a_plain_value_comes_back_with_its_exact_types(value):
    packed = msgpack.packb(to_wire(value), unicode_errors="surrogatepass")
    back = from_wire(msgpack.unpackb(packed, unicode_errors="surrogatepass"))
    assert back == value
    assert types_in(back) == types_in(value)


def types_in(value):
    if isinstance(value, dict):
        return dict, [(types_in(key), types_in(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [types_in(item) for item in value]
    if isinstance(value, set | frozenset):
        return type(value), sorted((types_in(item) for item in value), key=repr)
    return type(value)


def test_a_variable_that_is_no_text_is_named(here):
    change = here.record("import os; os.environb[b'RAW'] = b'\\xff'")
    assert change == {"unrestorable": ["environ: UnicodeEncodeError"]}


@pytest.mark.parametrize("value", [object(), len, [object()], type("S", (str,), {})("x")])
def test_a_value_that_is_not_plain_is_refused(value):
    with pytest.raises(NotPlainError):
        to_wire(value)
