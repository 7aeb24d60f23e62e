"""Disks that are full, folders that are read-only or gone, drives without locks, and files that are damaged.

A recording error never replaces the user's result, earlier records stay readable, and a lost record is named.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from keel_notebook.core.model import Entry
from keel_notebook.core.ports import RunEnd
from keel_notebook.errors import DiskFullError, JournalUnreachableError
from keel_notebook.journal import ingest, spawn, troubles
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.reader import read_journal
from tests.journal.journals import FLOW, KeySeal, drop, entry, forked, opened, script, with_object


def ingested(folder: Path) -> None:
    assert forked(lambda: ingest.ingest(Folder(folder), wait_s=20)) == 0


def steps(journal: Any) -> list[str]:
    return [one.step for one in journal.records(FLOW).entries]


def in_the_record_file(folder: Path) -> set[str]:
    with duckdb.connect(str(folder / "journal.duckdb"), read_only=True) as con:
        return {ident for (ident,) in con.execute("SELECT entry FROM entries").fetchall()}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 5 MB, where mounting one is allowed."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=5m", "keel-test", str(place)], check=False)
    yield place
    if mounted.returncode == 0:
        subprocess.run(["umount", "-l", str(place)], check=True)


def is_small(place: Path) -> bool:
    seen = os.statvfs(place)
    return seen.f_blocks * seen.f_frsize < 10_000_000


FULL = """
    import resource
    if sys.argv[2] == 'limited':     # mounting is not allowed here: a file may not grow beyond this
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    journal = opened(folder)
    journal.append(with_object(journal, b'small' * 5000, step='first'))
    try:
        journal.put([bytes(20_000_000)])
    except DiskFullError as error:
        assert journal.problem is error and 'E053' in str(error)
    else:
        raise SystemExit('20 MB fitted')
    assert not [name for name in os.listdir(folder / 'objects') if name.startswith('.')]
    journal.append(entry(journal, 'second'))
    assert journal.problem is None
    refused = 0
    for n in range(200):
        try:
            journal.append(entry(journal, f'filler {n}', source='x' * 100_000))
        except DiskFullError:
            refused += 1
            try:
                journal.append(entry(journal, 'half', source='x' * 99_000), synced=True)
            except DiskFullError:
                pass
    assert refused > 100
    steps = [one.step for one in journal.records('flow-a').entries]
    assert steps[:2] == ['first', 'second']
    assert bytes(journal.read(journal.records('flow-a').entries[0].payload.head)) == b'small' * 5000
    print(len(steps))
    os._exit(0)
