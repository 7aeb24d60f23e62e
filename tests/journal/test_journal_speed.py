"""What the journal does for one entry, counted (DESIGN 10; the times are in `make bench`)."""

from __future__ import annotations

from pathlib import Path

from keel_notebook.core.model import Blob, Kind, Payload
from keel_notebook.journal.reader import read_journal
from tests.counted import calls, counted
from tests.journal.journals import FLOW, KeySeal, entry, ingested, opened


def asked(journal, count: int) -> list:
    return [
        entry(journal, kind=Kind.CALL, call="ask", key=str(n), payload=Payload(Blob(50, b"y" * 50)))
        for n in range(count)
    ]


def test_an_append_is_one_write_and_a_synced_one_waits_for_the_disk_once(tmp_path: Path) -> None:
    journal = opened(tmp_path / ".keel")
    journal.records(FLOW)
    waiting = iter(asked(journal, 200))
    with counted() as appended:
        for _ in range(100):
            journal.append(next(waiting))
    with counted(threads=True) as synced:  # the thread that waits for the disk begins here
        for _ in range(100):
            journal.append(next(waiting), synced=True)
    assert (appended["write"], appended["fdatasync"]) == (100, 0)
    assert synced["write"] == 100
    assert 90 <= synced["fdatasync"] <= 102  # another thread empties the inbox and syncs some of it, too
    assert appended.total() < 100 * 100
    assert synced.total() < 200 * 100


def test_attaching_costs_a_few_calls_for_an_entry_and_looking_again_none(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    journal = opened(folder)
    for one in asked(journal, 10_000):
        journal.append(one)

    def attach() -> None:
        reader = read_journal(folder, seal=KeySeal())
        assert len(reader.records(FLOW).entries) == 10_000
        reader.close()

    for where, each in (("segments", 60), ("head", 30)):
        assert calls(attach) < each * 10_000, where
        ingested(folder)
    journal.records(FLOW)
    assert calls(lambda: journal.records(FLOW)) < 500
