"""Kinds of Arrow: columns as their canonical streams (validity, offsets, content), however they were chunked or sliced.

Fixed-width and text columns are streams of plain bytes: stored without a copy where they lie so, equal whenever the
values are equal. Nested columns are compared part by part and stored as pyarrow pickles them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from keel_notebook.payload.kinds import Kind
from keel_notebook.payload.memory import Memory, Region

_PARAMETRIC = {
    "timestamp": ("unit", "tz"),
    "duration": ("unit",),
    "time32": ("unit",),
    "time64": ("unit",),
    "decimal128": ("precision", "scale"),
    "decimal256": ("precision", "scale"),
}
_TEXT = ("string", "large_string", "binary", "large_binary")
_FLAT = frozenset(
    [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "halffloat",
        "float",
        "double",
        "date32",
        "date64",
    ]
) | set(_TEXT)


def kinds() -> Iterator[Kind]:
    """All of them."""
    pa = _pa()
    yield Kind("pyarrow.chunked", pa.ChunkedArray, _take_chunked, _build_chunked, compare=_compare_chunked)
    for cls in {value for value in vars(pa.lib).values() if isinstance(value, type) and issubclass(value, pa.Array)}:
        yield Kind("pyarrow.array", cls, _take_array, _build_array, compare=_compare_array)
    yield Kind("pyarrow.table", pa.Table, _take_table, _build_table)
    yield Kind("pyarrow.batch", pa.RecordBatch, _take_batch, _build_batch)
    for cls in {value for value in vars(pa.lib).values() if isinstance(value, type) and issubclass(value, pa.DataType)}:
        yield Kind("pyarrow.type", cls, _take_type, _build_type, native=True)


def _take_table(table: Any) -> tuple[Any, ...]:
    return _fields(table.schema), _metadata(table.schema), tuple(table.columns), table.num_rows


def _build_table(fields: Any, metadata: Any, columns: Any, rows: int) -> Any:
    pa = _pa()
    if not columns:
        return pa.table({"_": pa.nulls(rows)}).select([]).replace_schema_metadata(dict(metadata or ()) or None)
    return pa.Table.from_arrays(list(columns), schema=_schema(fields, metadata, columns))


def _take_batch(batch: Any) -> tuple[Any, ...]:
    return _fields(batch.schema), _metadata(batch.schema), tuple(batch.columns)


def _build_batch(fields: Any, metadata: Any, columns: Any) -> Any:
    return _pa().RecordBatch.from_arrays(list(columns), schema=_schema(fields, metadata, columns))


def _fields(schema: Any) -> tuple[Any, ...]:
    return tuple((field.name, field.nullable, _metadata(field)) for field in schema)


def _metadata(thing: Any) -> tuple[Any, ...]:
    return tuple((thing.metadata or {}).items())


def _schema(fields: Any, metadata: Any, columns: Any) -> Any:
    pa = _pa()
    made = [
        pa.field(name, column.type, nullable=nullable, metadata=dict(noted) or None)
        for (name, nullable, noted), column in zip(fields, columns, strict=True)
    ]
    return pa.schema(made, metadata=dict(metadata) or None)


def _take_type(kind: Any) -> tuple[Any, ...] | None:
    described = _describe(kind)
    return None if described is None else described


def _build_type(name: str, *arguments: Any) -> Any:
    pa = _pa()
    if arguments:
        return getattr(pa, name)(*arguments)
    return pa.bool_() if name == "bool" else pa.type_for_alias(name)


def _describe(kind: Any) -> tuple[Any, ...] | None:
    name = str(kind)
    if name in _FLAT:
        return (name,)
    head = name.partition("[")[0].partition("(")[0]
    if head in _PARAMETRIC:
        return head, *(getattr(kind, argument) for argument in _PARAMETRIC[head])
    return None


def _take_array(array: Any) -> tuple[Any, ...] | None:
    return _take_chunks([array], array.type, len(array))


def _take_chunked(array: Any) -> tuple[Any, ...] | None:
    return _take_chunks(array.chunks, array.type, len(array))


def _take_chunks(chunks: list[Any], kind: Any, length: int) -> tuple[Any, ...] | None:
    described = _describe(kind)
    if described is None:
        return None
    chunks = [chunk for chunk in chunks if len(chunk)]
    streams: tuple[Memory, ...]
    if described[0] in _TEXT:
        texts = [_filled(chunk) for chunk in chunks]
        total = sum(stop - start for start, stop in map(_span, texts))
        large = described[0].startswith("large_")
        if total >= 1 << 31 and not large:
            return None  # one array of 32-bit offsets could not hold it
        streams = (_offsets(texts, 8 if large else 4), _text(texts))
    elif described[0] == "bool":  # a byte each: bits would have to be shifted at every border between chunks
        streams = (Memory(length, lambda: (_values(_filled(chunk), 1)[0] for chunk in chunks)),)
    else:
        filled = [_filled(chunk) for chunk in chunks]
        streams = (_joined([_values(chunk, kind.bit_width // 8) for chunk in filled], filled),)
    return kind, length, _validity(chunks, length), streams


def _build_chunked(kind: Any, length: int, validity: Any, streams: Any) -> Any:
    return _pa().chunked_array([_build_array(kind, length, validity, streams)], type=kind)


def _build_array(kind: Any, length: int, validity: Any, streams: Any) -> Any:
    pa = _pa()
    buffers = [None if stream is None else pa.py_buffer(stream) for stream in (validity, *streams)]
    if kind == pa.bool_():
        return pa.Array.from_buffers(pa.uint8(), length, buffers).cast(kind)
    return pa.Array.from_buffers(kind, length, buffers)


def _filled(array: Any) -> Any:
    """The values with zeros (empty texts) where they are null: what lies under a null is nobody's value."""
    pa, compute = _pa(), _compute()
    if array.type == pa.bool_():
        array = array.cast(pa.uint8())
    if not array.null_count:
        return array
    if str(array.type) in _TEXT:
        start, stop = _span(array)
        if (compute.sum(compute.binary_length(array)).as_py() or 0) == stop - start:
            return array
        return compute.fill_null(array, "" if "string" in str(array.type) else b"")
    width = array.type.bit_width // 8
    raw = array.view({1: pa.int8(), 2: pa.int16(), 4: pa.int32(), 8: pa.int64()}.get(width, pa.binary(width)))
    return compute.fill_null(raw, bytes(width) if width > 8 else 0)


