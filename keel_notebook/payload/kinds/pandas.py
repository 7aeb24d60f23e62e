"""Kinds of pandas: frames by column, so that a column is stored once however many frames and steps it is in (DESIGN 6).

Built again without a copy: every column lies on the memory that the journal mapped, together with the arrays that lay
on it (``x = df["x"].values``), but never with another frame: writing into one frame never shows in another. pandas 3's
own blocks come back only for frames so wide that columns would be a burden.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from keel_notebook.payload.kinds import Kind
from keel_notebook.payload.kinds.numpy import Column, Inside

WIDE = 100
"""pandas itself warns about frames of more blocks than this."""


def kinds() -> Iterator[Kind]:
    """All of them."""
    pd = _pd()
    yield Kind("pandas.frame", pd.DataFrame, _take_frame, _build_frame, compare=_compare_frame)
    yield Kind("pandas.series", pd.Series, _take_series, _build_series)
    yield from _indexes(pd)
    yield from _arrays(pd)
    yield Kind("pandas.timestamp", pd.Timestamp, lambda v: (v.asm8, v.tz, v.fold), _build_timestamp, native=True)
    yield Kind("pandas.timedelta", pd.Timedelta, lambda v: (v.asm8,), lambda m8: _pd().Timedelta(m8), native=True)
    yield Kind("pandas.nat", type(pd.NaT), lambda _: (), lambda: _pd().NaT, native=True)
    yield Kind("pandas.na", type(pd.NA), lambda _: (), lambda: _pd().NA, native=True)


def _indexes(pd: Any) -> Iterator[Kind]:
    yield Kind("pandas.range", pd.RangeIndex, lambda v: (v.start, v.stop, v.step, v.name), _build_range)
    yield Kind("pandas.multi", pd.MultiIndex, _take_multi, _build_multi)
    for tag, cls in (
        ("index", pd.Index),
        ("categories", pd.CategoricalIndex),
        ("intervals", pd.IntervalIndex),
        ("periods", pd.PeriodIndex),
    ):
        yield Kind(f"pandas.{tag}", cls, lambda v: (_stored(_plainer(v.array)), v.name), _build_index)
    for tag, cls in (("datetimes", pd.DatetimeIndex), ("timedeltas", pd.TimedeltaIndex)):
        yield Kind(f"pandas.{tag}", cls, lambda v: (v.array, v.freqstr, v.name), _building_timed(cls))


def _arrays(pd: Any) -> Iterator[Kind]:
    arrays = pd.arrays
    for cls in (arrays.DatetimeArray, arrays.TimedeltaArray):
        yield Kind(f"pandas.{cls.__name__}", cls, _take_timed, _building_array(cls))
    yield Kind("pandas.PeriodArray", arrays.PeriodArray, _take_periods, _build_periods)
    for cls in (arrays.IntegerArray, arrays.FloatingArray, arrays.BooleanArray):
        yield Kind(f"pandas.{cls.__name__}", cls, _take_masked, _building_masked(cls), compare=_compare_masked)
    yield Kind("pandas.categorical", pd.Categorical, _take_categorical, _build_categorical)
    yield Kind("pandas.interval", arrays.IntervalArray, _take_intervals, _build_intervals)
    yield Kind("pandas.numpy", arrays.NumpyExtensionArray, _take_wrapped, _build_wrapped, compare=_compare_wrapped)
    for name in ("ArrowStringArray", "ArrowExtensionArray"):
        if hasattr(arrays, name):
            yield Kind(f"pandas.{name}", getattr(arrays, name), _take_arrow, _build_arrow)
    yield Kind("pandas.strings", arrays.StringArray, _take_strings, _build_strings)
    yield Kind("pandas.StringDtype", pd.StringDtype, _take_string_dtype, _build_string_dtype, native=True)
    if hasattr(pd, "ArrowDtype"):
        yield Kind("pandas.ArrowDtype", pd.ArrowDtype, lambda v: (v.pyarrow_dtype,), lambda t: _pd().ArrowDtype(t))


def _take_frame(frame: Any) -> tuple[Any, ...]:
    blocks = getattr(getattr(frame, "_mgr", None), "blocks", ())
    wide = bool(frame.shape[1] > WIDE and blocks and hasattr(_pd().api, "internals"))
    if wide:
        parts = tuple((Column(block.mgr_locs.as_array), _stored(block.values)) for block in blocks)
    else:
        parts = tuple(_stored(array) for array in _columns(frame))
    return frame.columns, frame.index, _attrs(frame), frame.flags.allows_duplicate_labels, wide, parts


def _compare_frame(frame: Any) -> tuple[Any, ...]:
    own = map(_inside, _columns(frame))
    return frame.columns, frame.index, _attrs(frame), frame.flags.allows_duplicate_labels, *own


def _build_frame(columns: Any, index: Any, attrs: Any, *rest: Any) -> Any:
    pd = _pd()
    duplicates, wide, parts = rest
    if wide:
        frame = pd.api.internals.create_dataframe_from_blocks([(v, at) for at, v in parts], index, columns)
    else:
        # An object column might look like something narrower to pandas (strings): its dtype is given.
        columns_of = {
            at: pd.Series(part, index=index, dtype=object, copy=False) if part.dtype == object else part
            for at, part in enumerate(parts)
        }
        frame = pd.DataFrame(columns_of, index=index, columns=range(len(parts)), copy=False)
        frame.columns = columns
    frame.attrs.update(attrs)
    if not duplicates:
        frame.flags.allows_duplicate_labels = False
    return frame


def _columns(frame: Any) -> Iterator[Any]:
    if hasattr(frame, "_iter_column_arrays"):
        return map(_plainer, frame._iter_column_arrays())
    return (_plainer(frame.iloc[:, at].array) for at in range(frame.shape[1]))


def _take_series(series: Any) -> tuple[Any, ...]:
    once = () if series.flags.allows_duplicate_labels else (False,)
    return _stored(_plainer(series.array)), series.index, series.name, _attrs(series), *once


def _build_series(array: Any, index: Any, name: Any, attrs: Any, *duplicates: bool) -> Any:
    series = _pd().Series(array, index=index, name=name, dtype=array.dtype, copy=False)
    series.attrs.update(attrs)
    if duplicates:
        series.flags.allows_duplicate_labels = False
    return series


def _attrs(thing: Any) -> tuple[Any, ...]:
    return tuple(thing.attrs.items())


def _plainer(array: Any) -> Any:
    """The numpy array in pandas' wrapper for one; any other array as it is."""
    return array.to_numpy(copy=False) if type(array) is _pd().arrays.NumpyExtensionArray else array


