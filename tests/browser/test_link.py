"""Between the notebook and its kernel: no keel, no subshells, no kernel."""

import json

import pytest

from tests.browser.app import Book
from tests.browser.axe import clean
from tests.browser.test_first import CELLS
from tests.support.notebook import Notebook

pytestmark = pytest.mark.browser

WAITS = """\
%%keel_step load
rows = [1, 2, 3]
# ---
%%keel_step slow
import os, time
while not os.path.exists("go"): time.sleep(0.05)
# ---
%%keel_step fit
total = sum(rows)
"""


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_kernel_without_keel_says_what_to_type(server, page, app):
    server.kernelspec("without keel", "import sys; sys.modules['keel_notebook'] = None")
    book = Book(server, page, f"without-{app}", CELLS, kernel="without keel", app=app).open()
    book.event("missing")
    book.command("keel:show-lineage")
    book.until(
        "() => document.querySelector('#keel-panel .keel-headline').innerText.includes('%pip install keel-notebook')"
    )
    assert book.states() == {}
    assert book.page.locator("#keel-panel").inner_text().count("%pip install") == 1
    book.command("keel:recover")
    page.locator(".keel-banner").get_by_text("%pip install keel-notebook").wait_for()
    clean(page)
    server.end_kernels()


NO_SUBSHELLS = "import ipykernel.kernelbase as base; base.Kernel._supports_kernel_subshells = False"
"""As older kernels are. JupyterLab has a setting for the same; Notebook 7 does not read it."""


@pytest.mark.parametrize(("app", "off"), [("lab", "setting"), ("lab", "kernel"), ("notebook", "kernel")])
def test_with_subshells_off_it_waits_for_the_cell_and_then_tells(server, notebook, app, off):
    server.kernelspec("no subshells", NO_SUBSHELLS)
    if off == "setting":
        server.setting("@jupyterlab/apputils-extension", "kernels-settings", {"commsOverSubshells": "disabled"})
    try:
        book = notebook(WAITS, app=app, kernel="no subshells" if off == "kernel" else "python3")
        book.event("hello")
        book.command("keel:show-lineage")
        book.start_all()
        book.wait_states(slow="running")
        book.page.locator("#keel-panel [role=row][data-keel-step=slow]").click()
        book.page.locator("#keel-panel .keel-below").get_by_text("Waiting for the kernel: it is busy").wait_for()
        (book.folder / "go").touch()
        book.wait_states(load="recorded", slow="recorded", fit="recorded")
        book.page.locator("#keel-panel .keel-details").wait_for()
        book.kill()
        book.accept_dialog()
        book.event("hello", 2)
        book.wait_states(load="saved", slow="saved", fit="saved")
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
    book.wait_states(load="stale")  # nothing brings it back: it must not look saved
    clean(page)
    banner.locator("[data-keel-action=trust]").click()
    book.until("() => document.querySelector('.keel-banner').innerText.includes('trusted: from now on')")
    book.run_all()
    book.wait_states(load="replayed")
    assert book.hits == "load"
    assert "already loaded" not in page.locator(".jp-Notebook").inner_text(), "of the notebook's own %load_ext"
    server.end_kernels()


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_kernel_that_was_shut_down_leaves_what_is_saved_and_nothing_in_memory(notebook, app):
    book = notebook(CELLS, app=app)
    book.event("hello")
    book.run_all()
    book.wait_states(load="recorded", fit="recorded")
    book.command("keel:show-lineage")
    book.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    book.wait_states(load="saved", fit="saved")
    panel = book.page.locator("#keel-panel")
    panel.get_by_text("No kernel: start one").first.wait_for()
    assert panel.locator("[role=gridcell].keel-current").all_inner_texts() == ["—", "—"]
    panel.locator("[role=row][data-keel-step=load]").click()
    panel.locator(".keel-below").get_by_text("No kernel").wait_for()
    clean(book.page)
    assert book.page.locator(".keel-banner:visible").count() == 0, "a person asked for it"
    book.command("keel:recover")
    book.event("recovered")
    book.wait_states(load="replayed", fit="replayed")


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_notebook_without_any_kernel_shows_the_recorded_side_that_it_holds(server, page, notebook, app):
    book = notebook(CELLS + "# ---\n%keel lineage\n", app=app)
    book.event("hello")
    book.run_all()
    page.locator(".jp-OutputArea .keel-lineage [role=row][data-keel-step=load]").wait_for()
    page.evaluate("() => jupyterapp.shell.currentWidget.context.save()")
    server.end_kernels()
    held = json.loads(book.path.read_text("utf-8"))
    held["metadata"]["kernelspec"] = {"name": "nowhere", "display_name": "Nowhere", "language": "python"}
    book.path.write_text(json.dumps(held), "utf-8")
    where = f"lab/tree/{book.folder.name}/a.ipynb?reset" if app == "lab" else f"notebooks/{book.folder.name}/a.ipynb"
    page.goto(f"{server.url}/{where}", wait_until="domcontentloaded")
    page.locator(".jp-Dialog select").select_option("null")
    book.accept_dialog()
    book.command("keel:show-lineage")
    page.locator("#keel-panel [role=row][data-keel-step=load]").wait_for()
    page.locator("#keel-panel .keel-reason").get_by_text("No kernel").wait_for()
    assert page.locator("#keel-panel [role=gridcell].keel-current").all_inner_texts() == ["—", "—"]


BUSY = (
    CELLS
    + """\
# ---
import ctypes
print("it has begun", flush=True)
ctypes.PyDLL(None).system(b"while [ ! -e go ]; do sleep 0.05; done")
"""
)


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_kernel_that_is_busy_in_native_code_is_waited_for_and_that_is_said(notebook, app):
    """One call that never lets go of the interpreter: no thread of the kernel can answer, subshell or not."""
    book = notebook(BUSY, app=app)
    book.event("hello")
    for at in range(3):
        book.page.evaluate("at => { jupyterapp.shell.currentWidget.content.activeCellIndex = at; }", at)
        book.command("notebook:run-cell")
    book.wait_states(load="recorded", fit="recorded")
    book.command("keel:show-lineage")
    book.page.locator("#keel-panel [role=row][data-keel-step=load]").wait_for()
    book.page.evaluate("() => { jupyterapp.shell.currentWidget.content.activeCellIndex = 3; }")
    book.command("notebook:run-cell")
    book.page.locator(".jp-OutputArea-output").get_by_text("it has begun").wait_for()
    book.page.locator("#keel-panel [role=row][data-keel-step=load]").click()
    book.page.locator("#keel-panel .keel-below").get_by_text("Waiting for the kernel: it is busy").wait_for()
    clean(book.page)
    book.page.locator("[data-keel-tab=timeline]").click()
    book.page.locator("#keel-body-timeline").get_by_text("Waiting for the kernel: it is busy").wait_for()
    book.page.locator("[data-keel-tab=steps]").click()
    (book.folder / "go").touch()
    book.page.locator("#keel-panel .keel-details").wait_for()
    book.page.locator("[data-keel-tab=timeline]").click()
    book.page.locator("#keel-body-timeline [data-keel-step=load]").wait_for()


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_notebook_without_steps_is_told_how_to_get_one(notebook, app):
    book = notebook("x = 1", app=app)
    book.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    book.command("keel:show-lineage")
    panel = book.page.locator("#keel-panel")
    panel.get_by_text("This notebook has no steps yet.").wait_for()
    panel.get_by_role("button", name="Copy").click()
    panel.get_by_text("Copied").wait_for()
    clean(book.page)
    assert book.page.evaluate("() => navigator.clipboard.readText()").startswith("%%keel_step load\n")
