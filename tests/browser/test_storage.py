"""The storage tab: what everything takes, what could not be kept, and room made from here."""

import pytest

from tests.browser.axe import clean

pytestmark = pytest.mark.browser

CELLS = """\
%%keel_step load
print("load", file=open("hits.txt", "a"))
import os
rows = os.urandom(200_000)
lines = (line for line in [1, 2])
"""


def objects(book):
    """The values that lie in the journal, in bytes."""
    files = (file for file in (book.folder / ".keel" / "objects").rglob("*") if file.is_file())
    return sum(file.stat().st_size for file in files if not file.name.startswith("."))


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_what_a_newer_record_replaced_is_deleted_after_two_questions_and_the_rest_stays(notebook, app):
    book = notebook(CELLS, app=app)
    book.event("hello")
    book.run_all()
    book.wait_states(load="recorded")
    book.page.evaluate("() => { jupyterapp.shell.currentWidget.content.activeCellIndex = 0; }")
    book.command("keel:rerun-step")
    book.until("() => document.querySelector('.jp-InputPrompt').innerText.includes('2')")
    before = objects(book)
    assert before > 400_000

    book.command("keel:show-lineage")
    book.page.locator("[data-keel-tab=storage]").click()
    body = book.page.locator("#keel-body-storage")
    body.get_by_text("lines (generator) is not stored").wait_for()
    body.locator("select").select_option("any age")
    body.locator("[data-keel-action=dry-run]").click()
    body.get_by_text("would go: the values of 1 old record").wait_for()
    assert objects(book) == before, "a dry run touches nothing"
    body.locator("[data-keel-action=delete]").click()
    assert book.page.evaluate("() => document.activeElement.dataset.keelAction") == "cancel"
    clean(book.page)
    body.locator("[data-keel-action=confirm]").click()
    body.get_by_text("are kept").wait_for()
    assert 200_000 < objects(book) < before - 199_000

    book.kill()
    book.accept_dialog()
    book.event("hello", 2)
    book.banner("died").locator("[data-keel-action=recover]").click()
    book.event("recovered")
    assert book.value("len(rows)") == "200000"
    assert book.hits == "load load"
