"""What files hold, and what the system tells of them: never blocked, never fooled by a clock (DESIGN 6, Files)."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keel_notebook.capture import files as files_module
from keel_notebook.capture.files import Files
from keel_notebook.capture.filewatch import FileWatch
from keel_notebook.capture.mentions import Mentions, texts_in
from keel_notebook.capture.opens import Opens
from keel_notebook.capture.places import Places
from keel_notebook.capture.world import FileTouch, WorldSeen
from keel_notebook.core.fileholds import ABSENT
from keel_notebook.core.filetexts import texts_of_source

LATER = 10_000_000_000


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def files(folder):
    """As seen some seconds after everything was written: stamps have settled."""
    return Files(root=folder, salt=b"s" * 32, now_ns=lambda: time.time_ns() + LATER)


def test_a_file_whose_stamp_is_the_recorded_one_is_not_read_again(folder, files, monkeypatch):
    (folder / "a.bin").write_bytes(b"x" * 1000)
    recorded = files.seen("a.bin", "read")
    assert recorded.stamp
    fresh = Files(root=folder, salt=b"s" * 32, now_ns=time.time_ns)
    monkeypatch.setattr(files_module, "_pieces", None)
    assert fresh.now(recorded) == recorded.digest


def test_a_file_that_was_copied_or_touched_is_known_by_its_content(folder, files):
    (folder / "a.bin").write_bytes(b"x" * 1000)
    recorded = files.seen("a.bin", "read")
    (folder / "b.bin").write_bytes(b"x" * 1000)
    os.replace(folder / "b.bin", folder / "a.bin")
    assert files.now(recorded) == recorded.digest
    (folder / "a.bin").write_bytes(b"y" * 1000)
    assert files.now(recorded) not in (recorded.digest, None)


def test_two_contents_within_one_tick_of_the_clock_are_told_apart(folder):
    """A stamp that is too young vouches for nothing: the file may be written again within the same tick."""
    now = Files(root=folder, salt=b"s" * 32, now_ns=time.time_ns)
    (folder / "a").write_bytes(b"1")
    stamp = os.stat("a")
    recorded = now.seen("a", "read")
    assert recorded.stamp == ()
    with open("a", "r+b") as file:
        file.write(b"2")
    os.utime("a", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert now.now(recorded) != recorded.digest


def test_a_pipe_and_a_device_are_never_read_and_never_equal(folder, files):
    os.mkfifo(folder / "pipe")
    assert files.seen("pipe", "read").digest is None
    assert files.seen("/dev/zero", "read").digest is None
    assert files.seen("/dev/zero", "uses").digest is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_unknown(folder, files):
    (folder / "secret").write_text("1")
    (folder / "secret").chmod(0)
    assert files.seen("secret", "read").digest is None


def test_a_huge_file_is_sampled_and_said_to_be(folder, files):
    with open("huge.bin", "wb") as file:
        file.truncate(300 << 30)  # sparse: it takes no space, and reading it whole would take minutes
    seen = files.seen("huge.bin", "read")
    assert seen.weak
    with open("huge.bin", "r+b") as file:
        file.truncate((300 << 30) + 1)
    assert files.now(seen) != seen.digest


def test_a_folder_and_a_pattern_hold_what_their_files_hold(folder, files):
    (folder / "d/sub").mkdir(parents=True)
    (folder / "d/sub/a.txt").write_text("1")
    kept = [files.seen("d", "uses"), files.seen("d/**/*.txt", "uses"), files.seen("d", "makes")]
    assert [files.now(each) for each in kept] == [each.digest for each in kept]
    (folder / "d/sub/a.txt").write_text("2")
    assert all(files.now(each) != each.digest for each in kept)


def test_a_link_is_what_it_points_to_and_a_circle_is_unknown(folder, files):
    (folder / "a").write_text("1")
    (folder / "b").write_text("2")
    os.symlink("a", "link")
    recorded = files.seen("link", "read")
    os.remove("link")
    os.symlink("b", "link")
    assert files.now(recorded) == files.seen("b", "read").digest
    os.remove("link")
    os.symlink("link", "link")
    assert files.seen("link", "read").digest is None


def test_a_path_is_kept_relative_to_the_folder_of_the_notebook(folder, files):
    (folder / "sub").mkdir()
    assert files.shown(str(folder / "sub/a")) == "sub/a"
    assert files.shown("sub/../..a") == "..a"
    assert files.shown(str(folder.parent / "x")) == str(folder.parent / "x")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks at /proc")
def test_a_database_that_is_held_open_keeps_its_lock(folder, files):
    """Opening and closing a file drops all locks that this process has on it: another program would write to it."""
    with open("base.db", "w+b") as base:
        base.write(b"\0" * 4096)
        base.flush()
        fcntl.lockf(base, fcntl.LOCK_EX)
        held = files.seen("base.db", "read")
        code = "import fcntl; fcntl.lockf(open('base.db', 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert b"BlockingIOError" in other.stderr
    (folder / "copy").write_bytes(b"\0" * 4096)
    assert held.digest == files.seen("copy", "read").digest


def test_what_a_database_has_not_taken_in_yet_counts_with_it(folder, files):
    (folder / "base.db").write_bytes(b"\0" * 512)
    alone = files.seen("base.db", "read")
    (folder / "base.db-wal").write_bytes(b"1")
    assert files.now(alone) != alone.digest


# ---- what the system tells ---------------------------------------------------------------------------------


@pytest.fixture
def opens():
    made = Opens.make()
    if made is None:
        pytest.skip("the system does not tell")
    yield made
    made.close()


def test_opens_and_writes_of_a_child_are_told(folder, opens):
    (folder / "sub").mkdir()
    (folder / "sub/a").write_text("1")
    opens.add_tree(str(folder))
    subprocess.run(["cp", "sub/a", "b"], check=True)
    told = opens.take()
    assert told[str(folder / "sub/a")].opened
    assert told[str(folder / "sub/a")].read_first
    assert not told[str(folder / "sub/a")].written
    assert told[str(folder / "b")].written
    assert not told[str(folder / "b")].read_first


def test_a_folder_made_later_is_watched_from_then_on(folder, opens):
    opens.add_tree(str(folder))
    (folder / "new").mkdir()
    opens.take()
    (folder / "new/a").write_text("1")
    assert opens.take()[str(folder / "new/a")].written
    (folder / "new/a").unlink()
    (folder / "new").rmdir()
    opens.take()
    assert not opens.watches(str(folder / "new"))


def test_hidden_and_installed_folders_are_not_watched_and_there_is_an_end_to_it(folder, opens):
    for name in (".git", "node_modules", "a/.b", "a/site-packages"):
        (folder / name).mkdir(parents=True)
    for number in range(500):
        (folder / "many" / str(number)).mkdir(parents=True)
    opens.add_tree(str(folder))
    assert opens.watches(str(folder / "a"))
    assert not any(opens.watches(str(folder / name)) for name in (".git", "node_modules", "a/.b", "a/site-packages"))
    assert sum(opens.watches(str(folder / "many" / str(number))) for number in range(500)) < 400


def test_where_the_system_lost_count_it_says_so(folder, opens, monkeypatch):
    opens.add(str(folder))
    monkeypatch.setattr(opens, "_events", lambda: iter([(-1, 0x4000, "")]))
    assert opens.take() is None


# ---- what code and values name -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("f('a.csv')", "a.csv"),
        ("f(b'a.csv')", "a.csv"),
        ("duckdb.sql(\"select * from 'data/a.csv' where x\")", "data/a.csv"),
        ("duckdb.sql('''select * from read_csv(\"a b.csv\")''')", "a b.csv"),
        ("os.system('wc -l data/a.csv > out.txt')", "data/a.csv"),
        ("f(f'{y}/a_{m}.csv')", "*/a_*.csv"),
        ("x = {'k': ['deep/a.csv']}", "deep/a.csv"),
        ("def g():\n  def h(): return open('in.txt')", "in.txt"),
    ],
)
def test_texts_of_code_that_may_be_paths(code, named):
    assert named in texts_of_source(code).texts


@pytest.mark.parametrize("code", ["f('https://h.org/a.csv')", "def g():\n  'see a.csv'\n  return 1", "f('')"])
def test_texts_that_are_none(code):
    assert not any("a.csv" in text for text in texts_of_source(code).texts)


def test_what_is_written_is_told_from_what_is_read():
    found = texts_of_source("d = pd.read_parquet('in.parquet'); d.to_parquet('out.parquet')")
    assert found.written == {"out.parquet"}
    assert "in.parquet" in found.others
    assert "out.parquet" not in found.others
    assert texts_of_source("duckdb.sql(\"copy t to 'o.parquet'\")").written == {"o.parquet"}
    assert texts_of_source("d.to_parquet(path)").writes
    assert not texts_of_source("d.a.to_list()").writes


def test_texts_in_values():
    class Config:
        def __init__(self):
            self.path = Path("a.csv")

    value = {"k": [Config(), ("b.csv", {"c.csv"})], "n": list(range(10_000))}
    assert {"a.csv", "b.csv", "c.csv"} <= set(texts_in(value, is_persons=lambda kind: kind is Config))
    ring = []
    ring.append(ring)
    assert list(texts_in(ring, is_persons=lambda kind: False)) == []


def test_a_lazy_frame_names_its_files(folder):
    polars = pytest.importorskip("polars")
    polars.DataFrame({"a": [1]}).write_parquet("lazy.parquet")
    lazy = polars.scan_parquet("lazy.parquet")
    assert any("lazy.parquet" in text for text in texts_in({"q": lazy}, is_persons=lambda kind: False))


# ---- together ----------------------------------------------------------------------------------------------


def seen_of(watch, code, *touches, body=lambda: None, **values):
    texts = texts_of_source(code)
    before = watch.before(Mentions(texts, dict.fromkeys(texts.texts, texts.asks)))
    body()
    found = watch.after(before, WorldSeen(False, values.get("children", False), tuple(touches), 0))
    return {(seen.path, seen.role) for seen in found}


@pytest.fixture
def watch(folder, files):
    made = FileWatch(files, opens=Opens.make(), ignore=str(folder / "journal"))
    yield made
    made.close()


def test_a_changed_working_directory_changes_what_a_relative_path_names(folder, files):
    blind = FileWatch(files, opens=None, ignore="/nowhere")
    (folder / "sub").mkdir()
    (folder / "sub/a.csv").write_text("1")
    (folder / "a.csv").write_text("2")
    assert seen_of(blind, "f('a.csv')") == {("a.csv", "read")}
    os.chdir("sub")
    assert seen_of(blind, "f('a.csv')") == {("sub/a.csv", "read")}


def test_what_another_program_opens_counts_only_where_this_process_reads_natively(folder, watch, monkeypatch):
    (folder / "other.csv").write_text("1")
    (folder / "mod.py").write_text("1")
    (folder / "a.ipynb").write_text("1")

    def cat():
        subprocess.run(["cat", "other.csv", "mod.py", "a.ipynb"], check=True, capture_output=True)

    monkeypatch.setattr("keel_notebook.capture.filewatch._NATIVE", frozenset())
    assert seen_of(watch, "1", body=cat) == set()
    assert seen_of(watch, "1", body=cat, children=True) == {("other.csv", "read"), ("mod.py", "read")}


def test_the_journal_and_python_are_nobodys_files(folder, watch):
    for name in ("journal/x", ".keel/x", "__pycache__/x"):
        (folder / name).parent.mkdir()
        (folder / name).write_text("1")
    code = "f('journal/x', '.keel/x', '__pycache__/x', '/etc/hostname', '/proc/self/stat')"
    assert seen_of(watch, code, body=lambda: subprocess.run(["cat", "journal/x"], check=True), children=True) == set()


def test_a_file_that_another_program_changes_while_the_step_runs_is_unsure(folder, files):
    blind = FileWatch(files, opens=None, ignore="/nowhere")
    (folder / "a.csv").write_text("1")
    touch = FileTouch("a.csv", "read", str(folder), files_module.stamp_in("a.csv")[0])
    before = blind.before(Mentions())
    (folder / "a.csv").write_text("22")
    (found,) = blind.after(before, WorldSeen(False, False, (touch,), 0))
    assert (found.path, found.role, found.digest) == ("a.csv", "read", None)


def test_places(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    places = Places("/home/me/nb")
    assert places.is_cache("/home/me/.cache/fonts.json")
    assert places.is_cache("/home/me/scikit_learn_data/x.pkz")
    assert not places.is_cache("/home/me/data/x.csv")
    assert not places.is_cache("/home/me/.bashrc")
    assert places.is_temporary("/tmp/x")
    assert places.is_home("/home/me/nb/x")
    assert not Places("/tmp/run/nb").is_temporary("/tmp/run/nb/x"), (
        "a notebook in a temporary folder is work all the same"
    )
    assert not Places("/home/me/.dot/nb").is_cache("/home/me/.dot/nb/x")


def test_an_absent_file_is_a_known_state(files):
    assert files.seen("nothing.csv", "read").digest == ABSENT
