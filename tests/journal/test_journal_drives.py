"""Drives without locks, and folders that a cloud service synchronises (C84)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from keel_notebook.core.ports import RunEnd
from keel_notebook.journal import troubles
from keel_notebook.journal.reader import read_journal
from tests.journal.journals import FLOW, KeySeal, opened, script

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
