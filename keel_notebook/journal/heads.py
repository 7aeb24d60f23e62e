"""Heads: one small file per flow that a kernel reads to attach, and an index that says what all of them cover.

Only the ingest writes them, each as a whole. Both can be rebuilt from the record file. A head is sound or it is
not there: ``Unreadable`` never means "nothing was recorded".
"""

from __future__ import annotations

import os
from typing import Any, Final

import blake3
from msgspec import Struct, field

from keel_notebook.core.model import Digest, FlowId
from keel_notebook.core.ports import RunSeen
from keel_notebook.errors import JournalUnreachableError
from keel_notebook.journal import wire
from keel_notebook.journal.cursor import Resume
from keel_notebook.journal.wholefiles import read_whole
from keel_notebook.journal.wire import Stored

HEAD_SCHEMA: Final = "keel.head/v1"
INDEX_SCHEMA: Final = "keel.heads/v1"
_MAGIC: Final = b"KEELHEAD"
_SUM_BYTES: Final = 16


class Unreadable(Exception):
    """A head or index that is not what was written there."""


class Head(Struct, frozen=True):
    """What is recorded of one flow, as far as it may still be asked for."""

    flow: FlowId
    total: int
    """Entries of the flow in the record file: more than in ``entries`` where old ones were left out."""
    entries: tuple[Stored, ...]
    runs: dict[int, RunSeen]
    vouched: dict[Digest, int]
    resumes: dict[int, Resume]
    """Per run whose segment was there: what of it is in this head."""


class FlowLine(Struct, frozen=True):
    """What the index says of one flow."""

    kept: int
    total: int
    newest: int
    runs: tuple[int, ...]


class Index(Struct, frozen=True):
    """What every head covers. Written after the heads, so that each of them is at least as new."""

    generation: int = 0
    """Counts ingests; the record file holds the same number."""
    top: int = 0
    """The highest run number that was ever seen: never given out again."""
    flows: dict[FlowId, FlowLine] = field(default_factory=dict)
    resumes: dict[int, Resume] = field(default_factory=dict)


def encode_head(head: Head) -> bytes:
    """The head as the content of its file."""
    return _sealed(
        {
            "schema": HEAD_SCHEMA,
            "flow": head.flow,
            "total": head.total,
            "entries": [[item.stamp, item.fence, list(item.macs), item.body] for item in head.entries],
            "runs": {run: wire.run_to_wire(seen) for run, seen in head.runs.items()},
            "vouched": head.vouched,
            "resumes": {run: resume.to_wire() for run, resume in head.resumes.items()},
        }
    )


def read_head(path: str, flow: FlowId | None = None) -> Head:
    """The head at ``path``, of ``flow`` if that is given.

    Raises Unreadable, JournalUnreachableError (a newer version's), OSError (also where there is none).
    """
    raw = _opened(path, HEAD_SCHEMA)
    try:
        if flow not in {None, raw["flow"]}:
            raise Unreadable(f"the head of {raw['flow']}")
        return Head(
            raw["flow"],
            raw["total"],
            tuple(Stored(stamp, fence, tuple(macs), body) for stamp, fence, macs, body in raw["entries"]),
            {run: wire.run_from_wire(seen) for run, seen in raw["runs"].items()},
            raw["vouched"],
            {run: Resume.from_wire(resume) for run, resume in raw["resumes"].items()},
        )
    except (wire.BodyError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable(str(error)) from error


def encode_index(index: Index) -> bytes:
    """The index as the content of its file."""
    return _sealed(
        {
            "schema": INDEX_SCHEMA,
            "generation": index.generation,
            "top": index.top,
            "flows": {
                flow: [line.kept, line.total, line.newest, list(line.runs)] for flow, line in index.flows.items()
            },
            "resumes": {run: resume.to_wire() for run, resume in index.resumes.items()},
        }
    )


def read_index(path: str) -> Index:
    """The index at ``path``. Raises as ``read_head`` does."""
    raw = _opened(path, INDEX_SCHEMA)
    try:
        return Index(
            raw["generation"],
            raw["top"],
            {
                flow: FlowLine(kept, total, newest, tuple(runs))
                for flow, (kept, total, newest, runs) in raw["flows"].items()
            },
            {run: Resume.from_wire(resume) for run, resume in raw["resumes"].items()},
        )
    except (wire.BodyError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable(str(error)) from error


def _sealed(value: dict[str, Any]) -> bytes:
    body = wire.pack(value)
    return _MAGIC + blake3.blake3(body).digest(_SUM_BYTES) + body


def _opened(path: str, schema: str) -> dict[str, Any]:
    raw = read_whole(path)
    start = len(_MAGIC) + _SUM_BYTES
    body = raw[start:]
    if raw[:start] != _MAGIC + blake3.blake3(body).digest(_SUM_BYTES):
        raise Unreadable("its checksum does not fit")
    try:
        value = wire.unpack(body)
    except wire.BodyError as error:
        raise Unreadable(str(error)) from error
    if not isinstance(value, dict) or value.get("schema") != schema:
        journal = os.path.dirname(os.path.dirname(path))
        raise JournalUnreachableError(journal=journal, detail="a newer version of keel wrote it", case="newer")
    return value
