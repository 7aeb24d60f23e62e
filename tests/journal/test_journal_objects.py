"""Objects: written once, mapped unchecked only where somebody vouches, and damage never believed."""

from __future__ import annotations

import errno
import gc
import os
import resource
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from blake3 import blake3

from keel_notebook.core.model import Blob, Digest
from keel_notebook.errors import DamagedError, DiskFullError, JournalUnreachableError
from keel_notebook.journal import drives, ingest
from keel_notebook.journal.disk import DiskJournal
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.objects import Objects
from tests.journal.journals import FLOW, drop, entry, forked, opened, wait_for, with_object

CONTENT = bytes(range(256)) * 10_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".keel"


def path_of(folder: Path, digest: Digest) -> Path:
    return folder / "objects" / digest[:2] / digest[2:]


def recorded(folder: Path, content: bytes = CONTENT) -> tuple[DiskJournal, Digest]:
    """A kernel that recorded one object, power-safe."""
    journal = opened(folder)
    one = with_object(journal, content)
    journal.append(one)
    assert journal.flush()
    assert one.payload is not None
    assert one.payload.head.object is not None
    return journal, one.payload.head.object


def attached(folder: Path) -> DiskJournal:
    journal = opened(folder)
    journal.records(FLOW)
    return journal


def hashed(journal: DiskJournal, monkeypatch: pytest.MonkeyPatch) -> list[Digest]:
    """Every object that the journal checks from now on."""
    found: list[Digest] = []
    real = journal._objects._verify

    def verify(digest: Digest, *rest: object) -> None:
        found.append(digest)
        real(digest, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(journal._objects, "_verify", verify)
    return found


def test_an_object_has_its_digest_as_name_and_only_its_owner_may_read_it(folder: Path) -> None:
    journal = opened(folder)
    digest = journal.put([CONTENT])
    path = path_of(folder, digest)
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / ".gitignore").read_text() == "*\n"


def test_equal_content_is_written_once(folder: Path) -> None:
    journal, digest = recorded(folder)
    first = path_of(folder, digest).stat()
    assert attached(folder).put([CONTENT]) == digest
    journal.put([CONTENT[:100], CONTENT[100:]])
    assert path_of(folder, digest).stat().st_ino == first.st_ino
    assert not [name for name in os.listdir(folder / "objects") if name.startswith(".")]


