"""Functions, classes and modules in digests: code, what lives in them, and what they reach (C25, C46, C61)."""

import math
import sys
import types

import pytest

from keel_notebook.core.ports import Digested
from tests.payload.conftest import make_kernel


def digest_of(source, name="f"):
    kernel = make_kernel()
    kernel.run(source)
    found = kernel.digest(kernel.space[name])
    assert found.digest is not None, found.reason
    return found


def test_c61_a_function_counts_by_its_code_not_by_where_it_stands():
    here = digest_of("def f(s):\n    return s.strip()")
    moved = digest_of("\n\n# moved to another cell\nother = 1\n\ndef f(s):\n    return s.strip()  # and commented")
    assert here.digest == moved.digest
    assert digest_of("def f(s):\n    return s.lstrip()").digest != here.digest


def test_c61_a_lambda_too():
    assert digest_of("f = lambda s: s.strip()").digest == digest_of("\nx = 1\nf = lambda s: s.strip()").digest


def test_c25_the_names_that_code_reads_are_reached_wherever_the_code_is_met():
    source = """
import functools
def helper(x): return x + LIMIT
def wrap(fn):
    @functools.wraps(fn)
    def inner(*args): return fn(*args) * FACTOR
    return inner
@wrap
def wrapped(x): return BASE
class Tool:
    size = 3
    def use(self, x): return HIDDEN
class Better(Tool):
    pass
class Holder:
    def __init__(self): self.tool = Better(); self.call = self.tool.use
    def __reduce__(self): return (Holder, ())
f = {"a": [helper, (wrapped,)], "b": Better(), "c": functools.partial(helper, 1), "d": Better().use}
"""
    reaches = digest_of(source).reaches
    assert {"LIMIT", "FACTOR", "BASE", "HIDDEN"} <= reaches


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(x=1): pass", "k = 2\ndef f(x=k): pass"),
        ("def f(*, x=[1]): pass", "def f(*, x=[2]): pass"),
        (
            "def make(n):\n  def g(): return n\n  return g\nf = make(1)",
            "def make(n):\n  def g(): return n\n  return g\nf = make(2)",
        ),
        ("def f(): pass", "def f(): pass\nf.limit = 3"),
        ("def f(): pass\nf = [f]", "def f(): pass\nf = (f,)"),
    ],
)
def test_what_lives_in_a_function_counts(one, other):
    assert digest_of(one).digest != digest_of(other).digest


def test_a_recursive_closure_has_a_digest():
    source = "def make():\n  def g(n): return 1 if n == 0 else g(n - 1)\n  return g\nf = make()"
    assert digest_of(source).digest == digest_of(source).digest


def test_a_value_that_a_method_remembers_counts():
    source = "class C:\n  limit = {0}\n  def use(self, x=limit): return x\nf = C()"
    assert digest_of(source.format("1")).digest != digest_of(source.format("2")).digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "class C:\n  def __init__(self): self.x = 1\nf = C()",
            "class C:\n  def __init__(self): self.x = 2 - 1\nf = C()",
        ),
        ("class C: pass\nf = C()", "class C: pass\nC.registry = [1]\nf = C()"),
        ("class B:\n  x = 1\nclass C(B): pass\nf = C()", "class B:\n  x = 2\nclass C(B): pass\nf = C()"),
        (
            "from enum import Enum\nclass C(Enum):\n  A = 1\nf = C.A",
            "from enum import Enum\nclass C(Enum):\n  A = 2\nf = C.A",
        ),
        ("class C:\n  def m(self): pass\nf = C", "class C:\n  def m(self): pass\nC.m = lambda self: 1\nf = C"),
        ("K = 1\nclass C:\n  x = K\nf = C()", "K = 2\nclass C:\n  x = K\nf = C()"),
    ],
)
def test_c46_a_class_counts_by_its_code_and_its_data(one, other):
    assert digest_of(one).digest != digest_of(other).digest
    assert digest_of(one).digest == digest_of("\n# elsewhere\n" + one).digest


