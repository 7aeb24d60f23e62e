"""Segments, byte by byte: a torn tail is cut, damage is noticed, and a wrong entry is never believed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keel_notebook.core.model import Entry, Kind
from keel_notebook.errors import JournalUnreachableError
from keel_notebook.journal import cursor, frames, troubles
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.frames import Mark, Scan
from keel_notebook.journal.reader import read_journal
from keel_notebook.journal.sidefile import Side, read_side, write_side
from tests.journal.journals import FLOW, KeySeal, drop, entry, opened

IDENT = b"segment!"
SEED = frames.seed_of(IDENT)

bodies = st.lists(st.tuples(st.sampled_from(list(Mark)), st.binary(max_size=60)), max_size=8)


def written(contents: list[tuple[Mark, bytes]]) -> list[bytes]:
    link = frames.first_link(IDENT)
    made = []
    for number, (mark, body) in enumerate(contents):
        made.append(frames.encode(mark, body, fence=number, stamp=number, chain=link, mac=bytes(16), seed=SEED))
        link = frames.link_of(made[-1])
    return made


def scanned(raw: bytes, *, sure: int = 0, base: int = 16) -> Scan:
    return frames.scan(raw, base=base, link=frames.first_link(IDENT), seed=SEED, sure=sure)


@given(bodies)
@settings(max_examples=60, deadline=None)
def test_frames_come_back_as_they_were_written(contents: list[tuple[Mark, bytes]]) -> None:
    raw = b"".join(written(contents))
    found = scanned(raw)
    assert [(frame.mark, frame.body) for frame in found.frames] == contents
    assert [frame.fence for frame in found.frames] == list(range(len(contents)))
    assert found.faults == []
    assert found.end == 16 + len(raw)


@given(bodies, st.data())
@settings(max_examples=80, deadline=None)
def test_a_cut_keeps_every_whole_frame_and_is_no_fault(contents: list[tuple[Mark, bytes]], data: st.DataObject) -> None:
    made = written(contents)
    raw = b"".join(made)
    cut = data.draw(st.integers(0, len(raw)))
    found = scanned(raw[:cut])
    whole = [frame for frame in scanned(raw).frames if frame.end <= 16 + cut]
    assert found.frames == whole
    assert found.faults == []


@given(bodies.filter(bool), st.data())
@settings(max_examples=80, deadline=None)
def test_a_cut_below_what_was_safe_is_a_fault(contents: list[tuple[Mark, bytes]], data: st.DataObject) -> None:
    raw = b"".join(written(contents))
    cut = data.draw(st.integers(0, len(raw) - 1))
    assert scanned(raw[:cut], sure=16 + len(raw)).faults


@given(bodies.filter(lambda found: len(found) > 1), st.data())
@settings(max_examples=80, deadline=None)
def test_a_frame_taken_out_is_noticed_by_the_chain(contents: list[tuple[Mark, bytes]], data: st.DataObject) -> None:
    made = written(contents)
    gone = data.draw(st.integers(0, len(made) - 2))
    found = scanned(b"".join(made[:gone] + made[gone + 1 :]))
    assert len(found.frames) == len(made) - 1
    assert [fault.detail for fault in found.faults] == ["frames are missing here"]


def test_a_frame_of_another_segment_inside_a_damaged_one_is_not_taken_for_one_of_this() -> None:
    foreign = frames.encode(Mark.ENTRY, b"old", fence=0, stamp=1, chain=bytes(8), mac=bytes(16), seed=SEED + 1)
    made = written([(Mark.ENTRY, b"a"), (Mark.ENTRY, b"copied: " + foreign), (Mark.ENTRY, b"z")])
    damaged = bytearray(b"".join(made))
    damaged[len(made[0]) + 20] ^= 1
    assert [frame.body for frame in scanned(bytes(damaged)).frames] == [b"a", b"z"]


def test_frames_can_be_read_in_pieces(tmp_path: Path) -> None:
    made = written([(Mark.ENTRY, bytes([n]) * n) for n in range(20)])
    raw = b"".join(made)
    first = scanned(raw[:700])
    rest = frames.scan(raw[first.end - 16 :], base=first.end, link=first.link, seed=SEED, sure=0)
    assert [frame.body for frame in first.frames + rest.frames] == [bytes([n]) * n for n in range(20)]
    assert first.faults + rest.faults == []


def test_a_body_above_one_gigabyte_is_refused_before_it_is_written() -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return (1 << 30) + 1

    with pytest.raises(ValueError, match="bytes"):
        frames.encode(Mark.ENTRY, Huge(), fence=0, stamp=0, chain=bytes(8), mac=bytes(16), seed=0)


def test_a_torn_side_file_costs_only_the_hint(tmp_path: Path) -> None:
    path = str(tmp_path / "1.rss")
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    write_side(fd, Side(IDENT, 5, 6))
    assert read_side(path, IDENT) == Side(IDENT, 5, 6)
    assert read_side(path, b"another!") == Side(b"another!", 0, 0)
    os.pwrite(fd, b"\xff", 10)
    assert read_side(path, IDENT) == Side(IDENT, 0, 0)
    os.close(fd)
    assert read_side(path + "x", IDENT) == Side(IDENT, 0, 0)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Entry], int]:
    """A small journal of a dead kernel, what it holds, and how much of it was power-safe."""
    folder = tmp_path_factory.mktemp("small") / ".keel"
    journal = opened(folder)
    journal.append(entry(journal, "a", source="x = 1"))
    journal.append(entry(journal, "b"), synced=True)
    journal._flusher.stop(5)
    safe = journal._safety.upto
    journal.append(entry(journal, "c"))
    held = list(journal.records(FLOW).entries)
    drop(journal)
    return folder, held, safe


def damaged(
    small: tuple[Path, list[Entry], int], folder: Path, bit: int
) -> Iterator[tuple[int, list[Entry], list[str]]]:
    """The segment with the bit flipped in each byte (0: cut there), and what is read and said of it."""
    shutil.copytree(small[0], folder)
    segment = folder / "inbox" / "1.seg"
    raw = segment.read_bytes()
    for offset in range(len(raw)):
        changed = bytearray(raw)
        changed[offset] ^= bit
        segment.write_bytes(bytes(changed) if bit else raw[:offset])
        reader = read_journal(folder, seal=KeySeal())
        records = reader.records(FLOW)
        assert not records.untrusted
        yield offset, list(records.entries), troubles(folder)
        reader.close()
        shutil.rmtree(folder / "damaged", ignore_errors=True)


def test_c82_a_segment_cut_at_any_byte_loses_its_tail_and_says_so_where_it_was_safe(
    small: tuple[Path, list[Entry], int], tmp_path: Path
) -> None:
    _, held, safe = small
    counts = set()
    for offset, found, said in damaged(small, tmp_path / ".keel", 0):
        assert found == held[: len(found)], offset
        counts.add(len(found))
        assert bool(said) == (offset < safe), (offset, said)
    assert counts == {0, 1, 2}


@pytest.mark.parametrize("bit", [0x01, 0x80])
def test_c82_a_bit_flipped_at_any_byte_never_makes_a_wrong_entry(
    small: tuple[Path, list[Entry], int], tmp_path: Path, bit: int
) -> None:
    _, held, safe = small
    for offset, found, said in damaged(small, tmp_path / ".keel", bit):
        assert all(one in held for one in found), offset
        assert found == [one for one in held if one in found], offset
        if offset < safe:
            assert said, f"byte {offset} was power-safe and its damage went unnoticed"


def test_a_retirement_survives_a_flipped_bit(tmp_path: Path) -> None:
    """Losing one would bring back what a person rejected: so it is written twice."""
    folder = tmp_path / ".keel"
    journal = opened(folder)
    journal.append(entry(journal))
    before = journal._writer.size
    journal.append(entry(journal, kind=Kind.RETIRE, key="forget"), synced=True)
    drop(journal)
    segment = folder / "inbox" / "1.seg"
    raw = bytearray(segment.read_bytes())
    for offset in (before + 5, before + 60, (before + len(raw)) // 2 + 70):
        broken = bytearray(raw)
        broken[offset] ^= 4
        segment.write_bytes(bytes(broken))
        entries = read_journal(folder, seal=KeySeal()).records(FLOW).entries
        assert [one.kind for one in entries] == [Kind.STEP, Kind.RETIRE]
    assert troubles(folder)


def test_a_segment_of_a_newer_version_is_refused_and_never_read_as_empty(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    journal = opened(folder)
    journal.append(entry(journal))
    drop(journal)
    segment = Path(Folder(folder).segment(1))
    segment.write_bytes(b"KEELSEG2" + segment.read_bytes()[8:16] + b"another form" * 50)
    with pytest.raises(JournalUnreachableError, match="newer"):
        read_journal(folder, seal=None).records(FLOW)


def test_z12_a_long_segment_is_read_in_windows_and_no_entry_is_seen_in_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opened(tmp_path)
    for number in range(60):
        journal.append(entry(journal, f"step{number}", source="x" * (number * 7 % 200)))
    journal.close(clean=True)
    whole = read_journal(tmp_path, seal=KeySeal()).records(FLOW).entries
    assert len(whole) == 60
    for window in (1, 100, 333, 4096):
        monkeypatch.setattr(cursor, "_WINDOW", window)
        assert read_journal(tmp_path, seal=KeySeal()).records(FLOW).entries == whole
