"""Which values have one digest, and which have not (DESIGN 5, *Valid*)."""

import array
import collections
import copy
import datetime
import decimal
import enum
import functools
import gc
import io
import itertools
import math
import pickle
import re
import socket
import sqlite3
import struct
import sys
import threading
import types
import weakref
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.payload.conftest import make_kernel

HASHABLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.tuples(st.integers(), st.text(max_size=3)),
)
VALUES = st.recursive(
    HASHABLE,
    lambda inside: st.one_of(
        st.lists(inside, max_size=5),
        st.lists(inside, max_size=5).map(tuple),
        st.dictionaries(HASHABLE, inside, max_size=5),
        st.sets(HASHABLE, max_size=6),
        st.frozensets(HASHABLE, max_size=6),
    ),
    max_leaves=30,
)
KERNEL = make_kernel()


def same(one, other):
    """Equality as digests mean it: types count, the order of dicts counts, there is one NaN."""
    if type(one) is not type(other):
        return False
    match one:
        case float():
            return struct.pack("d", one) == struct.pack("d", other) or (math.isnan(one) and math.isnan(other))
        case list() | tuple():
            return len(one) == len(other) and all(map(same, one, other))
        case dict():
            return same(list(one), list(other)) and same(list(one.values()), list(other.values()))
        case set() | frozenset():
            rest = list(other)
            for item in one:
                found = next((at for at, candidate in enumerate(rest) if same(item, candidate)), None)
                if found is None:
                    return False
                del rest[found]
            return not rest
        case _:
            return one == other


@settings(max_examples=250, deadline=None)
@given(VALUES, VALUES)
def test_two_values_have_one_digest_exactly_if_they_are_the_same(one, other):
    equal = KERNEL.digest(one).digest == KERNEL.digest(other).digest
    assert equal == same(one, other)


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_copies_and_shuffled_sets_have_the_same_digest(value):
    wrapped = [value, value]
    copied = [pickle.loads(pickle.dumps(value)), _shuffled(value)]
    assert KERNEL.digest(wrapped).digest == KERNEL.digest(copied).digest


@settings(max_examples=150, deadline=None)
@given(VALUES, st.randoms(use_true_random=False))
def test_any_single_change_changes_the_digest(value, chance):
    held = [value, "end"]
    changed = _changed(held, chance)
    assert KERNEL.digest(held).digest != KERNEL.digest(changed).digest


def _shuffled(value):
    match value:
        case list() | tuple():
            return type(value)(map(_shuffled, value))
        case dict():
            return {_shuffled(key): _shuffled(item) for key, item in value.items()}
        case set() | frozenset():
            return type(value)(sorted(map(_shuffled, value), key=repr, reverse=True))
        case _:
            return copy.deepcopy(value)


def _changed(value, chance):
    """A copy in which one leaf is another one."""
    match value:
        case list() | tuple() if value:
            at = chance.randrange(len(value))
            return type(value)(_changed(item, chance) if i == at else item for i, item in enumerate(value))
        case dict() if value:
            at = chance.randrange(len(value))
            return {k: _changed(v, chance) if i == at else v for i, (k, v) in enumerate(value.items())}
        case set() | frozenset():
            return type(value)({*value, "something new that nobody drew"})
        case _:
            return ["changed", value]


class Status(enum.Enum):
    A = 1
    B = 2


@dataclass
class Item:
    x: int


@dataclass(slots=True)
class Slim:
    x: int


class Slotted:
    __slots__ = ("x", "y")


Named = collections.namedtuple("Named", "x")
Other = collections.namedtuple("Other", "x")

