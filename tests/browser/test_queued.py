"""Run All pressed at once: keel is there before the first cell, and badges come while the others still wait."""

import pytest

from tests.browser.app import Book

pytestmark = pytest.mark.browser

COUNT = 40
GATED = """%%keel_step s{at}
import os, time
while {at} >= 5 and not os.path.exists("go"): time.sleep(0.05)
x{at} = {at}"""
CELLS = [GATED.format(at=at) for at in range(COUNT)]
FIRST_FIVE = {f"s{at}": "recorded" for at in range(5)}


def ended(book):
    """Every cell ran, none with an error."""
    book.until(
        "count => { const cells = jupyterapp.shell.currentWidget.content.widgets;"
        " return cells.every(one => one.model.executionState === 'idle' && one.model.executionCount)"
        " && cells.every(one => one.model.outputs.length === 0); }"
    )


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_run_all_before_the_kernel_is_there_finds_keel_and_badges_do_not_wait_for_its_end(server, page, app):
    book = Book(server, page, f"at-once-{app}", CELLS, app=app)
    book.show()
    book.until("() => jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel")
    book.start_all()
    book.wait_states(**FIRST_FIVE, s5="running")
    (book.folder / "go").touch()
    ended(book)

    book.kill()
    book.accept_dialog()
    (book.folder / "go").unlink()
    book.edit(5, CELLS[5] + "\nedited = True")
    book.start_all()  # at once: the new kernel does not answer yet
    book.wait_states(**dict.fromkeys(FIRST_FIVE, "replayed"), s5="running")
    (book.folder / "go").touch()
    book.until("() => jupyterapp.shell.currentWidget.content.widgets.every(one => one.model.executionState === 'idle')")
    assert book.value("(x39, edited)") == "(39, True)"
    server.end_kernels()
