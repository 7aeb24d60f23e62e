"""The cases that users brought, on the codec: C43-C59, C68, C103 (evidence: cases, D)."""

import gc
import io
import json
import linecache
import marshal
import os
import subprocess
import sys
import textwrap
import traceback

import msgpack
import numpy as np
import pandas as pd
import pytest

from keel_notebook.core.model import Payload
from keel_notebook.core.ports import Known
from keel_notebook.errors import DamagedError, DefinitionChangedError
from keel_notebook.payload import envelope, rebuild
from tests.payload.conftest import make_kernel

POINT = "class P:\n    def __init__(self): self.x = 1"
COLOUR = "from enum import Enum\nclass Colour(Enum):\n    RED = 1"
ITEM = "from dataclasses import dataclass\n@dataclass\nclass Item:\n    a: int = 1"


def test_c43_instances_come_back_as_instances_of_the_class_of_the_notebook(kernel, restarted):
    definitions = "\n".join([POINT, COLOUR, ITEM, "def helper(x): return x + 1"])
    kernel.run(definitions)
    packed = kernel.step("p = P(); c = Colour.RED; i = Item(3); held = [P, helper, {'c': c}]")
    after = restarted()
    after.run("before = 1")
    after.run(definitions)
    after.replay(packed)
    space = after.space
    assert type(space["p"]) is space["P"]
    assert space["c"] is space["Colour"].RED is space["held"][2]["c"]
    assert space["i"] == space["Item"](3)
    assert space["held"][:2] == [space["P"], space["helper"]]


def test_c43_also_after_the_class_cell_ran_again(kernel):
    kernel.run(POINT)
    packed = kernel.step("p = P()")
    kernel.run(POINT)
    kernel.replay(packed)
    assert type(kernel.space["p"]) is kernel.space["P"]


def test_c45_a_class_defined_in_the_step_comes_back_with_its_instances(kernel, restarted):
    source = """
    import abc, typing, functools
    from dataclasses import dataclass, field
    from enum import Enum, Flag
    T = typing.TypeVar("T")
    @dataclass
    class Q:
        a: int = 1
        b: list = field(default_factory=list)
    class Colour(Enum):
        RED = {"r"}
        def loud(self): return self.name + "!"
    class Bits(Flag):
        A = 1
        B = 2
    class Base(abc.ABC):
        count = 0
        def __init_subclass__(cls, **kw): super().__init_subclass__(**kw)
        def __init__(self): self.x = 1
        @abc.abstractmethod
        def area(self): ...
    class Square(Base):
        __slots__ = ("side",)
        def __init__(self): super().__init__(); self.side = 3
        def area(self): return self.side ** 2
        @property
        def half(self): return self.side / 2
        @classmethod
        def make(cls): return cls()
        @staticmethod
        def name(): return "square"
        @functools.cached_property
        def slow(self): return 7
        class Inner:
            y = 2
    class Row(typing.NamedTuple):
        v: int
        w: str = "w"
    class Box(typing.Generic[T]):
        def __init__(self, t: T): self.t = t
    class Wrong(Exception):
        def __init__(self, code, text): super().__init__(text); self.code = code
    q = Q(3); e = Colour.RED; f = Bits.A | Bits.B; s = Square(); i = Square.Inner(); r = Row(1); b = Box[int]([2])
    w = Wrong(5, "no"); bound = s.area
    """
    packed = kernel.step(textwrap.dedent(source))
    assert packed.not_stored == ()
    after = restarted()
    after.replay(packed)
    space = after.space
    for name in ("Q", "Colour", "Square", "Row", "q", "s", "r"):
        assert after.digest(space[name]).digest == kernel.digest(kernel.space[name]).digest, name
    assert isinstance(space["q"], space["Q"])
    assert space["Q"](3) == space["q"]
    assert space["e"] is space["Colour"].RED
    assert space["e"].loud() == "RED!"
    assert space["f"] == space["Bits"].A | space["Bits"].B
    square = space["s"]
    assert (square.area(), square.half, square.name(), square.slow) == (9, 1.5, "square", 7)
    assert space["Square"].make().area() == 9
    assert type(space["i"]) is space["Square"].Inner
    assert space["bound"].__self__ is square
    assert space["r"] == space["Row"](1)
    assert space["b"].t == [2]
    assert (space["w"].code, space["w"].args) == (5, ("no",))
    with pytest.raises(TypeError):
        space["Base"]()


