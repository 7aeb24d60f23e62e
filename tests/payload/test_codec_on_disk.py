"""The codec on the real journal: what it calls for many objects, memory and disk (DESIGN 10)."""

import gc
import time
import tracemalloc
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from keel_notebook.core.ports import Definition
from keel_notebook.journal.disk import open_journal
from keel_notebook.payload.seal import OwnerSeal
from tests.counted import calls
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


def own_memory():
    """Bytes of this process that no file stands behind."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))


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
    kernel.codec.unpack(packed.payload, resolve=None)
    before = own_memory()
    found = kernel.codec.unpack(packed.payload, resolve=None).names
    assert own_memory() < before + 16 * MB
    assert found["big"].nbytes + found["df"].memory_usage().sum() >= 512 * MB


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
def test_many_objects_are_packed_digested_and_restored_in_c(kernel, make):
    kernel.cells.learn(Point, Definition(code="0" * 32, reads=frozenset(), source=""))
    objects = make()
    names = {"objects": objects, "beside": types.SimpleNamespace()}
    assert calls(lambda: kernel.pack(names)) < 4 * len(objects)
    assert calls(lambda: kernel.digest(objects)) < len(objects) / 10
    packed = kernel.pack(names)
    assert calls(lambda: kernel.codec.unpack(packed.payload, resolve=None)) < 1_000