"""


def test_c85_on_a_full_disk_earlier_records_stay_readable_and_the_next_append_is_sound(disk: Path) -> None:
    folder = disk / ".keel"
    how = "mounted" if is_small(disk) else "limited"
    held = int(script(FULL, folder, how).stdout)
    found = steps(read_journal(folder, seal=KeySeal()))
    assert len(found) == held
    assert found[:2] == ["first", "second"]
    assert troubles(folder) == [], "a full disk is no damage"
    if how == "mounted":
        with pytest.raises(JournalUnreachableError, match="disk is full"):
            spawn.ingest_now(folder)
        assert steps(read_journal(folder, seal=KeySeal())) == found
        subprocess.run(["mount", "-o", "remount,size=60m", str(disk)], check=True)
    again = opened(folder)
    again.append(with_object(again, b"room again" * 3000, step="again"), synced=True)
    assert steps(again) == [*found, "again"]
    spawn.ingest_now(folder)
    assert troubles(folder) == []
    assert in_the_record_file(folder) == {one.entry for one in again.records(FLOW).entries}
    drop(again)


def test_a_kernel_that_starts_on_a_full_disk_records_once_there_is_room(disk: Path) -> None:
    if not is_small(disk):
        pytest.skip("needs a file system of its own; the full disk itself is tested above without one")
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    clock = Steps()
    journal = opened(disk / ".keel", clock=clock)
    assert isinstance(journal.problem, DiskFullError)
    assert journal.run == 0
    assert len(journal.salt) == 32
    with pytest.raises(DiskFullError):
        journal.append(entry(journal))
    assert steps(journal) == []
    filler.unlink()
    clock.at += 10
    late = entry(journal)
    assert journal.run == late.run == 1
    journal.append(late)
    assert journal.problem is None
    assert steps(journal) == ["fit"]
    drop(journal)


class Steps:
    """A clock that stands until it is moved."""

    at = 1000.0

    def now(self) -> float:
        return self.at

    monotonic = now


READ_ONLY = """
    if sys.argv[2] == 'unprivileged':   # mounting is not allowed here
        os.setuid(65534) if os.getuid() == 0 else None
    journal = opened(folder)
    assert isinstance(journal.problem, JournalUnreachableError) and 'E054' in str(journal.problem)
    records = journal.records('flow-a')
    assert [one.step for one in records.entries] == ['recorded', 'waiting'], records.entries
    assert records.runs[1].end == RunEnd.DIED
    assert bytes(journal.map(records.entries[0].payload.head.object)) == b'x' * 50_000
    for refused in (lambda: journal.append(entry(journal)), lambda: journal.put([b'x'])):
        try:
            refused()
        except JournalUnreachableError:
            pass
        else:
            raise SystemExit('it was written')
    assert journal.flush() and not journal.unsynced
    journal.request_shutdown()
    reader = read_journal(folder, seal=KeySeal())
    assert [one.step for one in reader.history('flow-a')] == ['recorded', 'waiting']
    assert [flow.id for flow in reader.flows()] == ['flow-a']
    from keel_notebook.journal import spawn, flows
    assert spawn.query(folder, 'SELECT step FROM steps ORDER BY stamp')[1] == [('recorded',), ('waiting',)]
    assert flows.find_flow(folder, notebook=Path('/n/a.ipynb')).id
    journal.close(clean=True)
