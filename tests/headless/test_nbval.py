"""C100: nbval compares what the cells show; what keel says of one run is no part of that (docs/howto.md)."""

import nbformat
import pytest

pytestmark = pytest.mark.kernel

OLD, NEW = "%%keel_step a\nhit('a'); a = 1; print(a)", "%%keel_step a\nhit('a'); a = 2; print(a)"
BELOW = "import sys\nprint(a + 1); print('mine', file=sys.stderr)"


def nbval(job, *plugin, code):
    words = ["pytest", *plugin, "--nbval", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", job.path.name]
    return job.call(*words, code=code, PYTEST_ADDOPTS="")[0]


@pytest.fixture
def executed(job):
    """The notebook as nbconvert saved it in place after its step was edited: with the line of keel that says so."""
    for name in [name for name in job.env if name.startswith("PYTEST")]:
        del job.env[name]
    job.env["JPY_SESSION_NAME"] = str(job.path)
    for step in (OLD, NEW):
        job.write(step, BELOW)
        job.call("nbconvert", "--to", "notebook", "--execute", "--inplace", job.path.name)
    [line] = [out for out in nbformat.read(job.path, as_version=4).cells[2].outputs if out.get("name") == "stderr"]
    assert line.text == "keel: a executes: code changed\n"
    return job


def test_what_keel_said_of_the_run_that_was_saved_is_not_compared(executed):
    nbval(executed, "-p", "keel_notebook.nbval", code=0)
    assert executed.hits == "a a", "the check replayed"
    nbval(executed, "-p", "keel_notebook.nbval", code=0)
    assert "stderr" in nbval(executed, code=1), "that is what the plugin is for"


def test_what_keel_says_in_the_check_is_not_compared_and_another_output_still_is(executed):
    book = nbformat.read(executed.path, as_version=4)
    book.cells[2].source += "  # the same\nn = 3"
    nbformat.write(book, executed.path)
    nbval(executed, "-p", "keel_notebook.nbval", code=0)
    assert executed.hits == "a a a", "an edit that shows the same: it executed, keel said so, nothing else differs"
    for old, new in [("print(a)", "print(a + 7)"), ("mine", "other")]:
        changed = nbformat.read(executed.path, as_version=4)
        for cell in changed.cells:
            cell.source = cell.source.replace(old, new)
        nbformat.write(changed, executed.path)
        nbval(executed, "-p", "keel_notebook.nbval", code=1)
        nbformat.write(book, executed.path)
