"""The kernel dies, is restarted, is given up: what a person sees, and the way back."""

import json

import pytest

from tests.browser.axe import clean

pytestmark = pytest.mark.browser

CELLS = """\
import time
# ---
%%keel_step load
print("load", file=open("hits.txt", "a"))
print("loaded")
rows = [n * n for n in range(1000)]
# ---
total = sum(rows)
# ---
%%keel_step train
print("train", file=open("hits.txt", "a"))
import os
while not os.path.exists("go"):
    time.sleep(0.05)
weights = {"w": total}
# ---
print(weights["w"])
"""


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_killed_in_the_middle_of_a_step_recover_then_continue(notebook, app):
    book = notebook(CELLS, app=app)
    book.event("hello")
    book.start_all()
    book.wait_states(load="recorded", train="running")
    book.kill()
    book.accept_dialog()
    banner = book.banner("died")
    assert "during train" in banner.inner_text()
    book.wait_states(load="saved", train="interrupted")
    book.event("hello", 2)
    book.until("() => document.querySelector('.keel-banner').innerText.includes('memory last seen')")
    assert "1 of 2 steps saved" in banner.inner_text()
    assert "not saved: train" in banner.inner_text()
    banner.locator("[data-keel-action=show]").click()
    book.page.locator("[data-keel-tab=timeline]").click()
    assert "died" in book.page.locator("#keel-body-timeline [data-keel-step=train]").inner_text()
    assert book.page.locator("#keel-body-timeline .keel-death").count() > 0

    (book.folder / "go").touch()
    banner.locator("[data-keel-action=recover]").click()
    book.event("recovered")
    assert book.value("len(rows)") == "1000"
    book.wait_states(load="replayed", train="interrupted")
    assert book.page.locator(".keel-age").first.inner_text().startswith("from ")
    back = book.banner("recovered")
    assert "train runs next" in back.inner_text()
    clean(book.page)
    back.locator("[data-keel-action=continue]").click()
    book.event("continued")
    book.wait_states(load="replayed", train="recorded")
    assert book.value("weights['w']") == "332833500"
    assert book.hits == "load train train"


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_killed_while_idle_run_all_replays_and_marks_the_age(notebook, app):
    book = notebook(CELLS, app=app)
    (book.folder / "go").touch()
    book.event("hello")
    book.run_all()
    book.wait_states(load="recorded", train="recorded")
    book.kill()
    book.accept_dialog()
    book.banner("died")
    book.event("hello", 2)
    book.wait_states(load="saved", train="saved")
    book.idle()
    book.run_all()
    book.wait_states(load="replayed", train="replayed")
    assert book.page.locator(".keel-age").inner_text().startswith("from ")
    assert book.hits == "load train"
    # The mark stands beside the output, and the state in the journal: neither is saved with the notebook.
    book.page.evaluate("() => jupyterapp.shell.currentWidget.context.save()")
    saved = book.path.read_text("utf-8")
    assert "from " not in saved.replace("from keel", "")
    assert "keel" not in json.dumps(json.loads(saved)["metadata"])
    assert all("keel" not in json.dumps(cell["metadata"]) for cell in json.loads(saved)["cells"])


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_restart_that_was_asked_for_has_no_banner(notebook, app):
    book = notebook(CELLS, app=app)
    (book.folder / "go").touch()
    book.event("hello")
    book.run_all()
    book.wait_states(load="recorded", train="recorded")
    book.command("notebook:restart-kernel")
    book.accept_dialog()
    book.event("hello", 2)
    book.wait_states(load="saved", train="saved")
    assert book.page.locator(".keel-banner:visible").count() == 0


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_after_jupyter_gives_up_there_is_still_a_way(notebook, app):
    book = notebook(CELLS, app=app)
    (book.folder / "go").touch()
    book.event("hello")
    book.run_all()
    book.wait_states(load="recorded", train="recorded")
    for death in range(1, 7):
        book.kill()
        if death < 6:
            book.until("count => keelLog.filter(one => one.detail === 'autorestarting').length === count", death)
            if book.page.locator(".jp-Dialog .jp-mod-accept").count():
                book.accept_dialog()
            book.until("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'")
    banner = book.banner("gave-up")
    assert "stopped restarting" in banner.inner_text()
    clean(book.page)
    banner.locator("[data-keel-action=recover]").click()
    book.event("recovered")
    book.wait_states(load="replayed", train="replayed")
    assert book.value("weights['w']") == "332833500"
    assert book.hits == "load train"


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_kernel_that_somebody_else_ended_was_not_given_up_after_deaths(server, notebook, app):
    """As a hub does with kernels that idle: the page learns of it by the status `dead`."""
    book = notebook(CELLS, app=app)
    (book.folder / "go").touch()
    book.event("hello")
    book.run_all()
    book.wait_states(load="recorded", train="recorded")
    server.end_kernels()
    banner = book.banner("gave-up")
    assert "The kernel was ended, and Jupyter does not restart it." in banner.inner_text()
    book.wait_states(load="saved", train="saved")
    banner.locator("[data-keel-action=recover]").click()
    book.event("recovered")
    book.wait_states(load="replayed", train="replayed")
    assert book.hits == "load train"


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_step_that_runs_again_says_what_it_took_last_time(notebook, app):
    wait = "%%keel_step slow\nimport os, time\nbegan = time.time()\nwhile not os.path.exists('go') {}: time.sleep(0.05)"
    book = notebook(wait.format("and time.time() < began + 1.5"), app=app)
    book.event("hello")
    book.run_all()
    book.wait_states(slow="recorded")
    book.edit(0, wait.format(""))
    book.start_all()
    book.wait_states(slow="running")
    pill = book.page.locator(".keel-badge")
    book.until("() => /^0:0\\d\\s*of \\d/.test(document.querySelector('.keel-badge').innerText)")
    assert pill.locator("span").evaluate_all("all => all.filter(one => one.scrollWidth > one.clientWidth).length") == 0
    clean(book.page)
    (book.folder / "go").touch()
    book.wait_states(slow="recorded")


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_the_button_restarts_and_recovers_and_never_races_the_loading_of_keel(notebook, app):
    book = notebook(CELLS, app=app)
    (book.folder / "go").touch()
    book.event("hello")
    book.run_all()
    book.wait_states(load="recorded", train="recorded")
    book.page.locator("[data-command='keel:restart-and-recover']").locator("visible=true").first.click()
    book.accept_dialog()
    book.event("recovered")
    book.wait_states(load="replayed", train="replayed")
    assert book.page.locator(".keel-banner[data-keel-kind=died]:visible").count() == 0
    assert book.value("weights['w']") == "332833500"

    book.kill()
    book.accept_dialog()
    book.command("keel:recover")  # at once: keel is not loaded in the new kernel yet
    book.event("recovered", 2)
    book.wait_states(load="replayed", train="replayed")
    assert book.hits == "load train"


def test_recovers_by_itself_where_a_person_set_it_so(server, notebook):
    server.setting("keel-notebook", "plugin", {"autoRecover": True})
    try:
        book = notebook(CELLS)
        (book.folder / "go").touch()
        book.event("hello")
        book.run_all()
        book.wait_states(load="recorded", train="recorded")
        book.kill()
        book.accept_dialog()
        book.event("recovered")
        book.wait_states(load="replayed", train="replayed")
        assert book.hits == "load train"
    finally:
        server.setting("keel-notebook", "plugin", {})