def test_c45_what_a_later_step_makes_of_that_class_refers_to_it(kernel, restarted):
    first = kernel.step(ITEM)
    second = kernel.step("items = [Item(1), Item(2)]")
    after = restarted()
    with pytest.raises(DefinitionChangedError, match="Item is not defined"):
        after.replay(second)
    after.replay(first)
    after.replay(second)
    assert {type(item) for item in after.space["items"]} == {after.space["Item"]}


@pytest.mark.parametrize("edited", [POINT.replace("self.x", "self.y"), "P = 5", "def P(): pass"])
def test_c46_an_object_never_wears_a_class_that_changed(kernel, restarted, edited):
    kernel.run(POINT)
    packed = kernel.step("p = P()")
    after = restarted()
    after.run(edited)
    with pytest.raises(DefinitionChangedError, match="P has changed since"):
        after.replay(packed)


def test_c46_nor_one_whose_base_class_changed(kernel, restarted):
    source = "class B:\n    def __init__(self): self.{0} = 1\nclass P(B): pass"
    kernel.run(source.format("x"))
    packed = kernel.step("p = P()")
    after = restarted()
    after.run(source.format("y"))
    with pytest.raises(DefinitionChangedError):
        after.replay(packed)


def test_c47_named_tuples_generics_and_classes_made_by_calls(kernel, restarted):
    source = """
    from typing import NamedTuple, Generic, TypeVar, NewType
    from collections import namedtuple
    from dataclasses import make_dataclass
    T = TypeVar("T")
    Id = NewType("Id", int)
    class R(NamedTuple): v: int
    class Box(Generic[T]):
        def __init__(self, t): self.t = t
    Pair = namedtuple("Pair", "a b")
    Made = make_dataclass("Made", ["x"])
    """
    kernel.run(textwrap.dedent(source))
    packed = kernel.step("r = R(1); b = Box[int]([2]); p = Pair(1, 2); m = Made(3); t = [T, Id]")
    assert packed.not_stored == ()
    after = restarted()
    after.run(textwrap.dedent(source))
    after.replay(packed)
    space = after.space
    assert (type(space["r"]), type(space["b"]), type(space["p"])) == (space["R"], space["Box"], space["Pair"])
    assert type(space["m"]) is space["Made"]
    assert space["m"] == space["Made"](3)
    assert (space["r"].v, space["b"].t, space["t"]) == (1, [2], [space["T"], space["Id"]])


