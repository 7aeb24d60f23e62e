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
from tests.payload.test_digest_folds import neighbours, ring

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
    "scalars": ([None, True, 1, 2**70, 1.5, float("nan"), "é", b"b"], "0d25adaca85e16c7f4fc16e6f999d89f"),
    "records": ([{"id": at, "tags": ("a", at)} for at in range(20)], "d0968f391862789eca68a462bc87a9a9"),
    "sets": ({"a", 1, None, (2, "b"), frozenset({"x", "y"})}, "bfda1f452239ac80dfe956d9f34d9e80"),
    "array": (np.arange(6.0).reshape(2, 3), "e927f5043f0d486dd9a78dc5a0856bb8"),
    "large array": (np.arange(300_000.0), "b9e6712f34b428ab4e57e4d24b14a812"),
    "frame": (pd.DataFrame({"n": [1, 2], "s": ["a", None]}), "0ea351eced98357f0bbe082e5711538c"),
    "date": (datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), "791e67180a9cf653030d971fba15a9b2"),
    "shared": ([SHARED, SHARED], "c195fe44cf7d2772616689e065f40c4d"),
}
CYCLE = [1]
CYCLE.append(CYCLE)
DIGESTS["graph"] = (neighbours(), "b215d59207e75b5ad1e86e2e2c14cdde")
DIGESTS["graph with a cycle"] = ([neighbours(3000), ring(list("abcd"))], "ad5cd0e0689f75d460475dace6927385")
DIGESTS["cycle"] = (CYCLE, "ccc5f1b081c0606e7be754acd82d5c66")


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
