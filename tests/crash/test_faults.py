"""Disks that refuse, take half or forget, at every call: the cell's result comes, no record is lost in silence (K41,
K42, C82, C85). The calls are refused in forked shells, around the real files; ``KEEL_SOAK`` tries every single one.
"""

import itertools
import os
import shutil

import pytest

from keel_notebook.journal import spawn, troubles
from tests.crash.shells import FAULTED, Zygote
from tests.crash.test_effect_kills import cells as guarded_cells
from tests.crash.test_kills import CELLS, TRUTH, hits

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800)]

WRITES = ("write", "pwrite", "rename", "replace", "link", "ftruncate", "posix_fallocate", "mkdir", "unlink", "fsync")
WRITES += ("fdatasync",)
READS = ("open", "read", "pread", "preadv", "stat", "listdir", "scandir", "fstat", "access")
EVERY = 1 if os.environ.get("KEEL_SOAK") else 11


@pytest.fixture(scope="module")
def zygote():
    process = Zygote()
    yield process
    process.close()


@pytest.fixture(scope="module")
def recorded(zygote, tmp_path_factory):
    """A folder in which everything ran once, before and after an ingest."""
    folders = {}
    for where in ("inbox", "record file"):
        folders[where] = tmp_path_factory.mktemp("recorded")
        assert zygote.run(folders[where], CELLS).code == 0
    spawn.ingest_now(folders["record file"] / ".keel")
    return folders


def told(run):
    return "".join(cell["err"] for cell in run.acknowledged)


def faults(tmp_path, begin):
    """Folders, each with the number of the call that goes wrong in it, until no call is left to go wrong."""
    for number in itertools.count(begin, EVERY):
        folder = tmp_path / str(number)
        yield number, folder
        if not (folder / FAULTED).exists():
            assert number > 20, "the wrapper saw the calls"
            return


@pytest.mark.parametrize(
    ("error", "lasting"),
    [("EIO", False), ("EIO", True), ("torn", False), ("torn", True), ("ENOSPC", True), ("short", True)],
)
def test_k42_c85_a_write_that_fails_never_takes_the_result_and_never_loses_a_step_in_silence(
    zygote, tmp_path, error, lasting
):
    for number, folder in faults(tmp_path, begin=1 + len(error) % EVERY):
        folder.mkdir()
        first = zygote.run(folder, CELLS, fault=(number, error, lasting, WRITES))
        assert (first.code, first.printed) == (0, TRUTH), f"{error} at write {number}: {first.error}"
        before = hits(folder)
        second = zygote.run(folder, CELLS)
        assert (second.code, second.printed) == (0, TRUTH), f"after {error} at write {number}"
        again = hits(folder)[len(before) :]
        assert not again or "KEEL-E05" in told(first), f"{again} at write {number}, and nobody was told"
        assert error != "short" or not told(first) + "".join(again), "half a write is no error: the rest is written"


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("where", ["inbox", "record file"])
def test_k41_a_read_that_fails_is_never_taken_for_an_empty_journal(zygote, tmp_path, recorded, where, lasting):
    for number, folder in faults(tmp_path, begin=1):
        shutil.copytree(recorded[where], folder)
        before = hits(folder)
        first = zygote.run(folder, CELLS, fault=(number, "EIO", lasting, READS))
        assert (first.code, first.printed) == (0, TRUTH), f"EIO at read {number}: {first.error}"
        since = hits(folder)
        assert since == before or "KEEL-E05" in told(first), f"executed at read {number}, and nobody was told"
        second = zygote.run(folder, CELLS)
        assert (second.code, second.printed) == (0, TRUTH)
        assert hits(folder) == since, f"a record was lost by EIO at read {number}"


@pytest.mark.parametrize("error", ["EIO", "torn"])
def test_k42_z21_a_guarded_step_never_happens_twice_whatever_write_fails(zygote, tmp_path, error):
    ends = set()
    for number, folder in faults(tmp_path, begin=1):
        folder.mkdir()
        first = zygote.run(folder, guarded_cells(), fault=(number, error, True, WRITES))
        paid = len(hits(folder))
        assert paid == 1 or first.code, f"it did not run at write {number}, and nobody was told"
        second = zygote.run(folder, guarded_cells())
        assert len(hits(folder)) == (1 if second.code == 0 else paid), f"{error} at write {number}"
        ends.add((first.code, second.code, paid))
    assert len(ends) >= 2, "it was refused before, and recorded after"


def test_k42_auto_mode_that_cannot_be_remembered_holds_in_its_kernel(zygote, tmp_path):
    (tmp_path / "first").mkdir()
    zygote.run(tmp_path / "first", CELLS)
    cells = [*CELLS[:2], "%keel auto on --min-seconds 0", "%keel", CELLS[2], "z = 1", "print(a, z)"]
    run = zygote.run(tmp_path / "first", cells, fault=(1, "ENOSPC", True, ("replace", "rename")))
    assert run.error == ""
    assert "auto mode is not remembered: KEEL-E053" in told(run)
    assert run.printed[-1] == "[0, 1, 2, 3, 4] 1\n"


def flipped(raw, at):
    return raw[:at] + bytes([raw[at] ^ 0x11]) + raw[at + 1 :]


def damages(path):
    """Each damage of a file: its name, and what the file holds then (None: the file is gone)."""
    raw = path.read_bytes()
    blocks = 64 if os.environ.get("KEEL_SOAK") else 1
    for at in range(0, len(raw), max(1, len(raw) // blocks)):
        yield f"a bit at {at}", flipped(raw, at)
    yield "cut in half", raw[: len(raw) // 2]
    yield "zeros", bytes(len(raw))
    if path.parent.name not in {"flows", "inbox"}:  # without its name a notebook is a new one; a run that is not there
        yield "gone", None


@pytest.mark.parametrize("where", ["inbox", "record file"])
def test_c82_whatever_file_is_damaged_nothing_wrong_is_replayed_and_what_is_lost_is_told(
    zygote, tmp_path, recorded, where
):
    origin = recorded[where]
    for path in sorted(file for file in (origin / ".keel").rglob("*") if file.is_file()):
        for damage, content in damages(path):
            folder = tmp_path / "damaged"
            shutil.copytree(origin, folder)
            place = folder / path.relative_to(origin)
            place.unlink() if content is None else place.write_bytes(content)
            what = f"{path.relative_to(origin)}: {damage}"
            before = hits(folder)
            first = zygote.run(folder, CELLS)
            assert (first.code, first.printed) == (0, TRUTH), f"{what}: {first.error}"
            since = hits(folder)
            assert since == before or told(first) or troubles(folder / ".keel"), f"{what}: executed, nobody was told"
            if path.parent.name in {"flows", "heads"} or path.name == "journal.duckdb":
                assert since == before, f"{what}: its content is elsewhere, too"
            second = zygote.run(folder, CELLS)
            assert (second.code, second.printed, hits(folder)) == (0, TRUTH, since), f"{what}: not mended"
            shutil.rmtree(folder)