"""


def test_a_folder_that_can_only_be_read_is_read_in_full_and_says_why_nothing_is_recorded(
    disk: Path, tmp_path: Path
) -> None:
    place = disk if is_small(disk) else tmp_path
    folder = place / ".keel"
    journal = opened(folder)
    journal.append(with_object(journal, b"x" * 50_000, step="recorded"))
    assert journal.flush()
    ingested(folder)
    journal.append(entry(journal, "waiting"))
    drop(journal)
    if is_small(disk):
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        script(READ_ONLY, folder, "mounted")
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    else:
        for where, _, names in os.walk(folder):
            for name in names:
                os.chmod(os.path.join(where, name), 0o444)
            os.chmod(where, 0o555)
        script(READ_ONLY, folder, "unprivileged")
    assert troubles(folder) == []


def test_a_folder_that_cannot_be_made_is_a_problem_and_no_exception(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    journal = opened(tmp_path / "file" / ".keel")
    assert isinstance(journal.problem, JournalUnreachableError)
    with pytest.raises(JournalUnreachableError):
        journal.append(entry(journal))
    with pytest.raises(JournalUnreachableError):
        journal.records(FLOW)
    journal.close(clean=True)


def test_a_folder_deleted_under_a_live_kernel_is_made_anew_and_its_loss_is_told(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    journal = opened(folder)
    salt = journal.salt
    journal.append(entry(journal, "lost"))
    payload = with_object(journal, b"p" * 50_000, step="its object is gone")
    shutil.rmtree(folder)
    with pytest.raises(JournalUnreachableError, match="deleted"):
        journal.append(payload)
    journal.append(with_object(journal, b"q" * 50_000, step="kept"), synced=True)
    assert journal.problem is None
    assert journal.salt == salt
    assert steps(journal) == ["kept"]
    assert steps(opened(folder)) == ["kept"]
    assert "gone" in troubles(folder)[0]
    assert opened(folder).salt == salt


def test_two_kernels_whose_folder_was_deleted_never_share_a_run_number(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    first, second = opened(folder), opened(folder)
    for journal in (first, second):
        journal.append(entry(journal))
    shutil.rmtree(folder)
    third = opened(folder)
    assert third.run == 1
    third.append(entry(third, "third"))
    stale = entry(first, "first")
    with pytest.raises(JournalUnreachableError):
        first.append(stale)  # its salt is not the folder's any more: nothing that it knows fits
    second_run = second.run
    with pytest.raises(JournalUnreachableError):
        second.append(entry(second, "second"))
    assert second_run == 2
    assert steps(third) == ["third"]


def test_a_segment_that_somebody_changed_under_a_live_kernel_is_set_aside(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    journal = opened(folder)
    journal.append(entry(journal, "before"))
    ingested(folder)
    os.truncate(folder / "inbox" / "1.seg", 100)
    journal.append(entry(journal, "after"))
    assert steps(journal) == ["before", "after"]
    assert steps(opened(folder)) == ["before", "after"]
    assert "run 1" in troubles(folder)[0]
    assert (folder / "damaged" / "1-1.seg").exists()
    ingested(folder)
    assert len(in_the_record_file(folder)) == 2


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Entry]]:
    """A journal whose record file holds several blocks, with one more entry in the inbox."""
    folder = tmp_path_factory.mktemp("recorded") / ".keel"
    journal = opened(folder)
    for n in range(300):
        journal.append(entry(journal, f"s{n}", source=os.urandom(1500).hex()))
    ingested(folder)
    journal.append(entry(journal, "waiting"))
    expected = list(journal.records(FLOW).entries)
    drop(journal)
    return folder, expected


def flipped(path: Path, at: float) -> None:
    raw = bytearray(path.read_bytes())
    raw[int(len(raw) * at)] ^= 0x10
    path.write_bytes(bytes(raw))


def another_database(path: Path) -> None:
    path.unlink()
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE t (a INTEGER)")


DAMAGES = {
    "cut in half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "cut to nothing": lambda path: os.truncate(path, 0),
    "garbage": lambda path: path.write_bytes(os.urandom(path.stat().st_size)),
    "another database": lambda path: (
        path.unlink(),
        duckdb.connect(str(path)).execute("CREATE TABLE t (a INT)").close(),
    ),
    "gone": lambda path: path.unlink(),
    "head flipped": lambda path: flipped(path, 0.0001),
    "block flipped": lambda path: flipped(path, 0.4),
    "tail flipped": lambda path: flipped(path, 0.9),
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_c82_a_damaged_record_file_is_set_aside_and_rebuilt(
    recorded: tuple[Path, list[Entry]], tmp_path: Path, damage: str
) -> None:
    origin, expected = recorded
    folder = tmp_path / ".keel"
    shutil.copytree(origin, folder)
    DAMAGES[damage](folder / "journal.duckdb")
    spawn.ingest_now(folder)
    later = opened(folder)
    assert list(later.records(FLOW).entries) == expected
    found = spawn.query(folder, "SELECT entry, step, source FROM entries ORDER BY stamp")[1]
    assert found == [(one.entry, one.step, one.source) for one in expected]
    drop(later)


def test_c82_a_damaged_block_is_found_when_a_query_reads_it_and_everything_is_there_again(
    recorded: tuple[Path, list[Entry]], tmp_path: Path
) -> None:
    origin, expected = recorded
    rest = tmp_path / "rest" / ".keel"
    shutil.copytree(origin, rest)
    spawn.ingest_now(rest)
    found_damage = 0
    for number in range(4):
        folder = tmp_path / str(number) / ".keel"
        shutil.copytree(rest, folder)
        flipped(folder / "journal.duckdb", 0.2 + number * 0.2)
        _, found = spawn.query(folder, "SELECT count(*), max(source), max(body) FROM entries")
        assert found[0][:2] == (len(expected), max(one.source for one in expected))
        found_damage += bool(troubles(folder))
    assert found_damage


def test_c82_without_heads_a_damaged_record_file_gives_what_can_be_read_and_names_the_loss(
    recorded: tuple[Path, list[Entry]], tmp_path: Path
) -> None:
    origin, expected = recorded
    folder = tmp_path / ".keel"
    shutil.copytree(origin, folder)
    (folder / "heads" / FLOW).unlink()
    os.truncate(folder / "journal.duckdb", 5000)
    spawn.ingest_now(folder)
    later = opened(folder)
    found = list(later.records(FLOW).entries)
    assert found == [one for one in expected if one in found]
    assert found[-1].step == "waiting"
    told = "\n".join(troubles(folder))
    assert f"{len(expected) - len(found)} old entries are lost" in told
    assert (folder / "damaged" / "journal-1.duckdb").exists()
    drop(later)


def test_c82_a_kill_with_a_damaged_log_beside_the_record_file_is_no_crash_loop(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    journal = opened(folder)
    for n in range(20):
        journal.append(entry(journal, f"s{n}"))
    drop(journal)

    def dies_with_a_log() -> None:
        real = duckdb.connect

        class Dying:
            def __init__(self, con: Any) -> None:
                self.con = con

            def execute(self, sql: str, *rest: Any) -> Any:
                if sql == "CHECKPOINT" and os.path.getsize(folder / "journal.duckdb.wal") > 5000:
                    os.kill(os.getpid(), 9)
                return self.con.execute(sql, *rest)

            def __getattr__(self, name: str) -> Any:
                return getattr(self.con, name)

        duckdb.connect = lambda *a, **k: Dying(real(*a, **k))  # type: ignore[assignment]
        ingest.ingest(Folder(folder), wait_s=5)

    assert forked(dies_with_a_log) == 9
    log = folder / "journal.duckdb.wal"
    whole = log.read_bytes()
    for number, at in enumerate((0.05, 0.3, 0.5, 0.7, 0.95)):
        for change in ("flip", "cut"):
            copy = tmp_path / f"{number}{change}" / ".keel"
            shutil.copytree(folder, copy)
            raw = bytearray(whole)
            raw[int(len(raw) * at)] ^= 0x20
            (copy / "journal.duckdb.wal").write_bytes(raw if change == "flip" else whole[: int(len(whole) * at)])
            ingested(copy)
            assert len(in_the_record_file(copy)) == 20
            assert len(opened(copy).records(FLOW).entries) == 20


SHIM = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static int on_the_drive(int fd) {
    char link[64], path[4096] = {0};
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return readlink(link, path, sizeof path - 1) > 0 && strstr(path, "/network drive/");
}
int flock(int fd, int how) {
    if (on_the_drive(fd)) { errno = EOPNOTSUPP; return -1; }
    int (*real)(int, int) = dlsym(RTLD_NEXT, "flock");
    return real(fd, how);
}
static int lock_refused(int fd, int cmd, void *arg, const char *name) {
    if ((cmd == F_SETLK || cmd == F_SETLKW || cmd == F_OFD_SETLK) && on_the_drive(fd)) {
        errno = EOPNOTSUPP;
        return -1;
    }
    int (*real)(int, int, ...) = dlsym(RTLD_NEXT, name);
    return real(fd, cmd, arg);
}
int fcntl(int fd, int cmd, ...) { va_list v; va_start(v, cmd); void *a = va_arg(v, void *); va_end(v);
    return lock_refused(fd, cmd, a, "fcntl"); }
int fcntl64(int fd, int cmd, ...) { va_list v; va_start(v, cmd); void *a = va_arg(v, void *); va_end(v);
    return lock_refused(fd, cmd, a, "fcntl64"); }
"""

