"""What a cell does outside the process is seen while it does it (DESIGN 6, Files; C19)."""

import contextlib
import glob
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from keel_notebook.capture.world import FileTouch, World
from keel_notebook.journal.wholefiles import sync_folder

ROOT = str(Path(__file__).resolve().parents[2])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def seen(body, **options):
    world = World(**options)
    world.open()
    try:
        body()
    finally:
        found = world.close()
    return found


def touches(body, **options):
    return [(touch.path, touch.how) for touch in seen(body, **options).files]


def test_files_are_noted_as_they_were_named_with_what_was_done(folder):
    def body():
        for mode in ("w", "a", "r", "r+", "x"):
            with open(f"{mode}.txt" if mode in "xw" else "w.txt", mode):
                pass
        os.listdir()
        os.rename("w.txt", "moved.txt")
        os.remove("moved.txt")
        os.mkdir("sub")
        sqlite3.connect("t.db").close()
        glob.glob("*.csv")

    found = touches(body)
    for touch in [
        ("w.txt", "write"),
        ("w.txt", "append"),
        ("w.txt", "read"),
        ("x.txt", "write"),
        (".", "list"),
        ("w.txt", "rename"),
        ("moved.txt", "write"),
        ("moved.txt", "remove"),
        ("sub", "make"),
        ("t.db", "database"),
        ("*.csv", "glob"),
    ]:
        assert touch in found
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("flags", "how"),
    [
        (os.O_RDONLY, ["read"]),
        (os.O_WRONLY | os.O_CREAT, ["write"]),
        (os.O_WRONLY | os.O_APPEND, ["append"]),
        (os.O_RDWR, ["read", "write"]),
        (os.O_RDWR | os.O_TRUNC, ["write"]),
    ],
)
def test_files_opened_by_flags(folder, flags, how):
    (folder / "f").write_text("x")
    assert touches(lambda: os.close(os.open("f", flags))) == [("f", one) for one in how]


def test_a_file_that_was_tried_and_is_not_there_is_noted(folder):
    def body():
        with contextlib.suppress(FileNotFoundError):
            open("absent.csv").close()

    assert touches(body) == [("absent.csv", "read")]


def test_a_relative_path_is_kept_with_the_folder_it_was_relative_to(folder):
    (folder / "sub").mkdir()

    def body():
        os.chdir("sub")
        open("a.txt", "w").close()

    assert seen(body).files == (FileTouch("a.txt", "write", str(folder / "sub")),)


def test_python_the_system_and_the_journal_are_nobodys_inputs(folder):
    (folder / ".keel").mkdir()
    (folder / "journal").mkdir()

    def body():
        for path in (
            os.__file__,
            "/etc/hostname",
            "/proc/self/stat",
            ".keel/x",
            "journal/x",
            "/dev/null",
            pytest.__file__,
        ):
            with contextlib.suppress(OSError):
                open(path, "a" if "x" in path else "r").close()
        sys.path_importer_cache.clear()
        import wave  # noqa: F401 - an import looks through all of sys.path

    assert touches(body, ignore=folder / "journal") == []


def test_data_that_a_package_of_the_persons_own_brings_along_is_an_input_and_its_code_is_none(folder, monkeypatch):
    import pkgutil

    package = folder / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "table.csv").write_text("1")
    monkeypatch.syspath_prepend(str(folder))
    assert touches(lambda: pkgutil.get_data("mine", "table.csv")) == [(str(package / "table.csv"), "read")]


def test_the_folder_that_a_new_thread_of_the_journal_syncs_is_no_input(folder):
    def body():
        thread = threading.Thread(target=sync_folder, args=(str(folder),))
        thread.start()
        thread.join()

    assert touches(body) == []


def test_what_happens_while_nobody_watches_is_not_noted(folder):
    world = World()
    world.open()
    world.close()
    open("a.txt", "w").close()
    assert world.close().files == ()


def test_two_watches_at_once_both_see(folder):
    outer = World()
    outer.open()
    assert touches(lambda: open("a.txt", "w").close()) == [("a.txt", "write")]
    assert [touch.path for touch in outer.close().files] == ["a.txt"]


def test_network_is_seen_and_only_network(folder):
    server = socket.create_server(("127.0.0.1", 0))
    assert seen(lambda: socket.create_connection(server.getsockname()).close()).network
    assert seen(lambda: socket.getaddrinfo("localhost", 1)).network
    assert not seen(lambda: [end.close() for end in socket.socketpair()]).network
    assert not seen(lambda: open("a", "w").close()).network
    server.close()


@pytest.mark.parametrize("where", ["joblib/externals/loky/backend/context.py", "loky/backend/context.py"])
def test_a_library_that_asks_how_many_cores_there_are_reaches_nothing(folder, where):
    """``lscpu`` of the first fit; what else the same file starts is a child like any other."""
    text = (
        "import subprocess\ndef _count_physical_cores_linux(): return subprocess.run(['true'])\n"
        "def other(): return subprocess.run(['true'])\n"
    )
    module = {}
    exec(compile(text, f"/site/{where}", "exec"), module)
    assert not seen(module["_count_physical_cores_linux"]).children
    assert seen(module["other"]).children


