"""What is packed comes back: values, types, sharing and cycles, in both forms (DESIGN 6)."""

import array
import collections
import datetime
import decimal
import fractions
import io
import math
import pathlib
import random
import re
import types
import uuid
import zoneinfo

import msgpack
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.payload.conftest import make_kernel
from tests.payload.test_digest_values import VALUES

KERNEL = make_kernel()


def form(kernel, packed):
    return msgpack.unpackb(kernel.journal.read(packed.payload.head), strict_map_key=False)["payload"]["form"]


BESIDE = types.SimpleNamespace()
"""Something that the plain form does not take: beside it, everything is pickled."""


PLANS = st.lists(
    st.tuples(
        st.sampled_from(["list", "dict", "set", "tuple", "array", "view", "frame", "deque", "text"]),
        st.lists(st.integers(0, 11), max_size=3),
    ),
    min_size=1,
    max_size=12,
)


def built(plan):
    """Values that share each other: every one may hold any that came before, lists and dicts any at all."""
    made = []
    for at, (kind, edges) in enumerate(plan):
        before = [made[edge % at] for edge in edges] if at else []
        made.append(MAKE[kind](at, before, made))
    for value, (_, edges) in zip(made, plan, strict=True):
        inside = [made[edge % len(made)] for edge in edges]
        if isinstance(value, list):
            value.extend(inside)
        elif isinstance(value, dict):
            value.update({f"to {edge}": other for edge, other in enumerate(inside)})
    return made


def _set(at, before, _):
    return {at, *(each for each in before if isinstance(each, str | tuple) and _hashable(each))}


def _view(_, __, made):
    arrays = [each for each in made if isinstance(each, np.ndarray) and len(each) > 1]
    return arrays[-1][1:] if arrays else np.zeros(0)


MAKE = {
    "list": lambda at, *_: [at],
    "dict": lambda at, *_: {"at": at},
    "set": _set,
    "tuple": lambda at, before, _: (at, *before),
    "array": lambda at, *_: np.arange(4.0) + at,
    "view": _view,
    "frame": lambda at, *_: pd.DataFrame({"a": [at], "b": ["x"]}),
    "deque": lambda at, before, _: collections.deque([at, *before]),
    "text": lambda at, *_: f"text {at}",
}


def _hashable(value):
    return isinstance(value, str) or all(isinstance(part, str | int | tuple) and _hashable_part(part) for part in value)


def _hashable_part(part):
    return not isinstance(part, tuple) or _hashable(part)


def same_graph(one, other, paired=None):
    """Whether two values are equal and shared alike: the same objects met again where the same were met before."""
    paired = {} if paired is None else paired
    if type(one) is not type(other):
        return False
    if id(one) in paired:
        return paired[id(one)] is other
    if not isinstance(one, str | int | float | None.__class__):
        paired[id(one)] = other
    match one:
        case np.ndarray():
            return np.array_equal(one, other)
        case pd.DataFrame():
            return one.equals(other)
        case set():
            return one == other
        case dict():
            return list(one) == list(other) and all(same_graph(one[key], other[key], paired) for key in one)
        case list() | tuple() | collections.deque():
            return len(one) == len(other) and all(same_graph(a, b, paired) for a, b in zip(one, other, strict=True))
        case _:
            return one == other


@settings(max_examples=120, deadline=None)
@given(PLANS, st.booleans())
def test_graphs_come_back_with_their_sharing(plan, pickled):
    values = built(plan)
    names = {f"n{at}": value for at, value in enumerate(values)}
    if pickled:
        names["other"] = BESIDE
    packed = KERNEL.pack(names, result=(values,))
    assert packed.not_stored == ()
    found = KERNEL.codec.unpack(packed.payload, resolve=None)
    assert same_graph([values, *values], [found.result, *(found.names[f"n{at}"] for at in range(len(values)))])
    views = [(a, b) for a in values for b in values if isinstance(a, np.ndarray) and isinstance(b, np.ndarray)]
    back = [
        (a, b) for a in found.result for b in found.result if isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    ]
    assert [np.shares_memory(*pair) for pair in views] == [np.shares_memory(*pair) for pair in back]