MADE_WITHOUT_SOURCE = [
    "from collections import namedtuple\nf = namedtuple('P', 'x y')(1, 2)",
    "from enum import Enum\nf = Enum('Colour', 'RED GREEN').RED",
    "from dataclasses import make_dataclass\nf = make_dataclass('D', ['x'])(1)",
    "from typing import NamedTuple\nclass R(NamedTuple):\n  v: int\nf = R(1)",
    """
from dataclasses import dataclass, field
@dataclass(frozen=True, order=True)
class Q:
    a: int = 1
    b: list = field(default_factory=list)
f = Q()
""",
    """
from typing import Generic, TypeVar
T = TypeVar("T")
class Box(Generic[T]):
    def __init__(self, t): self.t = t
f = Box([1])
""",
    """
import abc
class A(abc.ABC):
    @abc.abstractmethod
    def m(self): ...
class C(A):
    def m(self): return 1
f = C()
""",
    "import functools\n@functools.lru_cache\ndef f(x): return x",
    "import functools\n@functools.singledispatch\ndef f(x): return x\n@f.register\ndef _(x: int): return 2",
    """
class C:
    @property
    def p(self): return 1
    @classmethod
    def c(cls): return 1
    @staticmethod
    def s(): return 1
f = C()
""",
    "class C:\n  __slots__ = ('a',)\nf = C()\nf.a = {'x', 'y'}",
    "class Meta(type): pass\nclass C(metaclass=Meta): pass\nf = C()",
    "import operator\nf = [operator.itemgetter(1), len, str.upper, 'x'.join]",
]


@pytest.mark.parametrize("source", MADE_WITHOUT_SOURCE)
def test_classes_and_functions_of_every_make_have_digests(source):
    assert digest_of(source).digest == digest_of(source).digest


def test_named_tuples_differ_by_their_fields():
    source = "from collections import namedtuple\nf = namedtuple('P', {0!r})(1)"
    assert digest_of(source.format("x")).digest != digest_of(source.format("y")).digest


def test_calling_a_dispatching_or_remembering_function_is_not_changing_it():
    kernel = make_kernel()
    kernel.run(
        "import functools\n@functools.singledispatch\ndef f(x): return x\n@functools.lru_cache\ndef g(x): return x"
    )
    before = [kernel.digest(kernel.space[name]).digest for name in "fg"]
    kernel.run("f(1); f('a'); g(1)")
    assert [kernel.digest(kernel.space[name]).digest for name in "fg"] == before


def test_things_of_modules_count_by_name_and_by_their_module(kernel):
    before = [kernel.digest(thing).digest for thing in (math, math.sin, types.SimpleNamespace)]
    kernel.cells.modules["math"] = Digested(digest="another math")
    after = [kernel.digest(thing).digest for thing in (math, math.sin, types.SimpleNamespace)]
    assert [b != a for b, a in zip(before, after, strict=True)] == [True, True, False]


def test_an_edited_local_module_is_noticed_through_an_instance(kernel):
    module = types.ModuleType("mymod")
    exec("class A:\n    def f(self): return 1", module.__dict__)
    sys.modules["mymod"] = module
    try:
        before = kernel.digest([module.A()])
        kernel.cells.modules["mymod"] = Digested(digest="edited", weak=True, reaches=frozenset({"deep"}))
        after = kernel.digest([module.A()])
        kernel.cells.modules["mymod"] = Digested(digest=None, reason="edited but not reloaded")
        unknown = kernel.digest([module.A()])
    finally:
        del sys.modules["mymod"]
    assert before.digest != after.digest
    assert after.weak
    assert after.reaches == {"deep"}
    assert unknown.digest is None
    assert unknown.reason == "module mymod: edited but not reloaded, somewhere inside"


def test_two_inner_functions_of_a_module_are_told_apart(kernel):
    module = types.ModuleType("mymod")
    exec("def pair():\n    return (lambda x: x,\n            lambda x: x + 1)", module.__dict__)
    sys.modules["mymod"] = module
    try:
        one, other = (kernel.digest(function).digest for function in module.pair())
    finally:
        del sys.modules["mymod"]
    assert None is not one != other


def test_code_without_a_known_source_is_unknown(kernel):
    exec("def f(): return 1", kernel.space)
    kernel.cells.belongs = lambda thing: getattr(thing, "__module__", "") == "__main__"
    assert kernel.digest(kernel.space["f"]).reason == "function f: its source is not known"