PATCHED = """
import duckdb
real = duckdb.connect
def connect(path=':memory:', *rest, **how):
    if '/network drive/' in str(path):
        raise duckdb.IOException(f'IO Error: Could not set lock on file "{path}": Operation not supported')
    return real(path, *rest, **how)
duckdb.connect = connect
"""


@pytest.fixture
def without_locks(tmp_path: Path) -> dict[str, str]:
    """The environment of a process whose drives have no locks: a real one where there is a compiler."""
    if shutil.which("cc"):
        (tmp_path / "shim.c").write_text(SHIM)
        library = tmp_path / "shim.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "shim.c", "-ldl"], check=True)
        return {"LD_PRELOAD": str(library)}
    (tmp_path / "patched").mkdir()
    (tmp_path / "patched" / "sitecustomize.py").write_text(PATCHED)
    root = Path(__file__).parents[2]
    return {"PYTHONPATH": f"{tmp_path / 'patched'}{os.pathsep}{root}"}


def test_c84_on_a_drive_without_locks_everything_works_and_no_lock_error_is_seen(
    tmp_path: Path, without_locks: dict[str, str]
) -> None:
    folder = tmp_path / "network drive" / ".keel"
    for take in range(2):
        done = script(
            """
            from keel_notebook.journal import spawn, troubles
            journal = opened(folder)
            journal.append(with_object(journal, b'x' * 50_000, step=sys.argv[2]), synced=True)
            spawn.ingest_now(folder)
            print(spawn.query(folder, 'SELECT step FROM steps ORDER BY stamp')[1], troubles(folder))
            assert journal.records('flow-a').runs[journal.run].end == 'open'
            """,
            folder,
            f"take {take}",
            env=without_locks,
        )
        assert done.stderr == ""
        assert done.stdout == str([(f"take {n}",) for n in range(take + 1)]) + " []\n"
    assert not (folder / "journal.duckdb.wal").exists()
    assert not [name for name in os.listdir(folder) if name.endswith((".tmp", ".held"))]
    assert (folder / "journal.duckdb").stat().st_mode & 0o777 == 0o600
    records = read_journal(folder, seal=KeySeal()).records(FLOW)
    assert {seen.end for seen in records.runs.values()} == {RunEnd.CLEAN}