def test_what_a_synced_frame_vouches_for_is_mapped_without_a_look(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, digest = recorded(folder)
    drop(journal)
    for when in ("from segments", "from a head"):
        later = attached(folder)
        looked = hashed(later, monkeypatch)
        assert bytes(later.map(digest)) == CONTENT, when
        assert looked == []
        drop(later)
        assert forked(lambda: ingest.ingest(Folder(folder), wait_s=5)) == 0


def test_without_a_synced_frame_an_object_is_checked_once_and_then_vouched_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opened(folder)
    journal._flusher.stop(5)
    one = with_object(journal, CONTENT)
    journal.append(one)
    assert one.payload is not None
    digest = one.payload.head.object
    assert digest is not None
    drop(journal)
    first = attached(folder)
    looked = hashed(first, monkeypatch)
    first.map(digest)
    first.map(digest)
    assert looked == [digest]
    assert first.flush()
    drop(first)
    second = attached(folder)
    looked = hashed(second, monkeypatch)
    assert bytes(second.map(digest)) == CONTENT
    assert looked == []


def test_c82_a_vouched_object_that_was_touched_since_is_checked_again(folder: Path) -> None:
    journal, digest = recorded(folder)
    drop(journal)
    path = path_of(folder, digest)
    vouched_ns = time.time_ns()
    while path.stat().st_mtime_ns <= vouched_ns:  # a file system's clock ticks every few milliseconds
        with path.open("r+b") as file:
            file.seek(12345)
            file.write(b"\xff\xfe")
    later = attached(folder)
    with pytest.raises(DamagedError, match="not what was written"):
        later.map(digest)
    with pytest.raises(DamagedError):
        later.read(Blob(len(CONTENT), object=digest))
    with pytest.raises(DamagedError):
        later.check(digest)


@pytest.mark.parametrize("damage", ["flip", "cut", "grown", "gone", "empty"])
def test_c82_damage_is_found_and_heals_when_equal_content_is_put_again(folder: Path, damage: str) -> None:
    journal, digest = recorded(folder)
    path = path_of(folder, digest)
    whole = path.read_bytes()
    match damage:
        case "flip":
            path.write_bytes(whole[:-1] + b"?")
        case "cut":
            os.truncate(path, 999)
        case "grown":
            path.write_bytes(whole + b"more")
        case "empty":
            os.truncate(path, 0)
        case _:
            path.unlink()
    with pytest.raises(DamagedError):
        journal.map(digest)
    assert journal.put([CONTENT]) == digest
    assert bytes(journal.map(digest)) == CONTENT
    assert journal.flush()
    drop(journal)
    assert bytes(attached(folder).map(digest)) == CONTENT


def test_a_copied_folder_checks_once_and_then_maps(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    journal, digest = recorded(folder)
    drop(journal)
    copy = tmp_path / "moved" / ".keel"
    shutil.copytree(folder, copy)
    for expected in ([digest], []):
        here = attached(copy)
        looked = hashed(here, monkeypatch)
        assert bytes(here.map(digest)) == CONTENT
        assert looked == expected
        assert here.flush()
        drop(here)


def test_on_a_drive_that_is_not_local_objects_are_read_and_checked_instead_of_mapped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, digest = recorded(folder)
    drop(journal)
    monkeypatch.setattr(drives, "_mounts", lambda: [("/", "ext4"), (str(folder.parent), "nfs4")])
    later = attached(folder)
    memory = later.map(digest)
    assert isinstance(memory.obj, bytearray)
    assert bytes(memory) == CONTENT
    os.truncate(path_of(folder, digest), 0)
    assert bytes(memory) == CONTENT, "nothing that happens to the file reaches the kernel"
    with pytest.raises(DamagedError):
        later.map(digest)


@pytest.mark.parametrize(
    ("kind", "local"),
    [("ext4", True), ("tmpfs", True), ("nfs4", False), ("cifs", False), ("fuse.sshfs", False), ("", False)],
)
def test_only_known_drives_of_this_machine_are_local(kind: str, local: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drives, "_mounts", lambda: [("/", "ext4"), ("/far away", kind), ("/far", "nfs")])
    assert drives.is_local("/far away/x/.keel") is local
    assert drives.is_local("/far awayx")


def test_this_machines_own_mounts_can_be_read(tmp_path: Path) -> None:
    assert drives.drive_kind(str(tmp_path))
    assert drives.drive_kind("/proc") == "proc"


def test_mapped_memory_is_private_outlives_the_file_and_goes_with_its_last_user(folder: Path) -> None:
    journal, digest = recorded(folder)
    memory = journal.map(digest)
    part = memory[1000:2000].cast("B")
    memory[1500] = 7
    path_of(folder, digest).unlink()
    del memory
    gc.collect()
    assert part[500] == 7
    assert bytes(part[:4]) == CONTENT[1000:1004]
    assert str(digest) in Path("/proc/self/maps").read_text().replace("/", "")
    del part
    gc.collect()
    assert str(digest) not in Path("/proc/self/maps").read_text().replace("/", "")


def test_more_objects_can_be_mapped_than_files_be_open(folder: Path) -> None:
    journal = opened(folder)
    digest = journal.put([CONTENT])
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, limit[1]))
    try:
        held = [journal.map(digest) for _ in range(200)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    assert all(one[1] == 1 for one in held)


def test_large_content_is_written_from_where_it_lies(folder: Path) -> None:
    """No second copy in memory: DESIGN 10 allows 64 MB above the value itself."""
    content = bytearray(200 << 20)
    journal = opened(folder)
    journal.put([b"first"])
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = peak()
    digest = journal.put([memoryview(content)[: 100 << 20], memoryview(content)[100 << 20 :]])
    assert peak() - before < 48 << 10
    assert path_of(folder, digest).stat().st_size == 200 << 20


def peak() -> int:
    """The most kilobytes that this process had in RAM."""
    return int(next(line.split()[1] for line in Path("/proc/self/status").read_text().split("\n") if "VmHWM" in line))


def test_an_object_that_was_not_finished_leaves_nothing(folder: Path) -> None:
    journal = opened(folder)

    def parts() -> Iterator[bytes]:
        yield CONTENT
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        journal.put(parts())
    assert os.listdir(folder / "objects") == []


def test_unfinished_objects_of_dead_kernels_are_swept_and_those_of_live_ones_are_not(folder: Path) -> None:
    dead, live = opened(folder), opened(folder)
    for journal in (dead, live):
        journal.append(entry(journal))
        (folder / "objects" / f".{journal.run}.9.tmp").write_bytes(b"unfinished")
    drop(dead)
    assert forked(lambda: ingest.ingest(Folder(folder), wait_s=5)) == 0
    assert [name for name in os.listdir(folder / "objects") if name.startswith(".")] == [f".{live.run}.9.tmp"]


def test_the_last_part_of_a_disk_is_never_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = opened(folder)
    real = os.statvfs

    def nearly_full(path: str) -> os.statvfs_result:
        seen = list(real(path))
        seen[4] = int(seen[2] * 0.05) + 10  # f_bavail of f_blocks
        return os.statvfs_result(seen)

    monkeypatch.setattr(os, "statvfs", nearly_full)
    with pytest.raises(DiskFullError):
        journal.put([CONTENT])
    with pytest.raises(DiskFullError):
        journal.put(iter([CONTENT]))
    assert isinstance(journal.problem, DiskFullError)
    journal.append(entry(journal))
    assert journal.problem is None


def test_a_folder_that_is_gone_is_not_a_missing_object(folder: Path) -> None:
    objects = Objects(Folder(folder), run=0, vouched=lambda _: 0)
    with pytest.raises(JournalUnreachableError):
        objects.read(Digest("ab" * 32))


def test_objects_become_safe_before_the_frame_that_vouches_for_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opened(folder)
    order: list[str] = []
    real_sync, real_write = os.fdatasync, os.write

    def name_of(fd: int) -> str:
        path = os.readlink(f"/proc/self/fd/{fd}")
        return path if path.startswith(str(folder)) else ""  # other journals of this process have threads too

    def sync(fd: int) -> None:
        if name_of(fd).endswith(".seg"):
            order.append("segment")
        elif "/objects/" in name_of(fd):
            order.append("object")
        real_sync(fd)

    def write(fd: int, content: bytes) -> int:
        if name_of(fd).endswith(".seg"):
            order.append(f"frame {bytes(content)[3]}")
        return real_write(fd, content)

    monkeypatch.setattr(os, "fdatasync", sync)
    monkeypatch.setattr(os, "write", write)
    journal._flusher.stop(5)
    journal.append(with_object(journal, CONTENT), synced=True)
    assert order == ["frame 2", "object", "segment", "frame 3"]


def test_a_failed_sync_is_never_forgotten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may have dropped what it could not write: nothing of this run may be vouched for any more."""
    journal = opened(folder)
    real = os.fdatasync

    def fails(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fails)
    with pytest.raises(JournalUnreachableError):
        journal.append(entry(journal), synced=True)
    monkeypatch.setattr(os, "fdatasync", real)
    with pytest.raises(JournalUnreachableError):
        journal.append(entry(journal), synced=True)
    journal.append(entry(journal))
    assert not journal.flush()
    assert journal.problem is not None
    wait_for(lambda: journal.unsynced)


LARGE = bytes(range(256)) * (40 << 10)


def files_of(folder: Path) -> list[Path]:
    return [each for each in (folder / "objects").rglob("*") if each.is_file()]


def test_large_content_that_is_there_already_is_written_once_by_whichever_kernel(folder: Path) -> None:
    """It is written while it is hashed, and what turns out to be there is given up."""
    first = opened(folder)
    digest = first.put([LARGE])
    assert digest == blake3(LARGE).hexdigest()
    (only,) = files_of(folder)
    inode = only.stat().st_ino
    assert first.put([LARGE[: 5 << 20], LARGE[5 << 20 :]]) == digest
    second = opened(folder)  # which has not met it
    assert second.put([LARGE]) == digest
    assert [each.stat().st_ino for each in files_of(folder)] == [inode]
    assert second.put([LARGE[:-1] + b"?"]) != digest
    assert len(files_of(folder)) == 2


def test_large_content_whose_writing_fails_leaves_nothing_and_nobody_reading(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opened(folder)

    def full(fd: int, piece: memoryview, offset: int) -> int:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(DiskFullError):
            journal.put([LARGE])
    assert files_of(folder) == []
    assert not [thread for thread in threading.enumerate() if thread.name in {"keel-digest", "keel-write"}]
    assert journal.put([LARGE]) == blake3(LARGE).hexdigest()
