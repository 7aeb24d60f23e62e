"""What a person allows with a value is part of it: arrays that were made read-only, frames without duplicate labels."""

import numpy as np
import pandas as pd
import pytest

MADE = """
import numpy as np, pandas as pd
class Named(np.ndarray): unit = ""
def named(array):
    array = array.view(Named)
    array.unit = "m"
    return array
def locked(array):
    array.flags.writeable = False
    return array
"""
ARRAYS = {
    "small": "np.arange(3.0)",
    "middling": "np.arange(20_000.0)",
    "large": "np.arange(300_000.0)",
    "of objects": "np.array([1, None, [2]], dtype=object)",
    "objects in two dimensions": "np.array([[1, None], ['a', 2]], dtype=object)",
    "without dimensions": "np.array(5)",
    "empty": "np.zeros((0, 3))",
    "structured": "np.array([(1, 2.0)], dtype=[('a', int), ('b', float)])",
    "in Fortran order": "np.asfortranarray(np.ones((3, 4)))",
    "masked": "np.ma.masked_array(np.arange(3), [0, 1, 0])",
    "with attributes": "named(np.arange(3.0))",
    "of records": "np.rec.array([(1, 2.0)], dtype=[('a', int), ('b', float)])",
}


@pytest.mark.parametrize("held", ["x = {0}", "x = [{0}]", "x = ({0}, slice(1), print)"])
@pytest.mark.parametrize("array", ARRAYS)
def test_an_array_that_was_made_read_only_comes_back_so_and_counts_so(kernel, array, held):
    kernel.run(MADE)
    live = kernel.run(held.format(f"locked({ARRAYS[array]})"))["x"]
    writable = kernel.run(held.format(ARRAYS[array]))["x"]
    found = kernel.codec.unpack(kernel.pack({"x": live, "y": writable}).payload, resolve=None).names
    one, other = (found[name][0] if type(live) in (list, tuple) else found[name] for name in "xy")
    assert (one.flags.writeable, other.flags.writeable) == (False, True)
    one.flags.writeable = True  # as live: its owner may change his mind
    one.flags.writeable = False
    assert getattr(one, "unit", "m") == getattr(other, "unit", "m") == "m"
    if array not in {"of records", "with attributes"}:  # those count by their content alone
        assert kernel.digest(live).digest != kernel.digest(writable).digest
    assert kernel.digest(found["x"]).digest == kernel.digest(live).digest
    assert kernel.digest(found["y"]).digest == kernel.digest(writable).digest


def test_a_read_only_view_stays_one_and_its_base_stays_writable(kernel):
    base = np.arange(10)
    view = base[:5]
    view.flags.writeable = False
    found = kernel.codec.unpack(kernel.pack({"base": base, "view": view}).payload, resolve=None).names
    found["base"][0] = 7
    assert (found["view"][0], found["view"].flags.writeable) == (7, False)


def test_whether_a_frame_gives_its_memory_away_for_writing_does_not_count(kernel):
    """It depends on how a frame lies in memory, and one that was put back lies differently."""
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": [3.5, 4.5]})
    back = kernel.codec.unpack(kernel.pack({"f": frame}).payload, resolve=None).names["f"]
    for ask in (lambda f: f.to_numpy(), lambda f: f["a"].to_numpy(), lambda f: f.values, lambda f: f[["a"]].values):
        assert kernel.digest(ask(frame)).digest == kernel.digest(ask(back)).digest
    own = np.array([1.5, 2.5])
    own.flags.writeable = False
    assert kernel.digest(pd.DataFrame({"a": own})).digest == kernel.digest(frame[["a"]]).digest
    assert kernel.digest(pd.Series(own, name="a")).digest == kernel.digest(frame["a"]).digest
    assert (
        kernel.digest(np.frombuffer(b"12345678")).digest == kernel.digest(np.frombuffer(bytearray(b"12345678"))).digest
    )


@pytest.mark.parametrize("make", [lambda: pd.DataFrame({"a": [1, 2]}), lambda: pd.Series([1, 2], name="a")])
def test_whether_labels_may_occur_twice_comes_back_and_counts(kernel, make):
    strict = make().set_flags(allows_duplicate_labels=False)
    found = kernel.codec.unpack(kernel.pack({"s": strict, "f": make()}).payload, resolve=None).names
    assert (found["s"].flags.allows_duplicate_labels, found["f"].flags.allows_duplicate_labels) == (False, True)
    assert kernel.digest(strict).digest != kernel.digest(make()).digest
    assert kernel.digest(found["s"]).digest == kernel.digest(strict).digest