@pytest.mark.parametrize("size", [4, 100_000, 1_000_000])
@pytest.mark.parametrize("beside", ["", "; import types; other = types.SimpleNamespace()"], ids=["plain", "pickled"])
def test_c49_a_view_comes_back_as_a_view(kernel, restarted, size, beside):
    packed = kernel.step(
        f"import numpy as np\nv = np.zeros({size}); w = v[:2]; s = v[::-1]; m = v.reshape(2, -1).T{beside}"
    )
    assert packed.payload.bytes < size * 8 * 1.1 + 4000
    after = restarted()
    after.replay(packed)
    v, w, s, m = (after.space[name] for name in "vwsm")
    w[0] = 9
    assert v[0] == s[-1] == m[0, 0] == 9
    assert m.shape == (size // 2, 2)


def test_c49_a_small_view_does_not_drag_its_base_along(kernel):
    packed = kernel.step(
        "import numpy as np\n_big = np.zeros(10_000_000); w = _big[:2]; u = _big[5_000_000:5_000_002]; del _big"
    )
    assert packed.payload.bytes < 5000


LEFT_OUT = """
import sqlite3, threading, socket
con = sqlite3.connect(":memory:")
g = (i for i in range(3))
lock = threading.Lock()
n = 5
a = [n]
b = a
box = {"items": [1, 2, 3, (i for i in ())]}
thread = threading.Thread()
it = iter([1])
async def co(): ...
"""


def test_c50_what_cannot_be_stored_is_named_and_the_rest_is_recorded(kernel, restarted):
    packed = kernel.step(LEFT_OUT)
    kernel.space["con"].close()
    reasons = {left.name: left.reason for left in packed.not_stored}
    assert reasons.keys() == {"con", "g", "lock", "box", "thread", "it"}
    assert reasons["box"].startswith("box['items'][3] (generator): a generator is used up by reading it")
    assert reasons["con"].startswith("it lives in this process only")
    assert {left.name: left.type for left in packed.not_stored}["lock"] == "_thread.lock"
    after = restarted()
    after.replay(packed)
    assert after.space["n"] == 5
    assert after.space["a"] is after.space["b"]
    assert "box" not in after.space
    assert {write.name for write in packed.writes} == set(after.space) - {"__name__", "__builtins__"}


def test_c50_a_result_that_cannot_be_stored_is_named_and_absent(kernel):
    packed = kernel.pack({"n": 1}, result=((i for i in ()),))
    assert [(left.name, left.type) for left in packed.not_stored] == [("_", "generator")]
    found = kernel.codec.unpack(packed.payload, resolve=None)
    assert (found.names, found.has_result) == ({"n": 1}, False)
    kept = kernel.pack({"n": 1}, result=(None,))
    assert kernel.codec.unpack(kept.payload, resolve=None).has_result


def test_c50_an_instance_of_a_class_that_cannot_be_stored_is_left_out_with_it(kernel, restarted):
    packed = kernel.step("import threading\nclass C:\n    lock = threading.Lock()\nc = C(); n = 1")
    assert {left.name for left in packed.not_stored} == {"C", "c"}
    after = restarted()
    after.replay(packed)
    assert after.space["n"] == 1


def test_c52_an_open_file_is_never_stored_as_a_detached_copy(kernel, tmp_path):
    (tmp_path / "log.txt").write_text("abc")
    packed = kernel.step(
        f"f = open({str(tmp_path / 'log.txt')!r}); raw = open({str(tmp_path / 'log.txt')!r}, 'rb'); first = f.read(1)\n"
        "import io, tempfile; held = {'f': f}; text = io.StringIO('kept')"
    )
    for name in ("f", "raw"):
        kernel.space[name].close()
    assert {left.name for left in packed.not_stored} == {"f", "raw", "held"}
    assert "open file" in packed.not_stored[0].reason
    assert {"first", "text"} <= {write.name for write in packed.writes}


def test_c52_nor_are_temporary_files_and_folders(kernel):
    packed = kernel.step(
        "import tempfile; folder = tempfile.TemporaryDirectory(); file = tempfile.NamedTemporaryFile()"
    )
    assert {left.name: left.reason for left in packed.not_stored} == dict.fromkeys(
        ("folder", "file"), "its file or folder goes with this process: make it where it is used"
    )
    assert kernel.digester.outline(kernel.space["file"]).digest is None
    kernel.space["folder"].cleanup()
    kernel.space["file"].close()


def test_c52_nor_is_a_mapped_file(kernel, tmp_path):
    packed = kernel.step(f"import numpy as np\nm = np.memmap({str(tmp_path / 'm')!r}, 'f8', 'w+', shape=(4,)); n = 1")
    assert [left.name for left in packed.not_stored] == ["m"]
    assert "a view of a file" in packed.not_stored[0].reason


def test_c53_imports_in_a_step_come_back_by_import(kernel, restarted):
    packed = kernel.step(
        "import numpy as np, json as J, os.path\nfrom math import sqrt\nfrom json import dumps\nx = np.ones(2)"
    )
    after = restarted()
    after.replay(packed)
    space = after.space
    assert (space["np"].sum(space["x"]), space["J"].dumps(1), space["sqrt"](4)) == (2, "1", 2)
    assert space["np"] is np
    assert space["os"] is os
    assert space["dumps"] is json.dumps


def test_c54_functions_see_the_live_namespace_and_do_not_drag_it_along(kernel, restarted):
    kernel.run("import numpy as np\nbig = np.ones(2_000_000); k = 3")
    packed = kernel.step("def f(x): return x + k\ng = lambda x: f(x) * 2\nhold = [g]")
    assert packed.payload.bytes < 5000
    after = restarted()
    after.run("k = 3")
    after.replay(packed)
    after.run("k = 10")
    assert (after.space["f"](1), after.space["g"](1)) == (11, 22)
    assert after.space["hold"][0] is after.space["g"]


def test_c54_closures_share_what_they_share(kernel, restarted):
    source = """
    def counter(start=0, *, step=1):
        n = start
        def inc():
            nonlocal n
            n += step
            return n
        def get(): return n
        def fact(i): return 1 if i == 0 else i * fact(i - 1)
        return inc, get, fact
    inc, get, fact = counter(5, step=2)
    """
    packed = kernel.step(textwrap.dedent(source))
    after = restarted()
    after.replay(packed)
    space = after.space
    assert [space["inc"](), space["get"](), space["fact"](4)] == [7, 7, 24]
    assert space["counter"](1)[0]() == 2
    assert kernel.space["get"]() == 5


def test_c54_tracebacks_of_restored_functions_look_as_before(kernel, restarted):
    packed = kernel.step("# a cell\n\ndef f(x):\n    y = x\n    return y / 0  # here")
    file = kernel.space["f"].__code__.co_filename
    del linecache.cache[file]
    after = restarted()
    after.replay(packed)
    try:
        after.space["f"](1)
    except ZeroDivisionError:
        shown = traceback.format_exc()
    assert "return y / 0  # here" in shown
    assert f'File "{file}", line 5, in f' in shown


def test_byte_code_of_another_python_is_refused(kernel, monkeypatch):
    packed = kernel.step("def f(x): return x")
    monkeypatch.setattr(rebuild, "MAGIC", b"other")
    with pytest.raises(DefinitionChangedError, match="another version of Python"):
        kernel.replay(packed)


def test_c56_a_module_that_is_gone_is_named_and_other_payloads_are_read(kernel):
    old = kernel.pack(
        {"z": sys.modules["fractions"].Fraction(1, 2), "f": sys.modules["fractions"].gcd if 0 else json.dumps}
    )
    other = kernel.pack({"q": 5})
    head = kernel.journal.read(old.payload.head).replace(b"\xa4json", b"\xa4jzon")
    moved = Payload(kernel.journal.blob(head), old.payload.buffers)
    with pytest.raises(DamagedError, match="module jzon is missing"):
        kernel.codec.unpack(moved, resolve=None)
    assert kernel.codec.unpack(other.payload, resolve=None).names == {"q": 5}


def test_c56_the_same_for_a_pickled_payload(kernel):
    import types

    packed = kernel.pack({"z": types.SimpleNamespace(a=1)})
    head = kernel.journal.read(packed.payload.head).replace(b"\x05types", b"\x05typez")
    with pytest.raises(DamagedError, match="module typez is missing"):
        kernel.codec.unpack(Payload(kernel.journal.blob(head)), resolve=None)


@pytest.mark.parametrize("damage", [b"", b"\xc1", b"\x81", msgpack.packb({"schema": "keel.step/v1"})])
def test_a_head_that_does_not_decode_is_damage(kernel, damage):
    with pytest.raises(DamagedError):
        kernel.codec.unpack(Payload(kernel.journal.blob(damage)), resolve=None)


def test_a_table_that_does_not_hold_together_is_damage(kernel):
    for content in (
        {"form": "plain"},
        {"form": "plain", "nodes": [["tuple", [1]], ["tuple"]], "roots": [[0]]},
        {"form": "x"},
    ):
        whole = {"arrays": [], "memories": [], "names": ["a"], **content}
        with pytest.raises(DamagedError):
            kernel.codec.unpack(Payload(kernel.journal.blob(envelope.seal(whole))), resolve=None)


def test_c59_a_figure_comes_back_without_a_window(kernel, restarted):
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    packed = kernel.step("import matplotlib.pyplot as plt\nfig, ax = plt.subplots(); line, = ax.plot([1, 2])")
    assert packed.not_stored == ()
    plt.close("all")
    after = restarted()
    after.replay(packed)
    assert plt.get_fignums() == []
    fig, ax = after.space["fig"], after.space["ax"]
    assert ax.figure is fig
    assert after.space["line"] in ax.lines
    ax.set_title("t")
    drawn = io.BytesIO()
    fig.savefig(drawn)
    assert drawn.getvalue().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "source",
    [
        "token = 'abc'",
        "api_key = 'sk-test-1234567890'",
        "cfg = {'model': 'm', 'password': 'hunter2hunter2'}",
        "cfg = {'deep': [{'url': 'postgres://me:hunter2hunter2@host/db'}]}",
        "import types; cfg = types.SimpleNamespace(api_key='hunter2hunter2')",
        "import types; cfg = types.SimpleNamespace(a=['ghp_0123456789abcdefghijklmnopqrstuv'])",
        "auth = ('me', 'hunter2hunter2')",
        "class Key:\n  def __init__(self): self.k = 'sk-test-1234567890'\nk = Key()",
    ],
)
def test_c68_c103_credentials_are_never_written_in_clear(kernel, source):
    packed = kernel.step(source + "\nn = 1", result=None)
    assert packed.not_stored
    assert all("looks like a credential" in left.reason for left in packed.not_stored)
    written = [kernel.journal.read(packed.payload.head), *kernel.journal.objects.values(), repr(packed).encode()]
    for secret in (b"hunter2", b"sk-test-1234567890", b"ghp_0123456789"):
        assert not any(secret in content for content in written)
    assert "n" in kernel.codec.unpack(packed.payload, resolve=None).names


