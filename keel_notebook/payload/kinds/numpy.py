"""Kinds of numpy: arrays by dtype, shape and content, scalars, dtypes.

An array that stands alone is a *column*: dtype, shape, order, memory. Arrays that may share memory with each other
are the codec's affair (``spans``); for the digester every array is a column in C order, views included.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from keel_notebook.payload.kinds import Kind, archives
from keel_notebook.payload.memory import PIECE, Memory


def kinds() -> Iterator[Kind]:
    """All of them."""
    np = _np()
    yield Kind("numpy.array", np.ndarray, _take_locked, build_array, compare=_compare_array)
    yield Kind("numpy.array", Inside, lambda v: take_array(v.array), build_array, compare=lambda v: take_array(v.array))
    yield Kind("numpy.dtype", np.dtype, _describe_or_none, build_dtype, native=True)
    yield Kind(COLUMN, Column, _take_column, build_array, compare=lambda v: take_array(v.array))
    yield Kind("numpy.masked", np.ma.MaskedArray, lambda _: None, build_array, native=True, compare=_compare_masked)
    yield from archives.kinds()
    for scalar in _scalar_types(np):
        yield Kind("numpy.scalar", scalar, _take_scalar, _build_scalar, native=True)
    for dtype in {type(np.dtype(code)) for code in np.typecodes["All"]}:
        yield Kind("numpy.dtype", dtype, _describe_or_none, build_dtype, native=True)


COLUMN = "numpy.column"
"""The kind of a ``Column``: the codec puts it on the memory of an array that lies on it, else on memory of its own."""


class Column:
    """An array of a frame: it shares memory with arrays (``x = df["x"].values``), but with no other frame."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