@settings(max_examples=150, deadline=None)
@given(VALUES, st.booleans())
def test_values_come_back_equal_in_both_forms(value, pickled):
    packed = KERNEL.pack({"v": value, **({"other": BESIDE} if pickled else {})})
    assert form(KERNEL, packed) == ("pickle" if pickled else "plain")
    found = KERNEL.codec.unpack(packed.payload, resolve=None).names["v"]
    assert KERNEL.digest(found).digest == KERNEL.digest(value).digest == packed.writes[0].digest


FRAME = pd.DataFrame(
    {
        "f": [1.5, math.nan],
        "i": np.array([1, 2], "int8"),
        "s": ["a", None],
        "o": [["a"], {"k": 1}],
        "c": pd.Categorical(["u", "v"], ordered=True),
        "d": pd.date_range("2024", periods=2),
        "z": pd.date_range("2024", periods=2, tz="Europe/Berlin"),
        "t": pd.timedelta_range("1h", periods=2),
        "I": pd.array([1, None], dtype="Int64"),
        "B": pd.array([True, None], dtype="boolean"),
        "F": pd.array([1.5, None], dtype="Float64"),
        "S": pd.array(["x", None], dtype="string"),
        "P": pd.array(["x", None], dtype=pd.StringDtype("python")),
        "A": pd.array([1, None], dtype="int64[pyarrow]"),
        "p": pd.period_range("2024-01", periods=2, freq="M"),
        "v": pd.interval_range(0, 2),
    }
)
PLAIN = {
    "complex": 1 + 2j,
    "big": -(2**100),
    "surrogate": "a\ud800",
    "long text": "é" * 800_000,
    "long bytes": bytes(2_000_000),
    "bytearray": bytearray(b"abc"),
    "range": range(1, 9, 3),
    "slice": slice(1, None, 2),
    "moment": datetime.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
    "zone": datetime.timezone(datetime.timedelta(hours=2), "X"),
    "date": datetime.date(2024, 1, 1),
    "time": datetime.time(1, 2, 3, 4),
    "span": datetime.timedelta(-1, 2, 3),
    "decimal": decimal.Decimal("1.500"),
    "fraction": fractions.Fraction(-1, 3),
    "uuid": uuid.UUID(int=5),
    "path": pathlib.Path("a/b"),
    "pattern": re.compile("a+", re.I),
    "array": array.array("d", [1.0, 2.0]),
    "deque": collections.deque([1, [2]], 3),
    "ordered": collections.OrderedDict(b=1, a=[2]),
    "counter": collections.Counter("hello"),
    "default": collections.defaultdict(list, {"a": [1]}),
    "generator": random.Random(3),
    "module": math,
    "function": math.sqrt,
    "class": collections.OrderedDict,
    "array C": np.arange(6.0).reshape(2, 3),
    "array F": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "strided": np.arange(20)[::3],
    "array of nothing": np.zeros((3, 0, 2)),
    "array without axes": np.array(3),
    "structured": np.array([(1, 2.0)], [("a", "i1"), ("b", "f8")]),
    "objects": np.array([[1, "a"], [None, [2]]], object),
    "texts": np.array(["a", "bcd"]),
    "moments": np.array(["2024-01-01"], "M8[s]"),
    "read-only": np.broadcast_to(np.arange(3), (2, 3)),
    "other byte order": np.array([1, 2], ">i4"),
    "number": np.float32(1.5),
    "dtype": np.dtype([("a", "i1")]),
    "frame": FRAME,
    "indexed": FRAME.set_index(["s", "i"]),
    "timed": FRAME.set_index(pd.date_range("2024", periods=2, freq="D", name="when")),
    "wide": pd.DataFrame(np.arange(600.0).reshape(2, 300)),
    "wide and mixed": pd.concat([pd.DataFrame(np.arange(240.0).reshape(2, 120)), FRAME], axis=1),
    "twice the same column": pd.concat([FRAME, FRAME], axis=1),
    "empty frame": FRAME.iloc[:0],
    "no columns": pd.DataFrame(index=[1, 2]),
    "series": FRAME.z,
    "stamp": pd.Timestamp("2024-01-01", tz="Europe/Berlin"),
    "missing": [pd.NaT, pd.NA],
    "table": pa.table({"a": [1, None], "b": ["x", None]}).replace_schema_metadata({"k": "v"}),
    "chunked": pa.chunked_array([["a"], [], ["b", None]]),
    "flags": pa.array([True, None, False]),
    "polars": pl.DataFrame({"a": [1, None], "b": ["x", None], "c": [[1], []]}),
}
PICKLED = {
    "namespace": types.SimpleNamespace(a=[1]),
    "error": ValueError("x", 1),
    "buffer": io.BytesIO(b"abc"),
    "lazy": pl.DataFrame({"a": [1, 2]}).lazy(),
    "nested arrow": pa.table({"a": [[1], None], "b": [{"x": 1}, None]}),
    "numpy generator": np.random.default_rng(1),
    "masked": np.ma.array([1, 2], mask=[0, 1]),
    "sparse column": pd.Series(pd.arrays.SparseArray([0, 0, 1])),
    "offset": pd.offsets.MonthEnd(2),
}