def _inside(array: Any) -> Any:
    return Inside(array) if type(array) is sys.modules["numpy"].ndarray else array


def _stored(array: Any) -> Any:
    return Column(array) if type(array) is sys.modules["numpy"].ndarray else array


def _build_range(start: int, stop: int, step: int, name: Any) -> Any:
    return _pd().RangeIndex(start, stop, step, name=name)


def _take_multi(index: Any) -> tuple[Any, ...]:
    return tuple(index.levels), tuple(Column(codes) for codes in index.codes), tuple(index.names)


def _build_multi(levels: Any, codes: Any, names: Any) -> Any:
    return _pd().MultiIndex(levels=levels, codes=codes, names=names, verify_integrity=False)


def _build_index(array: Any, name: Any) -> Any:
    # An object array might look like something narrower to pandas: the dtype is given.
    return _pd().Index(array, dtype=array.dtype, name=name, copy=False)


def _building_timed(cls: Any) -> Any:
    return lambda array, freq, name: cls(array, freq=freq, name=name, copy=False)


def _take_timed(array: Any) -> tuple[Any, ...]:
    return str(array.dtype), Column(array._ndarray), getattr(array.dtype, "tz", None)


def _building_array(cls: Any) -> Any:
    def build(dtype: str, values: Any, zone: Any) -> Any:
        kept = values.dtype if zone is None else _pd().DatetimeTZDtype(unit=dtype[11:].partition(",")[0], tz=zone)
        return cls._simple_new(values, dtype=kept)

    return build


def _take_periods(array: Any) -> tuple[Any, ...]:
    return str(array.dtype), Column(array.asi8)


def _build_periods(dtype: str, values: Any) -> Any:
    return _pd().arrays.PeriodArray(values, dtype=_pd().api.types.pandas_dtype(dtype))


def _take_masked(array: Any) -> tuple[Any, ...]:
    return Column(array._data), Column(array._mask)


def _compare_masked(array: Any) -> tuple[Any, ...]:
    values, mask = array._data, array._mask
    if mask.any():  # what lies under the mask is nobody's value
        values = values.copy()
        values[mask] = 0
    return values, mask


def _building_masked(cls: Any) -> Any:
    return lambda values, mask: cls(values, mask, copy=False)


def _take_categorical(array: Any) -> tuple[Any, ...]:
    return Column(array.codes), array.categories, bool(array.ordered)


def _build_categorical(codes: Any, categories: Any, ordered: bool) -> Any:
    dtype = _pd().CategoricalDtype(categories, ordered=ordered)
    return _pd().Categorical.from_codes(codes, dtype=dtype, validate=False)


def _take_intervals(array: Any) -> tuple[Any, ...]:
    return array.left, array.right, array.closed


def _build_intervals(left: Any, right: Any, closed: str) -> Any:
    return _pd().arrays.IntervalArray.from_arrays(left, right, closed=closed)


def _take_wrapped(array: Any) -> tuple[Any, ...]:
    return (array.to_numpy(copy=False),)  # no column: it writes into a frame on the same memory, as an array does


def _compare_wrapped(array: Any) -> tuple[Any, ...]:
    return (Column(array.to_numpy(copy=False)),)


def _build_wrapped(values: Any) -> Any:
    return _pd().arrays.NumpyExtensionArray(values)


def _take_arrow(array: Any) -> tuple[Any, ...]:
    return array.dtype, array.__arrow_array__()


def _build_arrow(dtype: Any, values: Any) -> Any:
    return dtype.__from_arrow__(values)


def _take_strings(array: Any) -> tuple[Any, ...]:
    return array.dtype, tuple(array.to_numpy(dtype=object, copy=False).tolist())


def _build_strings(dtype: Any, values: tuple[Any, ...]) -> Any:
    np = sys.modules["numpy"]
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return dtype.construct_array_type()._from_sequence(objects, dtype=dtype)


def _take_string_dtype(dtype: Any) -> tuple[Any, ...]:
    return dtype.storage, getattr(dtype, "na_value", None) is _pd().NA


def _build_string_dtype(storage: str, na: bool) -> Any:
    if na:
        return _pd().StringDtype(storage)
    return _pd().StringDtype(storage, na_value=float("nan"))


def _build_timestamp(moment: Any, zone: Any, fold: int) -> Any:
    stamp = _pd().Timestamp(moment)
    if zone is not None:
        stamp = stamp.tz_localize("UTC").tz_convert(zone)
    return stamp if not fold or stamp.fold == fold else stamp.replace(fold=fold)


def _pd() -> Any:
    return sys.modules["pandas"] if "pandas" in sys.modules else __import__("pandas")
