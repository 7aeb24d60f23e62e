"""What a person reads while the disk is full: of the step, of the plan, of a kernel that starts on it (E053, K42)."""

import pytest

from tests.crash.shells import FAULTED

pytestmark = pytest.mark.kernel

SHORT = """
import os
class Full:
    real = os.statvfs
    def __call__(self, path):
        seen = list(self.real(path)); seen[4] = 0
        return os.statvfs_result(seen)
os.statvfs = Full()
# ---
%%keel_step big
import numpy as np; big = np.arange(300_000.0)
# ---
%%keel_step after
z = 1
"""


def test_a_step_that_a_full_disk_left_without_a_record_runs_no_more_and_is_told_once(notebook):
    book = notebook(SHORT)
    _, big, after = book.run_all()[-3:]
    assert big.stderr == "keel: big: not recorded: the disk is full (KEEL-E053)\n"
    assert after.stderr == ""
    row = book.table()["big"]
    assert row["state"] == "interrupted"
    assert row["why"] == "not recorded: the disk is full (KEEL-E053)"
    planned = book.execute("%keel plan").text
    line = next(line for line in planned.splitlines() if " big " in line)
    assert "executes" in line
    assert "it runs now, or ran and could not be recorded" in line
    assert "went away" not in planned
    book.execute("os.statvfs = os.statvfs.real")
    book.run(1)
    assert book.table()["big"]["state"] == "recorded"


@pytest.mark.crash
def test_a_kernel_that_starts_on_a_full_disk_does_not_show_the_run_of_a_dead_one_as_its_own(tmp_path, warm_process):
    cells = ["%load_ext keel_notebook", "# keel: step a\nx = 1", "print(get_ipython().run_line_magic('keel', ''))"]
    warm_process.run(tmp_path, cells)
    full = warm_process.run(tmp_path, cells, fault=(1, "ENOSPC", True, ("write", "pwrite", "posix_fallocate", "mkdir")))
    assert (tmp_path / FAULTED).exists()
    said = "".join(cell["err"] for cell in full.acknowledged)
    assert said.count("KEEL-E053: nothing can be recorded now: the disk is full") == 1
    assert "running cell" not in said
    head, _, row = full.printed[-1].splitlines()[:3]
    assert "this kernel records nothing" in head
    assert "pid" not in head
    assert row.split()[:3] == ["a", "replayed", "replayed"]
