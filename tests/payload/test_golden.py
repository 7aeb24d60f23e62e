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
