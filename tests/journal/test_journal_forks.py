"""Forked children, interpreter exit, and what a kernel's start costs. Real processes throughout."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from keel_notebook.core.ports import RunEnd
from keel_notebook.journal import troubles
from keel_notebook.journal.reader import read_journal
from tests.journal.journals import FLOW, KeySeal, script, wait_for

EXITS = {
    "_exit": "os._exit(0)",
    "sys.exit": "sys.exit(0)",
    "falls off the end": "pass",
    "raises": "os.close(2); raise RuntimeError('of the child')",
    "collects": "import gc; globals().pop('journal'); gc.collect(); sys.exit(0)",
    "closes": "journal.close(clean=True); journal.flush(); journal.request_shutdown(); sys.exit(0)",
}


@pytest.mark.parametrize("ending", list(EXITS))
def test_a_forked_child_never_writes_and_never_harms_its_parent(tmp_path: Path, ending: str) -> None:
    script(
        f"""
        journal = opened(folder)
        journal.append(with_object(journal, b'x' * 100_000, status=Status.RUNNING))
        journal.records(FLOW)
        pid = os.fork()
        if pid == 0:
            for refused in (lambda: journal.append(entry(journal)), lambda: journal.put([b'x'])):
                try:
                    refused()
                except JournalUnreachableError as error:
                    assert 'forked' in str(error) and journal.problem is not None
                else:
                    os._exit(9)
            {EXITS[ending]}
        else:
            assert os.waitpid(pid, 0)[1] >> 8 != 9
            journal.append(entry(journal, 'after'), synced=True)
            assert journal.problem is None
            assert [one.step for one in journal.records(FLOW).entries] == ['fit', 'after']
        """,
        tmp_path / ".keel",
    )
    records = read_journal(tmp_path / ".keel", seal=KeySeal()).records(FLOW)
    assert [one.step for one in records.entries] == ["fit", "after"]
    assert records.runs[1].end == RunEnd.CLEAN
    assert troubles(tmp_path / ".keel") == []


def test_c89_a_fork_pool_in_a_step_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    script(
        """
        import multiprocessing
        journal = opened(folder)
        def work(n):
            try:
                journal.append(entry(journal, f'child {n}'))
            except JournalUnreachableError:
                return n
        for round in range(3):
            journal.append(entry(journal, f'before {round}'))
            with multiprocessing.get_context('fork').Pool(3) as pool:
                assert pool.map(work, range(12)) == list(range(12))
            journal.append(entry(journal, f'after {round}'))
        """,
        tmp_path / ".keel",
    )
    steps = [one.step for one in read_journal(tmp_path / ".keel", seal=KeySeal()).records(FLOW).entries]
    assert steps == [f"{when} {n}" for n in range(3) for when in ("before", "after")]
    assert troubles(tmp_path / ".keel") == []


@pytest.mark.parametrize("forking", ["os.fork()", "ctypes.PyDLL(None).fork()"])
def test_a_child_that_outlives_a_killed_kernel_does_not_make_it_look_alive(tmp_path: Path, forking: str) -> None:
    """Also one that was forked behind Python's back and still holds the lock."""
    done = script(
        f"""
        import ctypes
        journal = opened(folder)
        journal.append(entry(journal, status=Status.RUNNING))
        kernel = os.fork()
        if kernel == 0:
            own = opened(folder)
            own.append(entry(own, 'of the kernel'))
            pid = {forking}
            if pid == 0:
                os.closerange(0, 3)   # so that nobody waits for what it might still print
                time.sleep(60)
                os._exit(0)
            print(own.run, pid, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(kernel, 0)
        """,
        tmp_path / ".keel",
        close_fds=True,
    )
    run, orphan = map(int, done.stdout.split())
    try:
        runs = read_journal(tmp_path / ".keel", seal=KeySeal()).records(FLOW).runs
        assert runs[run].end == RunEnd.DIED
        os.kill(orphan, 0)  # it does live
    finally:
        os.kill(orphan, signal.SIGKILL)