def _validity(chunks: list[Any], length: int) -> Memory | None:
    if not any(chunk.null_count for chunk in chunks):
        return None
    pa = _pa()
    # Concatenated, the flags begin at the first bit of a buffer of their own.
    flags = pa.concat_arrays([*map(_compute().is_valid, chunks), pa.array([False])]).slice(0, length)
    bits = bytearray(memoryview(flags.buffers()[1])[: (length + 7) // 8])
    if length % 8:
        bits[-1] &= (1 << length % 8) - 1  # the bits after the last value are whatever they are
    return Memory(len(bits), lambda: (bytes(bits),))


def _span(array: Any) -> tuple[int, int]:
    """Where the texts of an array begin and end in its content."""
    width = 8 if str(array.type).startswith("large_") else 4
    offsets = memoryview(array.buffers()[1]).cast("B")
    begin = array.offset * width
    end = begin + len(array) * width
    return (
        int.from_bytes(offsets[begin : begin + width], sys.byteorder),
        int.from_bytes(offsets[end : end + width], sys.byteorder),
    )


def _offsets(texts: list[Any], width: int) -> Memory:
    length = sum(map(len, texts))
    if len(texts) == 1 and _span(texts[0])[0] == 0:
        return _joined([_slice(texts[0].buffers()[1], texts[0].offset * width, (length + 1) * width)], texts)
    return Memory((length + 1) * width, lambda: _rebased(texts, width))


def _rebased(texts: list[Any], width: int) -> Iterator[memoryview | bytes]:
    """Offsets as if the texts had been one array from the beginning."""
    pa = _pa()
    kind = pa.int64() if width == 8 else pa.int32()
    yield bytes(width)
    base = 0
    for text in texts:
        start, stop = _span(text)
        ends = pa.Array.from_buffers(kind, len(text), [None, text.buffers()[1]], offset=text.offset + 1)
        yield _values(_compute().add(ends, pa.scalar(base - start, kind)), width)[0]
        base += stop - start


def _text(texts: list[Any]) -> Memory:
    spans = [(text, *_span(text)) for text in texts]
    return _joined(
        [_slice(text.buffers()[2], start, stop - start) for text, start, stop in spans if stop > start], texts
    )


def _values(array: Any, width: int) -> tuple[memoryview, int]:
    return _slice(array.buffers()[1], array.offset * width, len(array) * width)


def _slice(buffer: Any, start: int, size: int) -> tuple[memoryview, int]:
    return memoryview(buffer)[start : start + size], buffer.address + start


def _joined(pieces: list[tuple[memoryview, int]], keep: Any) -> Memory:
    regions: tuple[Region, ...] = tuple((address, len(view)) for view, address in pieces)
    return Memory(sum(size for _, size in regions), lambda: [view for view, _ in pieces], regions, keep)


def _compare_chunked(array: Any) -> tuple[Any, ...]:
    flat = _take_chunked(array)
    if flat is not None:
        return flat
    return _compare_array(array.combine_chunks() if array.num_chunks != 1 else array.chunk(0))


def _compare_array(array: Any) -> tuple[Any, ...]:
    pa = _pa()
    if isinstance(array, pa.ChunkedArray):  # combine_chunks of what does not fit into one array
        return str(array.type), tuple(map(_compare_array, array.chunks))
    flat = _take_array(array)
    if flat is not None:
        return flat
    compute, types = _compute(), pa.types
    valid = compute.is_valid(array) if array.null_count else None
    if types.is_dictionary(array.type):
        return "dictionary", array.type.ordered, array.dictionary_decode()
    if types.is_list(array.type) or types.is_large_list(array.type):
        lengths = compute.fill_null(compute.list_value_length(array), 0)
        return "list", str(array.type), valid, lengths, array.flatten()
    if types.is_struct(array.type):
        return "struct", str(array.type), valid, tuple(array.flatten())
    return "other", str(array.type), tuple(array.to_pylist())


def _pa() -> Any:
    return sys.modules["pyarrow"] if "pyarrow" in sys.modules else __import__("pyarrow")


def _compute() -> Any:
    import pyarrow.compute  # noqa: PLC0415 - pyarrow is there when an array of it is

    return pyarrow.compute