@pytest.mark.parametrize("beside", [None, BESIDE], ids=["plain", "pickled"])
@pytest.mark.parametrize("name", [*PLAIN, *PICKLED])
def test_values_of_many_types_come_back_as_they_were(kernel, name, beside):
    value = {**PLAIN, **PICKLED}[name]
    packed = kernel.pack({"v": value, "again": [value], **({} if beside is None else {"other": beside})})
    assert packed.not_stored == ()
    assert form(kernel, packed) == ("plain" if name in PLAIN and beside is None else "pickle")
    found = kernel.codec.unpack(packed.payload, resolve=None).names
    assert type(found["v"]) is type(value)
    # A hundred thousand characters of text are a value like any other; identity is kept for what can be changed.
    assert found["again"][0] is found["v"] or isinstance(value, str | bytes | int | type(pd.NA))
    assert kernel.digest(found["v"]).digest == kernel.digest(value).digest
    if isinstance(value, np.ndarray):
        assert found["v"].dtype == value.dtype
        assert (found["v"].flags.f_contiguous, found["v"].flags.writeable) == (
            value.flags.f_contiguous,
            value.flags.writeable,
        ) or name == "strided"
    if isinstance(value, pd.DataFrame):
        pd.testing.assert_frame_equal(found["v"], value)


def test_restored_arrays_and_frames_can_be_written_and_write_nobody_elses_memory(kernel):
    numbers = np.arange(300_000.0)
    frame = pd.DataFrame({"a": numbers, "b": numbers})
    other = frame.assign(c=1.0)  # pandas shares the columns of both until one is written
    packed = kernel.pack({"numbers": numbers, "frame": frame, "other": other})
    found = kernel.codec.unpack(packed.payload, resolve=None).names
    found["numbers"][0] = 5
    found["frame"].loc[0, "a"] = 7
    found["frame"]["new"] = 1
    assert found["numbers"][0] == 5
    assert found["frame"]["a"][0] == 7
    assert found["other"]["a"][0] == found["frame"]["b"][0] == 0
    again = kernel.codec.unpack(packed.payload, resolve=None).names
    assert again["numbers"][0] == again["frame"]["a"][0] == 0


def test_a_list_nested_deeper_than_the_stack_comes_back(kernel):
    class Node:
        pass

    first = node = Node()
    for _ in range(3000):
        node.next = Node()
        node = node.next
    node.next = None
    deep = []
    for _ in range(20_000):
        deep = [deep]
    kernel.space["Node"] = Node
    kernel.cells.learn(Node, kernel.cells.of(Node) or _definition())
    Node.__module__, Node.__qualname__ = "__main__", "Node"
    packed = kernel.pack({"first": first, "deep": deep})
    assert packed.not_stored == ()
    found = kernel.codec.unpack(packed.payload, resolve=None).names
    length, node = 0, found["first"]
    while node is not None:
        length, node = length + 1, node.next
    assert length == 3001


def _definition():
    from keel_notebook.core.ports import Definition

    return Definition(code="0" * 32, reads=frozenset(), source="")


def test_of_several_values_the_one_that_is_nested_too_deeply_is_named(kernel):
    bottomless = None
    for at in range(400_000):
        bottomless = [at, bottomless]
    packed = kernel.pack({"count": 5, "bottomless": bottomless, "note": {"x": "y"}})
    assert [item.name for item in packed.not_stored] == ["bottomless"]
    assert "too deeply" in packed.not_stored[0].reason
    assert kernel.codec.unpack(packed.payload, resolve=None).names == {"count": 5, "note": {"x": "y"}}
