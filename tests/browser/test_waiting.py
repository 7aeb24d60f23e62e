"""Promises answered in the panel while their cell waits; lanes; who else holds the notebook; what is not safe yet."""

import re
import threading

import pytest

from tests.browser.app import Book
from tests.browser.axe import clean
from tests.support.notebook import Notebook

pytestmark = pytest.mark.browser

APPS = pytest.mark.parametrize("app", ["lab", "notebook"])

ASK = """\
import keel_notebook as keel
# ---
%%keel_step ask
print("ask", file=open("hits.txt", "a"))
p = keel.promise("deploy")
if p.token: open("token", "w").write(p.token)
answer = p.result()
"""


@APPS
def test_a_promise_is_approved_while_its_cell_waits(notebook, app):
    book = notebook(ASK, app=app)
    book.event("hello")
    book.start_all()
    book.wait_states(ask="waiting")
    book.command("keel:approve")
    item = book.page.locator("#keel-body-waiting [data-keel-wait=deploy]")
    clean(book.page)
    item.locator("[data-keel-action=approve]").click()
    clean(book.page)
    assert "Answer deploy with true?" in item.inner_text()
    item.locator("[data-keel-action=confirm]").click()
    book.wait_states(ask="recorded")
    assert book.value("answer") == "True"
    book.page.locator(".keel-answered").get_by_text("by the owner").wait_for()
    assert (book.folder / "token").read_text() not in book.page.content(), "the token is never in the page"


@APPS
def test_a_promise_of_a_dead_kernel_is_rejected_with_a_reason_and_the_cell_goes_on_with_it(notebook, app):
    book = notebook(ASK, app=app)
    book.event("hello")
    book.start_all()
    book.wait_states(ask="waiting")
    book.kill()
    book.accept_dialog()
    book.event("hello", 2)
    book.command("keel:approve")
    item = book.page.locator("#keel-body-waiting [data-keel-wait=deploy]")
    item.locator(".keel-answer").fill("not json")
    item.locator("[data-keel-action=reject]").click()
    item.get_by_text("needs its quotes").wait_for()
    item.locator(".keel-answer").fill('"too dear"')
    item.locator("[data-keel-action=reject]").click()
    item.locator("[data-keel-action=confirm]").click()
    book.page.locator(".keel-answered").get_by_text("deploy (ask)").wait_for()
    book.idle()
    book.run_all()
    book.wait_states(ask="recorded")
    assert book.value("answer") == "'too dear'"
    assert book.hits == "ask ask"


@APPS
def test_a_branch_from_the_panel_and_back_to_the_lane_before(notebook, app):
    book = notebook('%%keel_step fit\nprint("fit", file=open("hits.txt", "a"))\nm = 1', app=app)
    book.event("hello")
    book.run_all()
    book.wait_states(fit="recorded")
    book.page.get_by_role("button", name="Step fit: recorded").click()
    book.page.locator("#keel-panel [data-keel-action=branch]").click()
    lanes = book.page.locator("#keel-panel .keel-lane-picker")
    lanes.wait_for()
    assert lanes.input_value() == "lane-2"
    book.edit(0, '%%keel_step fit\nprint("fit2", file=open("hits.txt", "a"))\nm = 2')
    book.run_all()
    book.wait_states(fit="recorded")
    lanes.select_option("main")
    book.page.locator("#keel-panel .keel-said").get_by_text("main is in use").wait_for()
    book.edit(0, '%%keel_step fit\nprint("fit", file=open("hits.txt", "a"))\nm = 1')
    book.run_all()
    book.wait_states(fit="replayed")
    assert book.value("m") == "1"
    assert book.hits == "fit fit2"


PAY = """\
%%keel_step pay --effect exactly_once --kind money --on-ambiguous fail
import os, time
open("began", "w").close()
while not os.path.exists("go"): time.sleep(0.02)
paid = 1
"""


@APPS
def test_another_kernel_that_holds_the_notebook_is_named_until_it_is_done(server, page, app):
    folder = server.root / f"held-{app}"
    folder.mkdir()
    theirs = Notebook(folder, [PAY], env={"XDG_CONFIG_HOME": str(server.home / "xdg")})
    running = threading.Thread(target=theirs.run_all)
    running.start()
    try:
        book = Book(server, page, f"held-{app}", [*theirs.cells], app=app).open()
        banner = book.banner("held")
        assert f"pid {theirs.pid} on " in banner.inner_text()
        clean(page)
        book.run_all()
        book.until("() => document.querySelector('.keel-banner').innerText.includes('Not run here: pay')")
        said = book.page.locator(".jp-OutputArea-output").last.inner_text()
        assert re.search(r"KEEL-E030: .* since \d{4}-\d\d-\d\d \d\d:", said)
    finally:
        (folder / "go").touch()
        running.join()
        theirs.shutdown()
    book.until("() => document.querySelector('.keel-banner:not(.lm-mod-hidden)') === null")
    server.end_kernels()


SLOW_DISK = """\
import os, time
sync = os.fdatasync
def slow(fd):
    while not os.path.exists("go"): time.sleep(0.02)
    sync(fd)
os.fdatasync = slow
# ---
%%keel_step load
rows = [1, 2, 3]
"""


@APPS
def test_what_a_power_cut_could_still_take_is_saving(notebook, app):
    book = notebook(SLOW_DISK, app=app)
    book.event("hello")
    book.run_all()
    book.wait_states(load="saving")
    (book.folder / "go").touch()
    book.wait_states(load="recorded")


def test_nothing_waits_and_the_tab_says_so(notebook):
    book = notebook("%%keel_step a\nx = 1")
    book.event("hello")
    book.command("keel:approve")
    book.page.locator("#keel-body-waiting").get_by_text("Nothing waits").wait_for()
    clean(book.page)