def test_a_corpus_that_mentions_tokens_is_stored(kernel):
    rows = [{"token": "the", "pos": "DET"}, {"token": "cat", "pos": "NOUN"}]
    packed = kernel.pack(
        {"rows": rows, "tokens": ["the", "cat"], "pad_token": "<pad>", "n_tokens": 5, "tokenizer": {"a": 1}}
    )
    assert packed.not_stored == ()


@pytest.mark.parametrize("extra", ["", "; other = types.SimpleNamespace(ns=ns)"], ids=["plain", "pickled"])
def test_references_stand_for_objects_that_are_journaled_already(kernel, extra):
    kernel.run(
        "rows = [[1, 2], 3]\nimport numpy as np, types\nbig = np.ones(500_000)\nns = types.SimpleNamespace(a=rows)"
    )
    first = kernel.pack({name: kernel.space[name] for name in ("rows", "big", "ns")})
    space = kernel.space
    known = {id(space[name]): Known("1.1", name, kernel.digest(space[name]).digest) for name in ("rows", "big", "ns")}
    packed = kernel.step(f"alias = rows; held = {{'r': rows, 'b': [big, big]}}; view = big[:3]{extra}", known=known)
    assert packed.payload.refs == ("1.1",)
    found = kernel.codec.unpack(packed.payload, resolve=lambda one: space[one.name]).names
    assert found["alias"] is space["rows"]
    assert found["held"]["r"] is space["rows"]
    assert found["held"]["b"][0] is space["big"]
    assert np.shares_memory(found["view"], space["big"])
    assert packed.payload.bytes < 2000
    if extra:
        assert found["other"].ns is space["ns"]
    assert len(first.payload.buffers) == 1


