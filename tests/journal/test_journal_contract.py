"""The contract of ``core.ports.Journal``: the real one and the one in memory give the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from keel_notebook.core.model import Blob, Digest, Kind, Status
from keel_notebook.core.ports import RunEnd
from keel_notebook.errors import DamagedError, JournalUnreachableError
from keel_notebook.journal.memory import MemoryFolder, MemoryJournal
from tests.journal.journals import FLOW, OTHER, KeySeal, RealClock, drop, entry, opened, with_object

OpenOne = Callable[..., Any]


@pytest.fixture(params=["disk", "memory"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[OpenOne, Callable[[Any], None]]]:
    """How to open a journal on one folder, again and again, and how its kernel dies."""
    folder = MemoryFolder()
    made: list[Any] = []

    def open_one(seal: KeySeal | None = None) -> Any:
        if request.param == "disk":
            made.append(opened(tmp_path / ".keel", seal=seal))
        else:
            made.append(MemoryJournal(folder, clock=RealClock(), seal=seal or KeySeal()))
        return made[-1]

    def die(journal: Any) -> None:
        if request.param == "disk":
            drop(journal)
        else:
            journal.close(clean=False)

    yield open_one, die
    for journal in made:
        journal.close(clean=True)


@pytest.fixture
def open_one(world: tuple[OpenOne, Callable[[Any], None]]) -> OpenOne:
    return world[0]


@pytest.fixture
def die(world: tuple[OpenOne, Callable[[Any], None]]) -> Callable[[Any], None]:
    return world[1]


def test_what_was_appended_is_recorded_in_the_order_written(open_one: OpenOne) -> None:
    journal = open_one()
    written = [entry(journal, f"s{n}") for n in range(5)]
    for one in reversed(written):
        journal.append(one)
    assert list(journal.records(FLOW).entries) == written[::-1]


def test_a_later_entry_with_the_same_id_supersedes_and_moves_to_the_end(open_one: OpenOne) -> None:
    journal = open_one()
    running, between = entry(journal, status=Status.RUNNING), entry(journal, "other")
    journal.append(running)
    journal.append(between)
    journal.append(replace(running, status=Status.OK))
    assert list(journal.records(FLOW).entries) == [between, replace(running, status=Status.OK)]


def test_a_flow_has_its_own_entries_only(open_one: OpenOne) -> None:
    journal = open_one()
    mine, others = entry(journal), entry(journal, flow=OTHER)
    journal.append(mine)
    journal.append(others)
    assert list(journal.records(FLOW).entries) == [mine]
    assert list(journal.records(OTHER).entries) == [others]


def test_records_are_a_snapshot_that_later_entries_do_not_change(open_one: OpenOne) -> None:
    journal = open_one()
    journal.append(entry(journal))
    before = journal.records(FLOW)
    journal.append(entry(journal))
    assert len(before.entries) == 1
    assert len(journal.records(FLOW).entries) == 2


def test_k3_seq_begins_at_one_and_is_claimed_at_the_call(open_one: OpenOne) -> None:
    journal = open_one()
    assert [journal.next_seq() for _ in range(3)] == [1, 2, 3]


def test_run_numbers_grow_and_are_never_equal(open_one: OpenOne, die: Callable[[Any], None]) -> None:
    first, second = open_one(), open_one()
    die(second)
    third = open_one()
    assert first.run < second.run < third.run


def test_two_kernels_see_each_others_entries(open_one: OpenOne) -> None:
    one, two = open_one(), open_one()
    assert one.records(FLOW).entries == two.records(FLOW).entries == ()
    first, second, third = entry(one, "a"), entry(two, "b"), entry(one, "c")
    one.append(first)
    two.append(second)
    one.append(third)
    assert list(one.records(FLOW).entries) == list(two.records(FLOW).entries) == [first, second, third]


def test_the_salt_stays_with_the_folder(open_one: OpenOne) -> None:
    first = open_one()
    assert len(first.salt) == 32
    assert open_one().salt == first.salt


@pytest.mark.parametrize(
    ("ending", "end"),
    [("open", RunEnd.OPEN), ("clean", RunEnd.CLEAN), ("killed", RunEnd.DIED), ("asked", RunEnd.ASKED)],
)
def test_how_a_run_ended(open_one: OpenOne, die: Callable[[Any], None], ending: str, end: str) -> None:
    kernel = open_one()
    kernel.append(entry(kernel))
    if ending == "asked":
        kernel.request_shutdown()
    if ending == "clean":
        kernel.close(clean=True)
    elif ending != "open":
        die(kernel)
    assert open_one().records(FLOW).runs[kernel.run].end == end


def test_a_kernel_sees_its_own_run_open_and_only_runs_of_the_flow(open_one: OpenOne) -> None:
    mine, other = open_one(), open_one()
    other.append(entry(other, flow=OTHER))
    mine.append(entry(mine))
    runs = mine.records(FLOW).runs
    assert set(runs) == {mine.run}
    assert runs[mine.run].end == RunEnd.OPEN
    assert runs[mine.run].start.run == mine.run


def test_small_content_is_inline_and_large_content_an_object(open_one: OpenOne) -> None:
    journal = open_one()
    small, large = journal.blob(b"x" * (16 << 10)), journal.blob(b"x" * ((16 << 10) + 1))
    assert small.inline is not None
    assert small.object is None
    assert large.inline is None
    assert large.object is not None
    assert journal.read(small) == b"x" * (16 << 10)
    assert journal.read(large) == b"x" * ((16 << 10) + 1)


@pytest.mark.parametrize("content", [b"", b"abc", b"z" * 3_000_000])
def test_an_object_comes_back_and_equal_content_is_equal(open_one: OpenOne, content: bytes) -> None:
    journal = open_one()
    halves = [memoryview(content)[: len(content) // 2], content[len(content) // 2 :]]
    digest = journal.put(halves)
    assert journal.put([content]) == journal.put(iter([content])) == digest
    assert bytes(journal.map(digest)) == content
    assert open_one().read(Blob(len(content), object=digest)) == content


def test_a_mapped_object_is_writable_and_the_object_does_not_change(open_one: OpenOne) -> None:
    journal = open_one()
    digest = journal.put([b"a" * 100_000])
    memory = journal.map(digest)
    memory[:3] = b"XYZ"
    assert bytes(memory[:4]) == b"XYZa"
    assert bytes(journal.map(digest)[:4]) == b"aaaa"


def test_an_array_of_numbers_is_put_as_its_bytes(open_one: OpenOne) -> None:
    journal = open_one()
    numbers = memoryview(bytearray(range(256)) * 8).cast("d", (16, 16))
    assert bytes(journal.map(journal.put([numbers]))) == numbers.tobytes()


def test_a_missing_object_is_damage_and_never_empty(open_one: OpenOne) -> None:
    journal = open_one()
    absent = Digest("ab" * 32)
    with pytest.raises(DamagedError):
        journal.map(absent)
    with pytest.raises(DamagedError):
        journal.read(Blob(5, object=absent))
    with pytest.raises(DamagedError):
        journal.check(absent)


def test_a_blob_of_another_size_is_damage(open_one: OpenOne) -> None:
    journal = open_one()
    large = journal.blob(b"x" * 20_000)
    with pytest.raises(DamagedError):
        journal.read(replace(large, size=20_001))
    with pytest.raises(DamagedError):
        journal.read(Blob(3, inline=b"four"))


def test_entries_of_another_owner_are_listed_and_not_trusted(open_one: OpenOne) -> None:
    theirs = open_one(seal=KeySeal(b"theirs"))
    foreign = entry(theirs)
    theirs.append(foreign)
    mine = open_one()
    own = entry(mine)
    mine.append(own)
    records = mine.records(FLOW)
    assert list(records.entries) == [foreign, own]
    assert records.untrusted == {foreign.entry}


def test_what_a_power_cut_could_still_take_is_named_until_it_is_flushed(open_one: OpenOne) -> None:
    journal = open_one()
    first, second = entry(journal, "a"), entry(journal, "b")
    journal.append(first)
    journal.append(second, synced=True)
    assert journal.saving == frozenset()
    third = entry(journal, "c")
    journal.append(third)
    assert journal.saving <= {third.entry}
    assert journal.flush(10.0)
    assert journal.saving == frozenset()


def test_everything_appended_can_be_flushed(open_one: OpenOne) -> None:
    journal = open_one()
    journal.append(with_object(journal, b"o" * 50_000))
    assert journal.flush(10.0)
    assert journal.unsynced is False
    journal.append(entry(journal), synced=True)
    assert journal.flush()


def test_closing_twice_is_closing_once_and_nothing_is_written_afterwards(open_one: OpenOne) -> None:
    journal = open_one()
    kept = entry(journal)
    journal.append(kept)
    late = entry(journal)
    journal.close(clean=True)
    journal.close(clean=False)
    with pytest.raises(JournalUnreachableError):
        journal.append(late)
    with pytest.raises(JournalUnreachableError):
        journal.put([b"late"])
    records = open_one().records(FLOW)
    assert list(records.entries) == [kept]
    assert records.runs[journal.run].end == RunEnd.CLEAN


def test_the_fence_can_be_set(open_one: OpenOne) -> None:
    journal = open_one()
    journal.fence = 7
    journal.append(entry(journal, fence=7))
    assert journal.fence == 7
    assert journal.problem is None


def test_text_that_is_no_unicode_and_large_entries_survive(open_one: OpenOne) -> None:
    journal = open_one()
    odd = entry(
        journal, "a\ud800b", source="x" * 2_000_000, ambient={"cwd": "\udcff", "state": b"\x00\xff", "n": [1, 2.5]}
    )
    journal.append(odd)
    retired = entry(journal, kind=Kind.RETIRE, key="forget")
    journal.append(retired)
    assert list(open_one().records(FLOW).entries) == [odd, retired]
