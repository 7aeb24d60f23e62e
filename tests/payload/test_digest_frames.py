"""Arrays and frames in digests: content, names, order and types; never chunks, offsets or padding (C34, C36, C58)."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.counted import calls
from tests.payload.conftest import make_kernel


def test_an_array_counts_by_dtype_shape_and_content_in_c_order(digest):
    array = np.arange(24.0).reshape(4, 6)
    same = [array.copy(), np.asfortranarray(array), array.T.copy().T, np.tile(array, 2)[:, :6], array[::-1][::-1]]
    assert {digest(one) for one in same} == {digest(array)}
    other = array.copy()
    other[3, 5] += 1
    assert len({digest(one) for one in (array, array.T, array.ravel(), array.astype("f4"), other)}) == 5


def test_large_arrays_in_any_layout_too(digest):
    array = np.random.default_rng(0).random((1500, 1000))
    assert digest(array) == digest(np.asfortranarray(array)) == digest(np.repeat(array, 2, axis=1)[:, ::2])
    changed = array.copy()
    changed[700, 3] = -1
    assert digest(changed) != digest(array)


def test_the_padding_of_structured_arrays_does_not_count(digest):
    kind = np.dtype([("a", "i1"), ("b", "f8")], align=True)
    one, other = np.zeros(2, kind), np.zeros(2, kind)
    other.view("u1")[:] = 255
    for array in (one, other):
        array["a"], array["b"] = 1, 2.0
    assert one.tobytes() != other.tobytes()
    assert digest(one) == digest(other)
    other["a"][1] = 2
    assert digest(one) != digest(other)


def test_what_lies_under_a_mask_does_not_count(digest):
    one, other = np.ma.array([1, 2, 3], mask=[0, 1, 0]), np.ma.array([1, 9, 3], mask=[0, 1, 0])
    assert digest(one) == digest(other) != digest(np.ma.array([1, 2, 3], mask=[0, 1, 1]))
    ints = [pd.array(values, dtype="Int64") for values in ([1, 2, 3], [1, 9, 3])]
    for array in ints:
        array[1] = pd.NA
    assert digest(ints[0]) == digest(ints[1])


def frame():
    return pd.DataFrame(
        {
            "n": [1.0, 2.0, 3.0],
            "s": ["a", None, "ccc"],
            "o": [["a", "b"], {"k": 1}, None],
            "c": pd.Categorical(["u", "v", "u"]),
            "t": pd.date_range("2024", periods=3, tz="UTC"),
        }
    )


CHANGES = {
    "a value": lambda df: df.assign(n=[1.0, 2.0, 4.0]),
    "a text": lambda df: df.assign(s=["a", None, "ccd"]),
    "a null": lambda df: df.assign(s=["a", "", "ccc"]),
    "a list in a cell": lambda df: df.assign(o=[["a", "c"], {"k": 1}, None]),
    "a dict in a cell": lambda df: df.assign(o=[["a", "b"], {"k": 2}, None]),
    "a type": lambda df: df.astype({"n": "float32"}),
    "a category": lambda df: df.assign(c=df.c.cat.rename_categories({"u": "w"})),
    "the order of categories": lambda df: df.assign(c=df.c.cat.reorder_categories(["v", "u"])),
    "a time zone": lambda df: df.assign(t=df.t.dt.tz_convert("Europe/Berlin")),
    "a column's name": lambda df: df.rename(columns={"n": "m"}),
    "the order of columns": lambda df: df[["s", "n", "o", "c", "t"]],
    "the order of rows": lambda df: df.iloc[::-1],
    "the index": lambda df: df.set_axis([1, 2, 3]),
    "the index's name": lambda df: df.rename_axis("id"),
    "the columns' name": lambda df: df.rename_axis(columns="what"),
    "a row": lambda df: df.iloc[:2],
    "an attribute": lambda df: (df.attrs.update(source="x"), df)[1],
}


@pytest.mark.parametrize("change", CHANGES)
def test_c58_any_change_of_a_frame_counts(digest, change):
    assert digest(frame()) == digest(frame())
    assert digest(CHANGES[change](frame())) != digest(frame())


def test_how_a_frame_lies_in_memory_does_not_count(digest):
    numbers = pd.DataFrame(np.random.default_rng(0).random((50, 6)), columns=list("abcdef"))
    apart = numbers[["a"]].copy()
    for name in "bcdef":
        apart[name] = numbers[name].to_numpy().copy()
    pieces = pd.concat([numbers.iloc[:20], numbers.iloc[20:]])
    assert len(apart._mgr.blocks) != len(numbers._mgr.blocks)
    assert digest(numbers) == digest(apart) == digest(pieces) == digest(numbers.copy())
    assert digest(numbers[["a", "c"]]) == digest(apart[["a", "c"]])


TEXTS = pa.array(["a", None, "", "dddd", "é"] * 40, pa.large_string())
COLUMNS = {
    "texts": TEXTS,
    "short texts": TEXTS.cast(pa.string()),
    "binary": TEXTS.cast(pa.large_binary()),
    "numbers": pa.array([1, None, 3] * 40),
    "small numbers": pa.array([1, None, 3] * 40, pa.int8()),
    "floats": pa.array([1.5, None, float("nan")] * 40),
    "half floats": pa.array(np.array([1.5, 2, 3] * 40, "f2")),
    "flags": pa.array([True, None, False] * 40),
    "dates": pa.array([1, None, 3] * 40, pa.date32()),
    "times": pa.array([1, None, 3] * 40, pa.timestamp("us", tz="UTC")),
    "decimals": pa.array([None, 2, 3] * 40, pa.decimal128(9, 2)),
    "lists": pa.array([["a"], None, [], ["b", None]] * 30),
    "structs": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": ""}] * 40),
    "dictionary": pa.array(["x", "y", None] * 40).dictionary_encode(),
    "nothing": pa.nulls(120),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_chunks_and_slices_of_arrow_columns_do_not_count(digest, name):
    column = COLUMNS[name]
    whole = pa.chunked_array([column])
    chunked = pa.chunked_array([column.slice(0, 7), column.slice(7, 0), column.slice(7, 50), column.slice(57)])
    inside = pa.concat_arrays([column, column, column]).slice(len(column), len(column))
    assert digest(chunked) == digest(whole)
    assert digest(pa.table({"c": chunked})) == digest(pa.table({"c": whole}))
    assert digest(inside) == digest(column)
    assert digest(column.slice(1)) != digest(column)
    assert digest(pa.table({"c": whole})) != digest(pa.table({"d": whole}))


def test_what_lies_under_an_arrow_null_does_not_count(digest):
    def texts(content):
        buffers = [pa.py_buffer(b"\x02"), pa.py_buffer(np.array([0, 2, 3], "i4")), pa.py_buffer(content)]
        return pa.Array.from_buffers(pa.string(), 2, buffers)

    def numbers(hidden):
        return pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\xfe"), pa.py_buffer(np.array([hidden, 2]))])

    assert digest(texts(b"xxq")) == digest(texts(b"zzq")) == digest(pa.array([None, "q"])) != digest(texts(b"xxr"))
    assert digest(numbers(5)) == digest(numbers(6)) == digest(pa.array([None, 2]))


def test_c57_polars_frames_count_by_content(digest):
    frame = pl.DataFrame({"a": [1, None, 3], "b": ["x", "yy", None], "c": [[1], None, []]})
    chunked = pl.concat([frame.head(1), frame.tail(2)], rechunk=False)
    filtered = pl.concat([frame, frame]).filter(pl.Series([True] * 3 + [False] * 3))
    assert digest(frame) == digest(chunked) == digest(filtered) == digest(frame.clone())
    assert digest(frame.with_columns(a=pl.lit(1))) != digest(frame)
    assert digest(frame.rename({"a": "z"})) != digest(frame)
    assert digest(frame.lazy()) == digest(frame.lazy())


@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_c36_large_frames_are_digested_by_column_and_not_by_row(kind):
    kernel = make_kernel()

    def frame(rows):
        if kind == "numbers":
            return pd.DataFrame(np.random.default_rng(0).random((rows, 8)))
        return pd.DataFrame({"t": pd.array([f"name {at}" for at in range(rows)], dtype="str")})

    small, large = frame(20_000), frame(200_000)
    kernel.digest(small)
    assert calls(lambda: kernel.digest(large)) < 2 * calls(lambda: kernel.digest(small))


def test_an_array_is_not_copied_to_be_digested(kernel):
    import tracemalloc

    array = np.zeros(16 << 20)
    values = [array, array[::2], np.asfortranarray(array.reshape(4096, -1))]
    tracemalloc.start()
    try:
        kernel.digest(values)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20
