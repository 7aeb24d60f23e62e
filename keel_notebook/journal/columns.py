"""An entry as one row of the record file's table ``entries``: every field a column of the same name.

Rows are for people and their queries. Text that is not valid Unicode is made so, bytes are left out; the entry
itself is in ``body``, as it was written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

from keel_notebook.core.model import Blob, Entry, Payload, Problem
from keel_notebook.journal.flowlog import Written

_FIELDS: Final = Entry.__struct_fields__
COLUMNS: Final = (*_FIELDS, "stamp", "frame_fence", "macs", "body")

_INPUT: Final = {"name": "VARCHAR", "digest": "VARCHAR", "weak": "BOOLEAN", "preview": "VARCHAR"}
_FILE: Final = {"path": "VARCHAR", "role": "VARCHAR", "digest": "VARCHAR", "stamp": ["BIGINT"], "weak": "BOOLEAN"}
_WRITE: Final = {"name": "VARCHAR", "digest": "VARCHAR", "type": "VARCHAR", "bytes": "BIGINT", "preview": "VARCHAR"}
_SHAPES: Final[Mapping[str, Any]] = {
    "inputs": [{**_INPUT, "producer": "VARCHAR", "type": "VARCHAR"}],
    "files": [_FILE],
    "writes": [_WRITE],
    "deleted": ["VARCHAR"],
    "outputs": {"size": "BIGINT", "object": "VARCHAR"},
    "not_stored": [{"name": "VARCHAR", "type": "VARCHAR", "reason": "VARCHAR"}],
    "payload": {"bytes": "BIGINT", "head": "VARCHAR", "buffers": ["VARCHAR"], "refs": ["VARCHAR"]},
    "error": {"type": "VARCHAR", "code": "VARCHAR"},
}
_KINDS: Final[Mapping[str, str]] = {
    "run": "INTEGER[]",
    "seq": "BIGINT[]",
    "occurrence": "BIGINT[]",
    "attempt": "BIGINT[]",
    "rss_peak": "BIGINT[]",
    "fence": "BIGINT[]",
    "took_s": "DOUBLE[]",
    "stamp": "BIGINT[]",
    "frame_fence": "BIGINT[]",
    "macs": "BLOB[][]",
    "body": "BLOB[]",
}
_LARGEST: Final = (1 << 63) - 1
_LATEST_S: Final = 1e11


def source(name: str, number: int) -> str:
    """The SQL that turns the list parameter ``number`` into the column ``name``."""
    if name in _SHAPES:
        return f"from_json(unnest(${number}::VARCHAR[]), '{json.dumps(_SHAPES[name])}')"
    if name == "ambient":
        return f"unnest(${number}::VARCHAR[])::JSON"
    if name in {"started_at", "ended_at"}:
        return f"make_timestamp(unnest(${number}::BIGINT[]))"
    return f"unnest(${number}::{_KINDS.get(name, 'VARCHAR[]')})"


def row(written: Written) -> list[Any]:
    """The values of ``COLUMNS``, as ``source`` takes them."""
    values = [shape(value) for shape, value in zip(_SHAPERS, _all_fields(written.entry), strict=True)]
    return [*values, written.stamp, min(written.fence, _LARGEST), list(written.macs), written.body]


def text(value: str) -> str:
    """Text that a database takes: what is not valid Unicode becomes ``?``."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def _as_it_is(value: Any) -> Any:
    return value


def _items(value: tuple[Any, ...]) -> str:
    return _json([{name: getattr(item, name) for name in item.__struct_fields__} for item in value]) if value else "[]"


def _names(value: tuple[str, ...]) -> str:
    return _json(list(value)) if value else "[]"


def _settings(value: Mapping[str, Any]) -> str:
    return _json(value) if value else "{}"


def _outputs(value: Blob | None) -> str | None:
    return None if value is None else _json({"size": value.size, "object": value.object})


def _payload(value: Payload | None) -> str | None:
    if value is None:
        return None
    head = {"bytes": value.bytes, "head": value.head.object}
    return _json({**head, "buffers": value.buffers, "refs": value.refs})


def _error(value: Problem | None) -> str | None:
    return None if value is None else _json({"type": value.type, "code": value.code})


def _microseconds(value: float | None) -> int | None:
    return None if value is None or not abs(value) < _LATEST_S else int(value * 1e6)


def _shaper(name: str) -> Callable[[Any], Any]:
    if name in _KINDS:
        return _as_it_is
    special: dict[str, Callable[[Any], Any]] = {
        **dict.fromkeys(("inputs", "files", "writes", "not_stored"), _items),
        **dict.fromkeys(("started_at", "ended_at"), _microseconds),
        "deleted": _names,
        "ambient": _settings,
        "outputs": _outputs,
        "payload": _payload,
        "error": _error,
        "code": lambda value: None if value is None else text(value),
    }
    return special.get(name, text)


def _json(value: Any) -> str:
    return text(_encoder.encode(_plain(value)))


def _plain(value: Any) -> Any:
    # JSON that any reader takes: no bytes, no numbers that are none.
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    match value:
        case bytes():
            return f"({len(value)} bytes)"
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value


_encoder: Final = json.JSONEncoder(ensure_ascii=False)
_all_fields: Final = attrgetter(*_FIELDS)
_SHAPERS: Final = tuple(_shaper(name) for name in _FIELDS)
