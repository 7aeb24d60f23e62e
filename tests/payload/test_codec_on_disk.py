"""The codec on the real journal: time, memory and disk, as ratios measured in one run (DESIGN 10)."""

import gc
import pickle
import time
import tracemalloc
import types

import numpy as np
import pandas as pd
import pytest

from keel_notebook.core.ports import Definition
from keel_notebook.journal.disk import open_journal
from keel_notebook.payload.seal import OwnerSeal
from tests.payload.conftest import make_kernel

MB = 1 << 20


class RealClock:
    def now(self):
        return time.time()

    def monotonic(self):
        return time.monotonic()


@pytest.fixture
def kernel(tmp_path):
    journal = open_journal(
        tmp_path / ".keel", clock=RealClock(), seal=OwnerSeal(b"k" * 32), notebook="", cwd=str(tmp_path), rest_s=None
    )
    yield make_kernel(journal)
    gc.collect()
    journal.close(clean=True)


def on_disk(folder):
    return sum(each.stat().st_size for each in (folder / ".keel" / "objects").rglob("*") if each.is_file())


def cpu_seconds(call, times=3):
    """The least processor time that a call took: other work on the machine does not count."""
    taken = []
    for _ in range(times):
        begin = time.process_time()
        call()
        taken.append(time.process_time() - begin)
    return min(taken)


def test_what_the_journal_maps_is_what_was_packed(kernel):
    source = """
import numpy as np, pandas as pd
v = np.arange(400_000.0); w = v[::-2]
df = pd.DataFrame({"a": v, "s": pd.array([f"name {i}" for i in range(400_000)], dtype="str")})
text = "é" * 1_200_000; raw = bytes(2_000_000)
"""
    packed = kernel.step(source)
    before = dict(kernel.space)
    found = kernel.replay(packed).names
    for name in ("v", "w", "df", "text", "raw"):
        assert kernel.digest(found[name]).digest == kernel.digest(before[name]).digest, name
    found["w"][0] = -1
    assert found["v"][-1] == -1
    found["df"].loc[0, "s"] = "changed"
    found["df"]["b"] = found["df"].a * 2
    again = kernel.codec.unpack(packed.payload, resolve=None).names
    assert again["v"][-1] == 399_999
    pd.testing.assert_frame_equal(again["df"], before["df"])


def test_recording_arrays_and_frames_takes_no_second_copy(kernel):
    arrays = {"a": np.random.default_rng(0).random(16 * MB)}
    arrays["strided"] = arrays["a"].reshape(4096, -1)[:, ::2]
    frames = {"df": pd.DataFrame({"t": pd.array(["a text of some length"] * 3_000_000, dtype="str"), "n": 1.5})}
    for names in (arrays, frames):
        tracemalloc.start()
        try:
            packed = kernel.pack(names)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert packed.not_stored == ()
        assert packed.payload.bytes > 64 * MB
        assert peak < 32 * MB


def test_restoring_maps_instead_of_reading(kernel):
    big = np.zeros(32 * MB)
    packed = kernel.pack({"big": big, "df": pd.DataFrame({"a": big, "b": big})})
    copying = cpu_seconds(big.copy)
    restoring = cpu_seconds(lambda: kernel.codec.unpack(packed.payload, resolve=None))
    assert restoring < copying / 5 + 0.002


def test_twelve_columns_cost_twelve_columns_on_disk(kernel, tmp_path):
    rows = 150_000
    chance = np.random.default_rng(0)
    frame = pd.DataFrame(chance.random((rows, 8)), columns=list("abcdefgh"))
    kernel.pack({"frame": frame})
    stored = on_disk(tmp_path)
    for at in range(12):
        frame[f"n{at}"] = chance.random(rows)
        if at == 5:
            frame = frame.copy()
        kernel.pack({"frame": frame})
    assert on_disk(tmp_path) - stored <= 1.2 * 12 * rows * 8


class Point:
    def __init__(self, at):
        self.x, self.y, self.name = at, at * 1.5, f"point {at}"


def records():
    return [{"id": at, "name": f"user {at}", "tags": ["a", "b", at], "ok": at % 2 == 0} for at in range(40_000)]


def points():
    return [Point(at) for at in range(60_000)]


@pytest.mark.parametrize("make", [records, points])
def test_many_objects_cost_little_more_than_pickle(kernel, make):
    kernel.cells.learn(Point, Definition(code="0" * 32, reads=frozenset(), source=""))
    objects = make()
    names = {"objects": objects, "beside": types.SimpleNamespace()}
    raw = pickle.dumps(objects, 5)
    gc.collect()
    gc.disable()
    try:
        dumping, loading = cpu_seconds(lambda: pickle.dumps(objects, 5)), cpu_seconds(lambda: pickle.loads(raw))
        packing = cpu_seconds(lambda: kernel.pack(names))
        digesting = cpu_seconds(lambda: kernel.digest(objects))
        packed = kernel.pack(names)
        unpacking = cpu_seconds(lambda: kernel.codec.unpack(packed.payload, resolve=None))
    finally:
        gc.enable()
    assert digesting < 3.5 * dumping + 0.01
    assert packing < 5 * dumping + 0.02
    assert unpacking < 2 * loading + 0.02