class Inside:
    """An array inside a frame, for the digester: what a frame allows with it is the frame's affair."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


def locked(array: Any) -> bool:
    """Whether somebody made an array read-only: its memory could be written to, and must not be.

    Not memory that nobody may write to anyway (``frombuffer`` of bytes), nor a read-only view of a writable array
    (pandas gives those away or not, as its frame happens to lie in memory).
    """
    owner = owner_of(array)
    if owner.flags.writeable or array.flags.writeable:
        return False
    if owner.base is None:
        return True
    try:
        return not memoryview(owner.base).readonly
    except (TypeError, ValueError):
        return False


def _compare_array(array: Any) -> tuple[Any, ...] | None:
    parts = take_array(array)
    return (*parts, "read-only") if parts is not None and locked(array) else parts


def _take_locked(array: Any) -> tuple[Any, ...] | None:
    parts = take_array(array, layout=True)
    return (*parts, True) if parts is not None and locked(array) else parts


def _take_column(column: Column) -> tuple[Any, ...] | None:
    return take_array(column.array, layout=True)


def take_array(array: Any, *, layout: bool = False) -> tuple[Any, ...] | None:
    """dtype, shape, order and content of an array, or None where the content is not plain bytes.

    ``layout`` keeps the order in memory; without it the content is in C order, so that equal arrays are equal.
    """
    dtype = array.dtype
    if dtype.hasobject:
        if dtype.kind != "O":
            return None
        return "O", array.shape, "C", tuple(array.ravel().tolist())
    described = describe(dtype)
    if described is None:
        return None
    if dtype.names is not None and not layout:
        # Field by field: the padding between fields holds whatever was in memory before.
        return described, array.shape, "fields", tuple(array[name] for name in dtype.names)
    order = "F" if layout and array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    return described, array.shape, order, content(array, order=order)


def _compare_masked(array: Any) -> tuple[Any, ...]:
    mask = array.mask  # what lies under the mask is nobody's value
    data = array.data if mask is _np().ma.nomask else _np().where(mask, array.dtype.type(), array.data)
    return data, mask, array.fill_value, *(("read-only",) if locked(array) else ())


def build_array(described: Any, shape: tuple[int, ...], order: str, content: Any, *read_only: bool) -> Any:
    """The array again, on the memory that it is given; writable, if nobody made it read-only."""
    np = _np()
    if described == "O":
        built = np.empty(shape, dtype=object)
        for at, item in enumerate(content):
            built.flat[at] = item
    else:
        built = np.ndarray(shape, build_dtype(described), buffer=content, order=order)
    if read_only:
        built.flags.writeable = False
    return built


def owner_of(array: Any) -> Any:
    """The array that an array is a view of, or the array itself."""
    while type(array.base) is type(array):
        array = array.base
    return array


def take_view(array: Any, owner: Any) -> tuple[Any, ...] | None:
    """What makes a view out of its owner, or None where only numpy knows."""
    described = "O" if array.dtype.hasobject else describe(array.dtype)
    if described is None or (described == "O" and array.dtype != owner.dtype):
        return None
    offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return owner, described, (array.shape, offset, array.strides), array.flags.writeable


def build_view(owner: Any, described: Any, place: tuple[Any, int, Any], writeable: bool) -> Any:
    """The view again."""
    shape, offset, strides = place
    dtype = owner.dtype if described == "O" else build_dtype(described)
    built = _np().ndarray(shape, dtype, owner, offset, strides)
    built.flags.writeable = writeable and owner.flags.writeable
    return built


def describe(dtype: Any) -> Any:
    """A dtype as text and nested tuples, or None for one that cannot be described so (C56: no pickle of numpy's)."""
    known = _described.get(id(dtype))
    if known is not None and known[0] is dtype and known[1] == dtype.names:
        return known[2]
    found = _describe(dtype)
    if dtype.names is None or all(each[0].names is each[0].subdtype is None for each in dtype.fields.values()):
        if len(_described) >= _MOST_DESCRIBED:
            _described.clear()
        _described[id(dtype)] = (dtype, dtype.names, found)
    return found


_MOST_DESCRIBED = 256
_described: dict[int, tuple[Any, Any, Any]] = {}
"""By identity, because dtypes that are equal may be described in other words; with the names, which can be changed."""


def _describe(dtype: Any) -> Any:
    if dtype.metadata or dtype.kind == "T":
        return None
    if dtype.names is None and dtype.subdtype is None:
        return dtype.str if _np().dtype(dtype.str) == dtype else None
    try:
        described = _tuples(_np().lib.format.dtype_to_descr(dtype))
        return described if build_dtype(described) == dtype else None
    except (ValueError, TypeError):
        return None


def build_dtype(described: Any) -> Any:
    """The dtype behind a description."""
    np = _np()
    return np.dtype(described) if isinstance(described, str) else np.lib.format.descr_to_dtype(_descr(described))


def content(array: Any, *, order: str = "C") -> Memory:
    """The bytes of an array in C or F order: in place where they lie so, else copied piece by piece."""
    array = array.T if order == "F" else array
    if not array.flags.c_contiguous:
        return Memory(array.nbytes, lambda: _copies(array))
    if array.nbytes == 0:
        return Memory(0, lambda: ())
    address = array.__array_interface__["data"][0]
    return Memory(array.nbytes, lambda: (flat(array),), ((address, array.nbytes),), array)


def flat(array: Any) -> memoryview:
    """The bytes of a C-contiguous array."""
    return memoryview(array.reshape(-1).view(_np().uint8))


def _copies(array: Any) -> Iterator[memoryview]:
    if array.nbytes <= PIECE or array.ndim == 0:
        yield flat(array.copy(order="C"))
        return
    if len(array) == 1:
        yield from _copies(array[0])
        return
    step = max(1, PIECE * len(array) // array.nbytes)
    for at in range(0, len(array), step):
        part = array[at : at + step]
        if part.nbytes <= PIECE * 2:
            yield flat(part.copy(order="C"))
        else:
            for row in part:
                yield from _copies(row)


def _describe_or_none(dtype: Any) -> tuple[Any, ...] | None:
    described = describe(dtype)
    return None if described is None else (described,)


def _scalar_types(np: Any) -> set[type]:
    return {np.dtype(code).type for code in np.typecodes["All"] if code not in "OVT"}


def _take_scalar(value: Any) -> tuple[Any, ...]:
    array = _np().asarray(value)
    if array.dtype.kind in "fc" and value != value:  # noqa: PLR0124 - one NaN
        array = array.copy()
        array[()] = float("nan") if array.dtype.kind == "f" else complex(*map(_one_nan, (value.real, value.imag)))
    return array.dtype.str, array.tobytes()


def _one_nan(part: Any) -> float:
    return float(part) if part == part else float("nan")  # noqa: PLR0124 - NaN


def _build_scalar(described: str, content: bytes) -> Any:
    return _np().frombuffer(content, dtype=described, count=1)[0] if content else _np().dtype(described).type()


def _tuples(described: Any) -> Any:
    return tuple(map(_tuples, described)) if isinstance(described, list | tuple) else described


def _descr(described: Any) -> Any:
    """numpy tells a list of fields from a tuple (dtype, shape) by its type."""
    if isinstance(described, tuple) and described and isinstance(described[0], tuple):
        return [(field[0], _descr(field[1]), *field[2:]) for field in described]
    return described


def _np() -> Any:
    return sys.modules["numpy"] if "numpy" in sys.modules else __import__("numpy")
