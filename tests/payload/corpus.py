"""Values made from a seed, the same in every process: for comparing digests between processes."""

import array
import collections
import datetime
import decimal
import enum
import fractions
import functools
import operator
import pathlib
import random
import re
import uuid
from dataclasses import dataclass, field


class Colour(enum.Enum):
    RED = frozenset({"r", "e", "d"})
    BLUE = 2


@dataclass
class Point:
    x: int
    y: float = 0.0
    tags: set = field(default_factory=set)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class Node:
    """Hashes by identity, points to its parent and its neighbours: cycles through sets."""

    def __init__(self, name, parent=None):
        self.name = name
        self.parent = parent
        self.neighbours = set()


Pair = collections.namedtuple("Pair", "left right")


def corpus(seed, count=60):
    """Pairs of a name and a value, as many as asked for, and some that are always there."""
    chance = random.Random(seed)
    values = [(f"random {number}", _value(chance, 4)) for number in range(count)]
    return [*values, *_fixed(chance), *_libraries(), ("tree", tree()), ("graph", graph(chance))]


def tree():
    root = Node("root")
    for at in range(6):
        child = Node(f"child {at % 3}", root)
        root.neighbours.add(child)
        child.neighbours = {Node("leaf", child) for _ in range(at)}
    return root


def graph(chance):
    nodes = [Node(f"n{at}") for at in range(12)]
    for node in nodes:
        node.neighbours = set(chance.sample(nodes, 4))
    return nodes


def _scalar(chance):
    return chance.choice(
        [
            None,
            True,
            chance.randrange(-5, 5),
            chance.getrandbits(90),
            chance.random(),
            float("nan"),
            -0.0,
            f"word {chance.randrange(50)}",
            "é\ud800",
            bytes([chance.randrange(256)]),
            1j,
            Colour.RED,
            Pair(1, "x"),
        ]
    )


def _value(chance, depth):
    if depth == 0 or chance.random() < 0.2:
        return _scalar(chance)
    length = chance.randrange(5)
    inside = [_value(chance, depth - 1) for _ in range(length)]
    match chance.randrange(8):
        case 0 | 1:
            return inside
        case 2:
            return tuple(inside)
        case 3 | 4:
            return {f"key {at}": value for at, value in enumerate(inside)}
        case 5:
            return {_scalar(chance) for _ in range(length)} | {"always", 1, "there"}
        case 6:
            return Point(length, 1.5, {"a", "b", "c"})
        case _:
            made = Slotted(inside)
            if length % 2:
                made.b = {"x", "y"}
            return made


def _fixed(chance):
    values = [
        {f"word {at}" for at in range(200)},
        frozenset({("a", 1), ("b", 2), ("c", 3)}),
        {frozenset({"a", "b"}), frozenset({"c"}), None, 3},
        {(1.5, "a"), (2.5, "b")},
        collections.Counter("hello"),
        collections.defaultdict(set, {"k": {"a", "b"}}),
        collections.OrderedDict(b=1, a=2),
        collections.deque(["a", {"b", "c"}], 5),
        datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC),
        datetime.timedelta(days=1, microseconds=3),
        decimal.Decimal("1.50"),
        fractions.Fraction(1, 3),
        pathlib.PurePosixPath("a/b"),
        re.compile("a+", re.IGNORECASE),
        uuid.UUID(int=7),
        array.array("d", [1.0, 2.0]),
        memoryview(b"abc"),
        range(3, 9, 2),
        random.Random(4),
        functools.partial(operator.add, 1),
        Colour,
        Point,
        len,
        str.upper,
        {"a": {1, 2}}.keys(),
        ValueError("x", {"a", "b"}),
        [chance.random() for _ in range(1000)],
    ]
    return [(f"fixed {at} {type(value).__name__}", value) for at, value in enumerate(values)]


def _libraries():
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from scipy import sparse
    from sklearn.ensemble import RandomForestClassifier

    features = np.random.RandomState(0).rand(60, 3)
    frame = pd.DataFrame({"n": [1, 2], "s": ["a", None], "o": [{"x", "y"}, [1]], "c": pd.Categorical(["u", "v"])})
    return [
        ("array", features),
        ("objects", np.array([{"a", "b"}, None, "x"], dtype=object)),
        ("generator", np.random.default_rng(3)),
        ("frame", frame),
        ("series", frame.s),
        ("polars", pl.DataFrame({"a": [1, None], "b": ["x", "yy"]})),
        ("arrow", pa.table({"a": [1, None], "b": [["x"], None]})),
        ("sparse", sparse.csr_matrix(np.eye(3))),
        ("forest", RandomForestClassifier(4, random_state=0).fit(features, features[:, 0] > 0.5)),
    ]
