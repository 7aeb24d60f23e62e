"""Kinds of the standard library: dates, exact numbers, paths, and the containers of ``collections``."""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import fractions
import pathlib
import random
import re
import uuid
import zoneinfo
from collections.abc import Iterator
from typing import Any

from keel_notebook.payload.kinds import Kind
from keel_notebook.payload.memory import Memory, memory_of


def kinds() -> Iterator[Kind]:
    """All of them."""
    yield Kind("complex", complex, lambda v: (v.real, v.imag), complex, native=True)
    yield Kind("range", range, lambda v: (v.start, v.stop, v.step), range, native=True)
    yield Kind("slice", slice, lambda v: (v.start, v.stop, v.step), slice, native=True)
    yield Kind("bytearray", bytearray, _take_bytearray, bytearray, native=True)
    yield Kind("memoryview", memoryview, lambda _: None, bytes, native=True, compare=_compare_view)
    yield Kind("array", array.array, _take_array, _build_array, native=True)
    yield from _dates()
    yield Kind("decimal", decimal.Decimal, lambda v: (str(v),), decimal.Decimal, native=True)
    yield Kind("fraction", fractions.Fraction, lambda v: (v.numerator, v.denominator), fractions.Fraction, native=True)
    yield Kind("uuid", uuid.UUID, lambda v: (v.int,), lambda i: uuid.UUID(int=i), native=True)
    for path in (pathlib.PosixPath, pathlib.PurePosixPath, pathlib.WindowsPath, pathlib.PureWindowsPath):
        yield Kind(f"path.{path.__name__}", path, lambda v: (str(v),), path, native=True)
    yield Kind("pattern", re.Pattern, lambda v: (v.pattern, v.flags), re.compile, native=True)
    yield Kind("deque", collections.deque, lambda v: (tuple(v), v.maxlen), collections.deque, native=True)
    yield Kind("ordered", collections.OrderedDict, _bare_pairs, collections.OrderedDict, native=True)
    yield Kind("counter", collections.Counter, _bare_pairs, _build_counter, native=True)
    yield Kind("defaultdict", collections.defaultdict, _take_default, collections.defaultdict, native=True)
    yield Kind("random", random.Random, lambda v: (v.getstate(),), _build_random, native=True)


def _dates() -> Iterator[Kind]:
    yield Kind("date", datetime.date, lambda v: (v.year, v.month, v.day), datetime.date, native=True)
    yield Kind("time", datetime.time, _take_time, _build_time, native=True)
    yield Kind("datetime", datetime.datetime, _take_moment, _build_moment, native=True)
    duration = datetime.timedelta
    yield Kind("timedelta", duration, lambda v: (v.days, v.seconds, v.microseconds), duration, native=True)
    yield Kind("timezone", datetime.timezone, _take_zone, datetime.timezone, native=True)
    yield Kind("zoneinfo", zoneinfo.ZoneInfo, lambda v: (v.key,) if v.key else None, zoneinfo.ZoneInfo, native=True)


def _take_bytearray(value: bytearray) -> tuple[Any, ...]:
    return (Memory(len(value), lambda: (memoryview(value),)),)  # a view that stays would forbid it to grow


def _compare_view(view: memoryview) -> tuple[Any, ...]:
    return view.format, view.shape, view.readonly, Memory(view.nbytes, lambda: (view.tobytes(),))


def _take_time(value: datetime.time) -> tuple[Any, ...]:
    return value.hour, value.minute, value.second, value.microsecond, value.fold, value.tzinfo


def _build_time(*parts: Any) -> datetime.time:
    hour, minute, second, microsecond, fold, zone = parts
    return datetime.time(hour, minute, second, microsecond, zone, fold=fold)


def _take_moment(value: datetime.datetime) -> tuple[Any, ...]:
    return value.year, value.month, value.day, *_take_time(value.timetz())


def _build_moment(*parts: Any) -> datetime.datetime:
    date, clock = parts[:3], _build_time(*parts[3:])
    return datetime.datetime.combine(datetime.date(*date), clock)


def _take_zone(value: datetime.timezone) -> tuple[Any, ...]:
    return value.__getinitargs__()  # type: ignore[attr-defined, no-any-return]


def _take_array(value: array.array[Any]) -> tuple[Any, ...]:
    flat = memoryview(value).cast("B") if len(value) else memoryview(b"")
    return value.typecode, memory_of(flat, address=value.buffer_info()[0])


def _build_array(typecode: str, content: memoryview) -> array.array[Any]:
    built = array.array(typecode)
    built.frombytes(content)
    return built


def _bare_pairs(value: dict[Any, Any]) -> tuple[Any, ...] | None:
    if vars(value):
        return None  # somebody hung attributes on it: only pickle knows them all
    return (tuple(value.items()),)


def _build_counter(pairs: tuple[tuple[Any, int], ...]) -> collections.Counter[Any]:
    built: collections.Counter[Any] = collections.Counter()
    dict.update(built, pairs)
    return built


def _take_default(value: collections.defaultdict[Any, Any]) -> tuple[Any, ...]:
    return value.default_factory, tuple(value.items())


def _build_random(state: tuple[Any, ...]) -> random.Random:
    built = random.Random(0)  # noqa: S311 - the user's own generator comes back, whatever it is used for
    built.setstate(state)
    return built
