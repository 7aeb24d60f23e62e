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
    "scalars": ([None, True, 1, 2**70, 1.5, float("nan"), "é", b"b"], "0a14d50a3454ce57d74d20b7edf97978"),
    "records": ([{"id": at, "tags": ("a", at)} for at in range(20)], "8137d07551423c8e66abe744ae5292a4"),
    "sets": ({"a", 1, None, (2, "b"), frozenset({"x", "y"})}, "0ba69fba1634e2e678e5d53034b8178d"),
    "array": (np.arange(6.0).reshape(2, 3), "51ea9888082e0d3ff5acc84f0716e16b"),
    "large array": (np.arange(300_000.0), "92226702737e7771486d16a1241657e9"),
    "frame": (pd.DataFrame({"n": [1, 2], "s": ["a", None]}), "f41d328bd38a8d96dc1d7436b91d8ce7"),
    "date": (datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), "594502af2ccc646adbfbc8d7bb7ef1c9"),
    "shared": ([SHARED, SHARED], "3f869a8f55dba7aa019054a00f2b599c"),
}
CYCLE = [1]
CYCLE.append(CYCLE)
DIGESTS["cycle"] = (CYCLE, "68a5c352f6bee406595bbe15c9071121")


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