NOON = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
DIFFERENT = [
    *(None, True, 1, 1.0, 1j, "1", b"1", bytearray(b"1"), (1,), [1], {1}, frozenset({1}), {1: 1}),
    *(0.0, -0.0, float("nan"), float("inf"), -1, 2**64, -(2**64), 2**200, "", b"", (), [], {}, set()),
    *([[1], 2], [1, [2]], [[1, 2]], {"a": 1, "b": 2}, {"b": 2, "a": 1}, ["a", "bc"], ["ab", "c"]),
    *([1, 2, 3], [1, 2, 4], [1.0, 2.0], [True], [b"a"], ["a\0", "b"], ["a", "\0b"]),
    *(Named(1), Other(1), Item(1), Item(2), Slim(1), Status.A, Status.B, types.SimpleNamespace(x=1)),
    *(range(3), range(4), slice(1), slice(1, None, 2), ..., NotImplemented, memoryview(b"1")),
    *(datetime.date(2024, 1, 1), NOON.replace(tzinfo=None), NOON.replace(tzinfo=None, fold=1)),
    *(NOON, datetime.timedelta(1), datetime.time(1)),
    *(decimal.Decimal("1"), decimal.Decimal("1.0"), re.compile("a"), re.compile("a", re.I), re.compile(b"a")),
    *(array.array("i", [1]), array.array("l", [1]), collections.deque([1]), collections.deque([1], 2)),
    *(collections.OrderedDict({1: 1}), collections.Counter({1: 1}), collections.defaultdict(int, {1: 1})),
    *(collections.defaultdict(list, {1: 1}), functools.partial(int, 1), functools.partial(int, 2), {1: 1}.keys()),
    *(np.int8(1), np.int16(1), np.float64(1), np.bool_(True), np.str_("1"), np.dtype("f8"), np.dtype("f4")),
    *(np.array(1), np.array([1]), np.array([1.0]), np.array([[1]]), np.array([1], ">i8"), np.array(["1"])),
    *(np.array([1], object), np.array([1.0], object), np.array([1], "M8[ns]"), np.array([1], "M8[s]")),
    *(np.array([(1, 2)], [("a", "i1"), ("b", "i1")]), np.array([(1, 2)], [("a", "i1"), ("c", "i1")])),
    *(len, max, str.upper, "a".upper, "b".upper, int, float, collections, math, math.sin, math.cos),
    *(io.BytesIO(b"1"), io.StringIO("1"), ValueError("1"), ValueError("2"), KeyError("1")),
    *(list[int], list[str], int | str, types.MappingProxyType({1: 1}), itertools.count(1), itertools.count(2)),
]


def test_values_that_differ_in_type_or_content_all_have_digests_of_their_own(kernel):
    digests = [kernel.digest(value) for value in DIFFERENT]
    assert [found.reason for found in digests if found.digest is None] == []
    by_digest = collections.defaultdict(list)
    for value, found in zip(DIFFERENT, digests, strict=True):
        by_digest[found.digest].append(repr(value))
    assert [together for together in by_digest.values() if len(together) > 1] == []


def test_pickled_copies_have_the_same_digest(digest):
    # numpy turns arrays of the other byte order round; views of dicts and modules are not copied by pickle at all.
    left_out = (type({}.keys()), types.ModuleType, memoryview, types.MappingProxyType)
    values = [v for v in DIFFERENT if not isinstance(v, left_out) and getattr(v, "dtype", None) != ">i8"]
    different = [v for v in values if digest(pickle.loads(pickle.dumps(v))) != digest(v)]
    assert different == []


def test_there_is_one_nan(digest):
    other = struct.unpack("d", struct.pack("Q", 0xFFF8000000000001))[0]
    assert math.isnan(other)
    assert digest([float("nan"), 1.0]) == digest([other, 1.0])
    assert digest({float("nan"): 1}) == digest({other: 1})
    assert digest(np.float64("nan")) == digest(np.float64(other))
    assert digest({other, 1.5}) == digest({1.5, float("nan")})


def test_the_salt_keys_the_digest():
    one, other = make_kernel(), make_kernel()
    other.digester = type(other.digester)(salt=b"t" * 32, definitions=other.cells)
    assert one.digest("secret").digest != other.digest("secret").digest


def test_an_attribute_set_later_counts(digest):
    item = Item(1)
    before = digest([item] * 20)
    item.extra = 1
    assert digest([item] * 20) != before


def test_a_slot_that_only_some_instances_have_set_counts(digest):
    class Mixed:
        __slots__ = ("__dict__", "slot")

    plain, slotted = Mixed(), Mixed()
    slotted.slot = 5
    before = digest([plain, slotted])
    slotted.slot = 6
    assert digest([plain, slotted]) != before


def test_instances_with_slots_count_by_all_of_them(digest):
    def points(*pairs):
        made = []
        for x, y in pairs:
            made.append(Slotted())
            made[-1].x = x
            if y is not None:
                made[-1].y = y
        return made

    plans = [[(1, 2)] * 9, [(1, 2)] * 8 + [(1, 3)], [(1, 2)] * 8 + [(1, None)], [(1, {"a", "b"})] * 9]
    assert len({digest(points(*plan)) for plan in plans}) == len(plans)
    assert digest(points(*plans[3])) == digest(points(*[(1, {"b", "a"})] * 9))
    assert digest([Slim(1)] * 9) != digest([Slim(2)] * 9)