def test_an_exit_in_the_middle_of_a_flush_is_quiet_and_clean(tmp_path: Path) -> None:
    """DuckDB's threads abort the process here (feasibility A); ours must not."""
    for delay in ("0", "0.001", "0.005"):
        done = script(
            """
            journal = opened(folder)
            real = os.fdatasync
            def slow(fd):
                time.sleep(0.1)
                real(fd)
            os.fdatasync = slow
            for n in range(5):
                journal.append(with_object(journal, os.urandom(50_000)))
            time.sleep(float(sys.argv[2]))
            """,
            tmp_path / ".keel",
            delay,
        )
        assert done.stderr == ""
    records = read_journal(tmp_path / ".keel", seal=KeySeal()).records(FLOW)
    assert len(records.entries) == 15
    assert {run.end for run in records.runs.values()} == {RunEnd.CLEAN}


def test_the_ingest_started_at_exit_outlives_the_kernel_and_warns_nobody(tmp_path: Path) -> None:
    folder = tmp_path / ".keel"
    done = script(
        """
        import warnings
        warnings.simplefilter('error')
        journal = opened(folder, rest_s=60)
        journal.append(entry(journal))
        """,
        folder,
    )
    assert done.stderr == ""
    index = folder / "heads" / ".index"
    wait_for(lambda: index.exists() and (folder / "journal.duckdb").exists() and (folder / "heads" / FLOW).exists())


def test_opening_a_journal_imports_nothing_heavy(tmp_path: Path) -> None:
    done = script(
        """
        heavy = {'duckdb', 'numpy', 'pandas', 'psutil', 'asyncio', 'rich', 'click', 'ipywidgets', 'hypothesis'}
        before = set(sys.modules)
        from keel_notebook.journal.disk import open_journal
        journal = opened(folder)
        journal.append(entry(journal), synced=True)
        journal.records(FLOW)
        print(heavy & set(sys.modules))
        """,
        tmp_path / ".keel",
    )
    assert done.stdout.strip() == "set()"


def test_a_shutdown_request_from_a_signal_in_the_middle_of_an_append_is_recorded(tmp_path: Path) -> None:
    done = script(
        """
        journal = opened(folder)
        append = journal._writer.segment.append
        def interrupted(*args, **how):
            signal.raise_signal(signal.SIGTERM)   # while this very thread holds the lock
            journal._writer.segment.append = append
            return append(*args, **how)
        signal.signal(signal.SIGTERM, lambda *_: journal.request_shutdown())
        journal._writer.segment.append = interrupted
        journal.append(entry(journal))
        journal.flush()
        print('said', flush=True)
        os._exit(0)   # as a kernel that is killed because it was still busy
        """,
        tmp_path / ".keel",
    )
    assert done.stdout == "said\n"
    records = read_journal(tmp_path / ".keel", seal=KeySeal()).records(FLOW)
    assert [one.step for one in records.entries] == ["fit"]
    assert {run.end for run in records.runs.values()} == {RunEnd.ASKED}


def test_an_interrupt_in_the_middle_of_a_write_leaves_whole_frames_only(tmp_path: Path) -> None:
    script(
        """
        journal = opened(folder)
        real = os.write
        for half in (True, False):
            def cut_off(fd, content):
                os.write = real
                real(fd, bytes(content)[: len(content) // 2] if half else content)
                raise KeyboardInterrupt
            os.write = cut_off
            try:
                journal.append(entry(journal, f'half {half}'))
            except KeyboardInterrupt:
                pass
            else:
                raise SystemExit('no interrupt')
            journal.append(entry(journal, f'after {half}'))
        """,
        tmp_path / ".keel",
    )
    steps = [one.step for one in read_journal(tmp_path / ".keel", seal=KeySeal()).records(FLOW).entries]
    assert steps == ["after True", "half False", "after False"]
    assert troubles(tmp_path / ".keel") == []