def test_the_import_of_multiprocessing_starts_no_process(folder, monkeypatch):
    """Its counter of processes was not there before the cell, and says that the first is still to come."""
    import itertools
    import multiprocessing.process as module

    monkeypatch.setattr(module, "_process_counter", itertools.count(1))
    monkeypatch.delitem(sys.modules, "multiprocessing.process")
    assert not seen(lambda: sys.modules.update({"multiprocessing.process": module})).children
    monkeypatch.delitem(sys.modules, "multiprocessing.process")

    def body():
        sys.modules["multiprocessing.process"] = module
        next(module._process_counter)

    assert seen(body).children


def test_the_count_of_cores_of_joblib_itself_is_no_child(folder, monkeypatch):
    context = pytest.importorskip("joblib.externals.loky.backend.context")
    monkeypatch.setattr(context, "physical_cores_cache", None)
    assert not seen(lambda: context.cpu_count(only_physical_cores=True)).children
    assert context.physical_cores_cache is not None, "it was asked"


def a_spawned_child():
    import multiprocessing

    child = multiprocessing.get_context("spawn").Process(target=int)
    child.start()
    child.join()


@pytest.mark.parametrize(
    "body",
    [
        lambda: subprocess.run(["true"], check=True),
        lambda: os.system("true"),
        lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0),
        a_spawned_child,
    ],
    ids=["popen", "system", "posix_spawn", "spawn"],
)
def test_child_processes_are_seen_whoever_starts_them(body):
    assert seen(body).children


def test_a_child_that_native_code_starts_is_seen_by_the_counters_of_the_system():
    """In a process of its own: where older children still run, the counters tell nothing."""
    code = (
        "import ctypes\nfrom keel_notebook.capture.world import World\nworld = World()\n"
        "world.open(); ctypes.CDLL(None).system(b'true'); print(world.close().children)\n"
        "world.open(); print(world.close().children)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "True\nFalse\n"


def test_a_question_what_system_this_is_is_no_child_process():
    import ctypes.util

    assert not seen(lambda: ctypes.util.find_library("no_such_library")).children
    assert not seen(lambda: sum(range(10))).children


def test_a_child_that_the_kernels_own_threads_start_is_none_of_the_cells(folder):
    def start():
        subprocess.run(["true"], check=True)
        open("theirs.txt", "w").close()

    ready, go = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (ready.set(), go.wait(10), start()), name="keel-flush")
    thread.start()
    ready.wait(10)
    found = seen(lambda: (go.set(), thread.join()))
    assert not found.children
    assert found.files == ()


def test_a_forked_child_notes_nothing(folder):
    def body():
        child = os.fork()
        if not child:
            open("a.txt", "w").close()
            os._exit(0)
        os.waitpid(child, 0)

    found = seen(body)
    assert found.children
    assert found.files == ()


def test_c19_a_thread_that_outlives_the_cell_is_counted_and_an_idle_pool_is_not():
    stop = threading.Event()
    threads = []

    def body():
        threads.append(threading.Thread(target=stop.wait))
        threads[0].start()

    assert seen(body).threads_left == 1
    assert seen(lambda: None).threads_left == 0
    stop.set()
    threads[0].join()
    pool = ThreadPoolExecutor(1)
    assert seen(lambda: pool.submit(int).result()).threads_left == 0
    busy, hold = threading.Event(), threading.Event()
    assert seen(lambda: (pool.submit(lambda: (busy.set(), hold.wait(10))), busy.wait(10))).threads_left == 0  # older
    hold.set()
    pool.shutdown()


def test_a_fault_of_the_watch_never_reaches_the_cell_and_counts_as_done(folder, monkeypatch):
    from keel_notebook.capture import audit

    monkeypatch.setitem(audit.FILES, "open", lambda args: 1 / 0)
    found = seen(lambda: open("a.txt", "w").close())
    assert (folder / "a.txt").exists()
    assert found.unsure
    assert found.network
    assert found.children


def test_the_hook_costs_one_call_while_nobody_watches():
    """In a fresh process, where a hook stays until the end: one call for an event that nobody asked for."""
    measure = (
        "import sys\n"
        "from tests.counted import counted\n"
        "from keel_notebook.capture.world import World\n"
        "world = World(); world.open(); world.close()\n"
        "with counted() as found:\n"
        "    for _ in range(1000): sys.audit('keel.nothing')\n"
        "print(found.total() - found['audit'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", measure], capture_output=True, check=True, env={**os.environ, "PYTHONPATH": ROOT}
    )
    assert int(done.stdout) < 1_010


def test_many_threads_touch_files_at_once(folder):
    def body():
        def work(i):
            for j in range(50):
                open(f"{i}-{j}.txt", "w").close()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))

    assert len(touches(body)) == 400