def test_only_references_that_are_used_are_resolved(kernel):
    kernel.run("import types\n" + "\n".join(f"l{at} = [{at}]" for at in range(600)))
    space = kernel.space
    known = {
        id(space[f"l{at}"]): Known(f"1.{at}", f"l{at}", kernel.digest(space[f"l{at}"]).digest) for at in range(600)
    }
    asked = []

    def resolve(one):
        asked.append(one.name)
        return space[one.name]

    packed = kernel.step("new = types.SimpleNamespace(x=[l7, l300, 'hej\\0\\0'], y=list(range(70_000)))", known=known)
    found = kernel.codec.unpack(packed.payload, resolve=resolve).names["new"]
    assert sorted(asked) == ["l300", "l7"]
    assert set(packed.payload.refs) == {"1.7", "1.300"}
    assert found.x[0] is space["l7"]
    assert found.x[1] is space["l300"]


def test_writes_tell_name_type_digest_size_and_a_preview(kernel):
    packed = kernel.step("import pandas as pd\ndf = pd.DataFrame({'a': range(200_000)}); n = 5; s = 'x' * 500")
    writes = {write.name: write for write in packed.writes}
    assert (writes["df"].type, writes["df"].preview) == ("pandas.DataFrame", "DataFrame 200000x1")
    assert writes["df"].bytes >= 1_600_000
    assert (writes["n"].type, writes["n"].preview, writes["n"].bytes < 20) == ("int", "5", True)
    for name, write in writes.items():
        assert write.digest == kernel.digest(kernel.space[name]).digest