def test_sets_of_mixed_members_do_not_depend_on_order_or_hash(digest):
    members = [1, 2.5, "a", b"a", None, "True", "x" * 100_000, "y" * 100_000, (1, "a"), float("inf")]
    backwards = members[::-1]
    assert digest(set(members)) == digest(set(backwards))
    assert digest(set(members)) != digest(set(members) - {None})
    assert digest({"x" * 100_000, 1}) != digest({"y" * 100_000, 1})


def test_what_hides_in_subclasses_of_builtins_counts(digest):
    class Words(list):
        pass

    class Tags(set):
        pass

    words, tags = Words(["a"]), Tags(["a", "b"])
    assert len({digest(words), digest(Words(["b"])), digest(["a"]), digest(tags), digest(Tags(["a"]))}) == 5
    words.source = "somewhere"
    assert digest(words) != digest(Words(["a"]))
    assert digest(Tags(["b", "a"])) == digest(tags)


def test_a_weak_reference_counts_by_what_it_points_to(digest):
    target = Item(1)
    before = digest([weakref.ref(target)])
    target.x = 2
    assert digest([weakref.ref(target)]) != before


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ((i for i in ()), "generator"),
        (iter([1]), "list_iterator"),
        (zip(), "zip"),
        (map(len, []), "map"),
        (itertools.chain([1]), "itertools.chain"),
        (threading.Lock(), "_thread.lock"),
        (types.SimpleNamespace(items=[1, 2, 3, (i for i in ())]), "items[3] (generator)"),
        ({"db": [{}, {"locks": (threading.RLock(),)}]}, "['db'][1]['locks'][0] (_thread.RLock)"),
        ([functools.partial(len, iter(()))], None),
    ],
)
def test_what_cannot_be_digested_says_which_part_and_why(kernel, value, reason):
    found = kernel.digest(value)
    assert found.digest is None
    assert found.reason == reason if reason else found.reason == "tuple_iterator, somewhere inside"


def test_open_files_connections_sockets_and_threads_have_no_digest(kernel, tmp_path):
    with (
        open(tmp_path / "f", "w") as file,
        open(tmp_path / "f", "rb") as binary,
        socket.socket() as plug,
    ):
        connection = sqlite3.connect(":memory:")
        for value in (file, binary, plug, connection, threading.current_thread(), [file]):
            assert kernel.digest(value).digest is None
        connection.close()


def test_a_type_that_raises_anything_has_no_digest_and_raises_nothing(kernel):
    class Hostile:
        def __reduce_ex__(self, protocol):
            raise OSError("no")

        def __repr__(self):
            raise AssertionError("digests never ask for a repr")

    found = kernel.digest({"x": Hostile()})
    assert found.digest is None
    assert "Hostile" in found.reason


def test_a_reason_never_shows_a_value(kernel):
    value = {"sk-test-1234567890abcdef": (i for i in ())}
    assert "sk-test" not in kernel.digest(value).reason


def test_a_digest_keeps_nothing_alive(kernel):
    values = [[weakref.ref(kernel)], {"a": {1, 2}}, (lambda: 1,), [[1], [2]]]
    gc.disable()
    try:
        before = [sys.getrefcount(value) for value in values]
        for value in values:
            kernel.digest(value)
        del value
        assert [sys.getrefcount(value) for value in values] == before
    finally:
        gc.enable()


def test_renamed_fields_are_seen_although_the_dtype_is_the_same_object(digest):
    kind = np.dtype([("a", "i4"), ("b", [("c", "f8"), ("d", "u1")])])
    plain = np.dtype([("a", "i4"), ("b", "f8")])
    nested, flat = np.zeros(3, kind), np.zeros(3, plain)
    found = {digest(nested), digest(flat)}
    flat.dtype.names = ("a", "x")
    found.add(digest(flat))
    nested.dtype["b"].names = ("c", "e")
    assert nested.dtype is kind
    found |= {digest(nested), digest(np.zeros(3, [("a", "i4"), ("b", [("c", "f8"), ("e", "u1")])]))}
    assert len(found) == 4
