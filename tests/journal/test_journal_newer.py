"""What a newer version of keel wrote is refused by name, in every part of a journal, and nothing of it is lost."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import msgpack
import pytest
from blake3 import blake3

from keel_notebook.core.retention import Wishes
from keel_notebook.errors import JournalUnreachableError, KeelError
from keel_notebook.journal import collect, fsck, spawn
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.reader import read_journal
from tests.journal.journals import FLOW, KeySeal, RealClock, drop, entry, opened


def segment(place: Folder) -> Path:
    """The newest segment, one version on."""
    path = Path(place.segment(2))
    path.write_bytes(b"KEELSEG2" + path.read_bytes()[8:16] + b"another form" * 50)
    return path


def head_of(place: Folder, path: str, schema: str) -> Path:
    from keel_notebook.journal import heads

    file = Path(path)
    start = len(heads._MAGIC) + heads._SUM_BYTES
    value = msgpack.unpackb(file.read_bytes()[start:], strict_map_key=False)
    body = msgpack.packb(value | {"schema": schema})
    file.write_bytes(heads._MAGIC + blake3(body).digest(heads._SUM_BYTES) + body)
    return file


def head(place: Folder) -> Path:
    """The head of the flow."""
    return head_of(place, place.head(FLOW), "keel.head/v9")


def index(place: Folder) -> Path:
    """What all heads cover."""
    return head_of(place, place.index, "keel.heads/v9")


def record(place: Folder) -> Path:
    """The record file."""
    with duckdb.connect(place.record) as con:
        con.execute("UPDATE keel_schema SET version = 2")
    return Path(place.record)


PARTS: list[Callable[[Folder], Path]] = [segment, head, index, record]


@pytest.mark.parametrize("make_newer", PARTS)
def test_a_newer_part_is_refused_by_name_and_stays_as_it_is(
    make_newer: Callable[[Folder], Path], tmp_path: Path
) -> None:
    folder = tmp_path / ".keel"
    first = opened(folder)
    first.append(entry(first, "load"))
    first.close(clean=True)
    spawn.ingest_now(folder)
    second = opened(folder)
    second.append(entry(second, "fit"))
    drop(second)
    place = Folder(folder)
    path = make_newer(place)
    before = path.read_bytes()

    def refused(ask: Callable[[], object]) -> str:
        with pytest.raises(JournalUnreachableError) as caught:
            ask()
        return str(caught.value)

    asked = {
        "read": lambda: read_journal(folder, seal=KeySeal()).records(FLOW),
        "attach": lambda: opened(folder).records(FLOW),
        "query": lambda: spawn.query(folder, "SELECT 1"),
    }
    if path.name == "journal.duckdb":  # a kernel and a reader need it not: heads and segments tell all
        assert len(asked["read"]().entries) == 2
        assert "newer version" in refused(asked["query"])
    else:
        for name in ("read", "attach"):
            assert "newer version" in refused(asked[name]), name
    with contextlib.suppress(KeelError):
        fsck.check(folder, fix=True)
    with contextlib.suppress(KeelError):
        collect.collect(folder, Wishes(keep_s=0.0), clock=RealClock())
    assert path.read_bytes() == before
    assert not os.path.isdir(place.damaged) or path.name not in os.listdir(place.damaged)
