"""Kinds of polars: a column is the Arrow IPC stream of its rows, which any later polars reads (C57)."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import Any

from keel_notebook.payload.kinds import Kind
from keel_notebook.payload.memory import Memory

_ROWS = 1 << 18
"""Rows of one stream. Fixed, so that equal columns have equal streams; and no more than these are copied at once."""


def kinds() -> Iterator[Kind]:
    """All of them."""
    pl = _pl()
    yield Kind("polars.series", pl.Series, _take_series, _build_series)
    yield Kind("polars.frame", pl.DataFrame, lambda v: (tuple(v.get_columns()),), _build_frame)


def _take_series(series: Any) -> tuple[Any, ...] | None:
    if "Object" in str(series.dtype):
        return None  # Python objects have no stream
    starts = range(0, max(len(series), 1), _ROWS)
    return series.name, len(series), tuple(_rows(series.slice(start, _ROWS)) for start in starts)


def _rows(series: Any) -> Memory:
    if series.null_count() and len(series) % 8:
        # Whole bytes of validity: the bits after the last value are whatever they are.
        series = series.extend_constant(None, -len(series) % 8)

    def pieces() -> Iterator[memoryview]:
        sink = io.BytesIO()
        # Older forms of text are canonical; views may point to text that was filtered away.
        frame = series.rechunk().alias("").to_frame()
        frame.write_ipc_stream(sink, compat_level=_pl().CompatLevel.oldest())
        yield sink.getbuffer()

    return Memory(sum(map(len, pieces())), pieces)


def _build_series(name: str, length: int, streams: tuple[memoryview, ...]) -> Any:
    pl = _pl()
    parts = [pl.read_ipc_stream(io.BytesIO(stream)).to_series() for stream in streams]
    return (pl.concat(parts) if len(parts) > 1 else parts[0]).head(length).alias(name)


def _build_frame(columns: tuple[Any, ...]) -> Any:
    return _pl().DataFrame(list(columns))


def _pl() -> Any:
    return sys.modules["polars"] if "polars" in sys.modules else __import__("polars")
