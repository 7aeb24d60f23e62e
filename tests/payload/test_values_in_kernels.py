"""Values in real kernels: recorded, killed, brought back, and read by steps that replay in their turn (cases, D)."""

import re

import pytest

pytestmark = pytest.mark.kernel

NOTEBOOK = """
import numpy as np, pandas as pd
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple
class P:
    def __init__(self): self.x = 1
class Colour(Enum):
    RED = {"r", "e", "d"}
@dataclass
class Item:
    a: int = 1
class R(NamedTuple):
    v: int
def helper(x): return x + K
K = 3
# ---
%%keel_step make
hit("make")
@dataclass
class Q:
    a: int = 1
class Walker:
    step = 2
    def walk(self, n): return n * self.step + K
def f(x): return helper(x) * 2
g = lambda x: f(x) + 1
v = np.zeros(4); w = v[:2]
df = pd.DataFrame({"n": [1, 2], "s": ["a", None], "o": [["x", "y"], {"k": 1}]})
p = P(); c = Colour.RED; i = Item(3); r = R(1); q = Q(3); tags = {"alpha", "beta", "gamma"}; walker = Walker()
# ---
%%keel_step read
hit("read")
total = f(1) + g(1) + v.sum() + df.n.sum() + p.x + len(c.value) + i.a + r.v + q.a + len(tags) + walker.walk(1)
# ---
w[0] = 9
print(int(total), isinstance(p, P), c is Colour.RED, Item(3) == i, isinstance(r, R), isinstance(q, Q), Q(3) == q, v[0])
print(df.o[0][1], f(1), walker.walk(2))
"""


def test_steps_that_read_values_and_definitions_of_a_replayed_step_replay_too(notebook):
    book = notebook(NOTEBOOK)
    first = book.run_all()
    assert first[3].error == ""
    expected = "39 True True True True True True 9.0\ny 8 7\n"
    assert first[3].text == expected
    for _ in range(2):
        book.kill()
        assert book.run_all()[3].text == expected
    assert book.hits == "make read"


def test_c46_a_class_that_changed_is_never_worn_by_an_old_object(notebook):
    book = notebook("""
class P:
    def __init__(self): self.x = 1
# ---
%%keel_step mk
hit("mk"); p = P()
# ---
print(vars(p))
""")
    book.run_all()
    book.cells[2] = book.cells[2].replace("self.x", "self.y")
    assert book.rerun()[2].text == "{'y': 1}\n"
    assert book.hits == "mk mk"


def test_c54_a_restored_function_shows_its_lines_when_it_fails(notebook):
    book = notebook("""
%%keel_step define
hit("d")
def broken(x):
    y = x
    return y / 0  # the line
# ---
broken(1)
""")
    live, restored = _frames(book.run_all()[1]), _frames(book.rerun()[1])
    assert "Cell In[3], line 5, in broken(x)" in live
    assert restored == live
    assert book.hits == "d"


def _frames(shown):
    (failed,) = (out for out in shown.outputs if out["output_type"] == "error")
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(failed["traceback"]))