@pytest.mark.parametrize(
    ("place", "service"),
    [
        ("Dropbox/work", "Dropbox"),
        ("OneDrive - Firm/x", "OneDrive"),
        ("My Drive/x", "Google Drive"),
        ("Library/Mobile Documents/x", "iCloud"),
        ("Library/CloudStorage/Box-me/x", "a cloud service"),
        ("dropbox-clone-project", "Dropbox"),
        ("plain/onedrives", None),
    ],
)
def test_a_folder_that_a_cloud_service_synchronises_is_noticed(tmp_path: Path, place: str, service: str | None) -> None:
    folder = tmp_path / place / ".keel"
    opened(folder)
    assert [service in one for one in troubles(folder) if service] == ([True] if service else [])
    assert bool(troubles(folder)) == bool(service)


def test_an_ingest_that_goes_wrong_leaves_a_note_and_the_next_one_takes_it_away(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    journal = opened(folder)
    journal.append(entry(journal))
    (folder / "heads").write_text("in the way")
    child = spawn.start_ingest(str(folder))
    assert child.wait(60) != spawn.Exit.DONE
    assert "nothing is lost" in troubles(folder)[0]
    (folder / "heads").unlink()
    spawn.ingest_now(folder)
    assert troubles(folder) == []


def test_reading_takes_no_longer_than_it_may(tmp_path: Path) -> None:
    import fcntl

    folder = tmp_path / ".keel"
    journal = opened(folder)
    journal.append(entry(journal))
    with (folder / "journal.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(JournalUnreachableError, match="another process"):
            spawn.ingest_now(folder, 0.3)
    spawn.ingest_now(folder)


def test_an_interpreter_that_cannot_be_started_is_no_exception_in_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    journal = opened(tmp_path / ".keel", rest_s=0.01)
    journal.append(entry(journal))
    assert journal.flush()
    with pytest.raises(JournalUnreachableError, match="could not be started"):
        spawn.ingest_now(tmp_path / ".keel")
    journal.close(clean=True)
    monkeypatch.undo()
    assert steps(read_journal(tmp_path / ".keel", seal=KeySeal())) == ["fit"]
