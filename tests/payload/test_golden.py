"""Payloads of every version that was ever released, kept as they were written: they are read for ever (STYLE 9)."""

import datetime
import decimal
import json
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from keel_notebook.core.model import Payload

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text())
SOURCE = "k = 2\nclass P:\n    def __init__(self): self.x = [1]\ndef f(x): return x + k"


def values(space):
    """What is in them. ``space`` is the namespace in which the cell ``SOURCE`` ran."""
    rows = [1, 2.5, None, True, "é", b"b", 2**80]
    numbers = np.arange(4.0)
    return {
        "rows": rows,
        "again": {"rows": rows, ("a", 1): frozenset({3})},
        "v": numbers,
        "w": numbers[1:],
        "df": pd.DataFrame({"n": [1, 2], "s": ["a", None]}, index=pd.Index(["x", "y"], name="i")),
        "when": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        "exact": decimal.Decimal("1.50"),
        "np": np,
        "p": space["P"](),
        "fn": space["f"],
        "ns": types.SimpleNamespace(a=rows),
    }


SHARED = [1]
DIGESTS = {
    "scalars": ([None, True, 1, 2**70, 1.5, float("nan"), "é", b"b"], "26aa7915ed8e4243567701cbd480a35b"),
    "records": ([{"id": at, "tags": ("a", at)} for at in range(20)], "59c92af12fd43d7cb8c52ecb9b828a5a"),
    "sets": ({"a", 1, None, (2, "b"), frozenset({"x", "y"})}, "43244ae10a827774bc2f8001507e41b8"),
    "array": (np.arange(6.0).reshape(2, 3), "77a2fc59e6eb5fe6e0b80e633a87b421"),
    "large array": (np.arange(300_000.0), "c71326bdc0656bc9574b6f7833ea7743"),
    "frame": (pd.DataFrame({"n": [1, 2], "s": ["a", None]}), "0697353341a0036209ed6090d60fcc78"),
    "date": (datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), "df4c43c44800f92c5fd269731b70d538"),
    "shared": ([SHARED, SHARED], "8f1d766fb321ee2a16f0860b0daf0211"),
}
CYCLE = [1]
CYCLE.append(CYCLE)
DIGESTS["cycle"] = (CYCLE, "143a0f51b138318ab366155354f7687f")


@pytest.mark.parametrize("name", DIGESTS)
def test_digests_are_those_of_this_version(digest, name):
    """A step recorded by this version replays in the next. If this has to change, change ``digest.VERSION``."""
    value, expected = DIGESTS[name]
    assert digest(value) == expected


@pytest.mark.parametrize("form", ["plain", "pickle"])
@pytest.mark.parametrize("schema", GOLDEN)
def test_a_payload_of_an_older_keel_is_read(kernel, schema, form):
    kept = GOLDEN[schema][form]
    kernel.run(SOURCE)
    payload = Payload(kernel.journal.blob(bytes.fromhex(kept["head"])), tuple(kept["buffers"]))
    found = kernel.codec.unpack(payload, resolve=None).names
    for name, value in found.items():
        assert kernel.digest(value).digest == kernel.digest(values(kernel.space)[name]).digest, name
    assert found["again"]["rows"] is found["rows"]
    assert np.shares_memory(found["v"], found["w"])
    if form == "pickle":
        assert type(found["p"]) is kernel.space["P"]
        assert found["fn"] is kernel.space["f"]
        assert found["ns"].a is found["rows"]
