"""A kernel that goes away in the middle of a file that a step rewrites (DESIGN 5 and 6, Files)."""

import pytest

from tests.cases.test_files import HIT, Book, step

pytestmark = pytest.mark.crash
SHOW = "print(open('a.txt').read())"

HALF = "v = open('a.txt').read(); open('a.txt', 'w').write(v[:1]); END; open('a.txt', 'w').write(v + '!')"


@pytest.mark.parametrize("end", ["1 / 0", "os.kill(os.getpid(), 9)"], ids=["failed", "killed"])
def test_a_step_that_ended_in_the_middle_of_a_file_never_reads_its_own_half(warm_process, tmp_path, end):
    body = HALF.replace("END", f"os.path.exists('go') or {end}")
    nb = Book(warm_process, tmp_path, step("make", "v = open('a.txt', 'w').write('123')"), step("grow", body), SHOW)
    run = warm_process.run(tmp_path, ["%load_ext keel_notebook", HIT + "import os", *nb.cells])
    assert run.code != 0
    assert (tmp_path / "a.txt").read_text() == "1"
    (tmp_path / "go").touch()
    assert nb.run() == ["make", "grow"]
    assert nb.out[-1] == "123!\n"
    assert nb.run() == []
    assert nb.out[-1] == "123!\n"