def test_restoring_leaves_the_collector_as_it_was(kernel):
    packed = kernel.pack({"n": [1]})
    for wanted in (True, False):
        gc.enable() if wanted else gc.disable()
        try:
            kernel.codec.unpack(packed.payload, resolve=None)
            assert gc.isenabled() is wanted
        finally:
            gc.enable()


IN_ANOTHER_PROCESS = """
import pickle, sys
from tests.payload.conftest import make_kernel
from tests.payload.doubles import Objects
packed, objects, definitions = pickle.load(sys.stdin.buffer)
journal = Objects(); journal.objects = objects
kernel = make_kernel(journal)
kernel.run(definitions)
kernel.replay(packed)
space = kernel.space
assert space["np"].__name__ == "numpy" and space["w"].base is not None
space["w"][0] = 4
assert space["v"][0] == 4
assert type(space["p"]) is space["P"] and isinstance(space["q"], space["Q"]) and space["q"] == space["Q"](3)
assert space["f"](1) == 4 and space["df"].a.sum() == 3
print(*[str(kernel.digest(space[name]).digest) for name in ("v", "p", "q", "f", "df")])
"""


def test_everything_comes_back_in_another_process(kernel):
    import pickle

    kernel.run(POINT + "\nk = 3")
    source = (
        ITEM.replace("Item", "Q")
        + "\nimport numpy as np, pandas as pd\nv = np.zeros(300_000); w = v[:2]; p = P(); q = Q(3)"
    )
    packed = kernel.step(source + "\ndef f(x): return x + k\ndf = pd.DataFrame({'a': [1, 2], 's': ['x', None]})")
    handed = pickle.dumps((packed, kernel.journal.objects, POINT + "\nk = 3"))
    environment = {**os.environ, "PYTHONHASHSEED": "5", "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS]
    run = subprocess.run(command, input=handed, capture_output=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr.decode()
    kernel.space["v"][0] = 4
    here = [kernel.digest(kernel.space[name]).digest for name in ("v", "p", "q", "f", "df")]
    assert run.stdout.decode().split() == here


def test_marshal_is_what_code_is_stored_with():
    # A guard: marshal's format is bound to the magic number that is checked.
    assert marshal.loads(marshal.dumps(make_kernel.__code__)) == make_kernel.__code__


def test_frames_that_share_columns_share_what_is_stored(kernel):
    rows = 200_000
    frame = pd.DataFrame(np.random.default_rng(0).random((rows, 4)), columns=list("abcd"))
    kernel.pack({"frame": frame})
    before = sum(size for _, size in kernel.journal.puts)
    stored = set(kernel.journal.objects)
    other = frame.assign(e=frame.a * 2)[["e", "b", "a"]]
    kernel.pack({"other": other, "again": frame.copy()})
    new = set(kernel.journal.objects) - stored
    assert sum(len(kernel.journal.objects[digest]) for digest in new) == rows * 8
    assert before == rows * 8 * 4


def test_twelve_columns_cost_twelve_columns(kernel):
    rows = 150_000
    chance = np.random.default_rng(0)
    frame = pd.DataFrame(chance.random((rows, 8)), columns=list("abcdefgh"))
    kernel.pack({"frame": frame})
    stored = _stored(kernel)
    for at in range(12):
        frame[f"n{at}"] = chance.random(rows)
        if at == 5:
            frame = frame.copy()
        kernel.pack({"frame": frame})
    assert _stored(kernel) - stored <= 1.2 * 12 * rows * 8


def _stored(kernel):
    return sum(map(len, kernel.journal.objects.values()))
