"""What a call changes in place is recorded with its result and put back on replay, in the same object (DESIGN 3.2)."""

# ruff: noqa: E501 - a cell that is given to a kernel is one text

import pytest

from keel_notebook.errors import CannotStoreError

CASES = {
    "a list": ("x = [1, 2]", "def f(x): x.append(3); return len(x)", "x == [1, 2, 3]"),
    "a list sorted": ("a = [2]; b = [1]; x = [a, b]", "def f(x): x.sort(); return 1", "x == [[1], [2]] and x[1] is a"),
    "an item of a list": ("a = [1]; x = [a]", "def f(x): x[0].append(2); return 1", "a == [1, 2] and x[0] is a"),
    "a dict": ("x = {'a': 1}", "def f(x): x['b'] = 2; del x['a']; return 1", "x == {'b': 2}"),
    "a set": ("x = {1}", "def f(x): x.add(2); return 1", "x == {1, 2}"),
    "a bytearray": ("x = bytearray(b'a')", "def f(x): x += b'b'; return 1", "x == bytearray(b'ab')"),
    "an object": (
        "class M:\n    def __init__(self): self.w = [0.0]; self.n = 0\nx = M(); w = x.w",
        "def f(x): x.w[0] += 1.5; x.n += 1; x.new = 'y'; return x.n",
        "x.w is w and w == [1.5] and x.n == 1 and x.new == 'y'",
    ),
    "an array": ("import numpy as np\nx = np.zeros(4); v = x[:2]", "def f(x): x += 1; return 1", "v.sum() == 2 and x.sum() == 4"),
    "a frame": (
        "import pandas as pd\nx = pd.DataFrame({'a': [1, 2]})",
        "def f(x): x['b'] = x.a * 2; return 1",
        "list(x.columns) == ['a', 'b'] and x.b.sum() == 6",
    ),
    "an estimator": (
        "from sklearn.linear_model import LinearRegression\nx = LinearRegression()",
        "def f(x): x.fit([[0.0], [1.0]], [0.0, 2.0]); return 1",
        "round(float(x.predict([[2.0]])[0]), 6) == 4.0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_same_object_is_updated_on_replay(boot, case):
    made, function, then = CASES[case]
    for turn in range(2):
        kernel = boot()
        kernel.run("import builtins\nbuiltins.keel_ran = getattr(builtins, 'keel_ran', 0)")
        kernel.run(made)
        kernel.run(function.replace("return", "import builtins; builtins.keel_ran += 1; return"))
        kernel.run("y = x; builtins.keel_ran = 0")
        kernel.step("s", "out = keel.call(f, x, key=1)")
        assert kernel.names["y"] is kernel.names["x"]
        assert eval(then, kernel.names), f"turn {turn}"
        assert __import__("builtins").keel_ran == (1 if turn == 0 else 0)
        kernel.kill()


def test_a_loop_that_trains_in_place_goes_on_with_the_trained_model(boot):
    cell = "losses = [keel.call(epoch, model, key=e) for e in range(todo)]"
    source = "model = {'w': [0.0]}\ndef epoch(m):\n    m['w'][0] += 1.0\n    return m['w'][0]\n"
    first = boot()
    first.run(source)
    first.names["todo"] = 7
    first.step("train", cell, end=False)
    first.kill()
    second = boot()
    second.run(source)
    second.names["todo"] = 10
    second.step("train", cell)
    assert second.names["losses"] == [float(n) for n in range(1, 11)]
    assert second.names["model"] == {"w": [10.0]}
    assert len(second.entries()) == 10


def test_a_notebook_name_that_the_function_binds_or_changes_is_put_back(boot):
    source = "count = 0\nlog = []\ndef f(x):\n    global count\n    count += x\n    log.append(x)\n    return x\n"
    for _ in range(2):
        kernel = boot()
        kernel.run(source)
        log = kernel.names["log"]
        kernel.step("s", "out = [keel.call(f, n) for n in (1, 2, 3)]")
        assert kernel.names["count"] == 6
        assert log == [1, 2, 3]
        kernel.kill()
    assert len(boot().entries()) == 3


def test_a_closure_variable_and_the_owner_of_a_method_are_put_back(boot):
    source = """
    def make():
        n = [0]
        def f():
            n[0] += 1
            return n[0]
        return f, n
    f, n = make()
    class C:
        def __init__(self): self.total = 0
        def add(self, x):
            self.total += x
            return self.total
    c = C()
    """
    for _ in range(2):
        kernel = boot()
        kernel.run(source)
        kernel.step("s", "out = keel.call(f), keel.call(f), keel.call(c.add, 2), keel.call(c.add, 3)")
        assert kernel.names["out"] == (1, 2, 2, 5)
        assert kernel.names["n"] == [2]
        assert kernel.names["c"].total == 5
        kernel.kill()
    assert len(boot().entries()) == 4


def test_what_cannot_be_put_back_is_given_and_never_replayed_and_what_happens_once_is_refused_with_e020(boot):
    kernel = boot()
    kernel.run("class Odd:\n    __slots__ = ('n',)\nx = Odd(); x.n = 1\ndef f(o):\n    o.n += 1\n    return o.n\n")
    for n in (2, 3):
        kernel.step("s", "out = keel.call(f, x, key=1)")
        assert kernel.names["out"] == kernel.names["x"].n == n, "it ran both times"
    assert any("f will run again: argument 0 (Odd)" in line and "return it instead" in line for line in kernel.said)
    with pytest.raises(CannotStoreError, match="return it instead") as refused:
        kernel.step("s", "keel.call(f, x, key=2, effect='at_least_once')")
    assert "durable call f changed argument 0 (Odd)" in str(refused.value), "it is no step, and f made no argument"
    assert "--always" not in refused.value.report()
    assert kernel.names["x"].n == 4


def test_two_names_for_one_argument_are_changed_once(boot):
    for _ in range(2):
        kernel = boot()
        kernel.run("x = [1]\ndef f(a, b):\n    a.pop(); b.append(5); b.append(6)\n    return 1\n")
        kernel.step("s", "keel.call(f, x, b=x)")
        assert kernel.names["x"] == [5, 6]
        kernel.kill()
    assert len(boot().entries()) == 1
