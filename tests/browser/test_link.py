"""Between the notebook and its kernel: no keel, no subshells, no kernel."""

import json
import sys

import pytest

from tests.browser.app import Book
from tests.browser.test_first import CELLS
from tests.support.notebook import Notebook

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_kernel_without_keel_says_what_to_type(server, page, app):
    spec = server.home / "data" / "kernels" / "without"
    spec.mkdir(parents=True, exist_ok=True)
    start = "import sys; sys.modules['keel_notebook'] = None; from ipykernel import kernelapp as app"
    start += "; app.launch_new_instance()"
    argv = [sys.executable, "-c", start, "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "without keel", "language": "python"}))
    book = Book(server, page, f"without-{app}", CELLS, kernel="without", app=app).open()
    book.event("missing")
    book.command("keel:show-lineage")
    book.until(
        "() => document.querySelector('#keel-panel .keel-headline').innerText.includes('%pip install keel-notebook')"
    )
    assert book.states() == {}
    server.end_kernels()


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_with_subshells_off_it_waits_for_the_cell_and_then_tells(server, notebook, app):
    server.setting("@jupyterlab/apputils-extension", "kernels-settings", {"commsOverSubshells": "disabled"})
    try:
        book = notebook(CELLS, app=app)
        book.event("hello")
        book.run_all()
        book.wait_states(load="recorded", fit="recorded")
        book.kill()
        book.accept_dialog()
        book.event("hello", 2)
        book.wait_states(load="saved", fit="saved")
    finally:
        server.setting("@jupyterlab/apputils-extension", "kernels-settings", {})


def test_a_notebook_that_does_not_use_keel_is_left_alone(notebook):
    book = notebook("x = 1\n# ---\nx + 1")
    book.run_all()
    book.until("() => keelLog.some(one => one.event === 'active')")
    assert book.value("'keel_notebook' in __import__('sys').modules") == "False"
    assert not any(one["event"] == "hello" for one in book.page.evaluate("() => keelLog"))


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_reopened_without_its_kernel_the_lineage_is_still_there(server, page, notebook, app):
    book = notebook(CELLS + "# ---\n%keel lineage\n", app=app)
    book.event("hello")
    book.run_all()
    row = page.locator(".jp-OutputArea .keel-lineage [role=row][data-keel-step=load]")
    row.wait_for()
    page.evaluate("() => jupyterapp.shell.currentWidget.context.save()")
    server.end_kernels()
    saved = json.loads(book.path.read_text("utf-8"))
    assert "332833500" not in json.dumps(saved["cells"][-1]), "no payload is saved with the notebook"
    book.open()
    row.wait_for()
    page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    row.click()
    page.locator(".jp-OutputArea .keel-below").get_by_text("No kernel answers").wait_for()


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_records_of_somebody_else_wait_for_trust(server, page, tmp_path, app):
    folder = server.root / f"foreign-{app}"
    folder.mkdir()
    cells = ["%%keel_step load\nprint('load', file=open('hits.txt', 'a'))\nrows = [1, 2, 3]", "print(len(rows))"]
    theirs = Notebook(folder, cells, env={"XDG_CONFIG_HOME": str(tmp_path / "theirs")})
    assert all(shown.status == "ok" for shown in theirs.run_all())
    theirs.shutdown()
    book = Book(server, page, f"foreign-{app}", [*theirs.cells], app=app).open()
    banner = book.banner("untrusted")
    assert "not written with your key" in banner.inner_text()
    banner.locator("[data-keel-action=trust]").click()
    book.until("() => document.querySelector('.keel-banner').innerText.includes('trusted: from now on')")
    book.run_all()
    book.wait_states(load="replayed")
    assert book.hits == "load"
    assert "already loaded" not in page.locator(".jp-Notebook").inner_text(), "of the notebook's own %load_ext"
    server.end_kernels()
