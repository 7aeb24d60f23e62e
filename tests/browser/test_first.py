"""Badges and panel of a notebook whose kernel lives."""

import pytest

pytestmark = pytest.mark.browser

CELLS = """\
%%keel_step load
print("loaded", file=open("hits.txt", "a"))
rows = [n * n for n in range(1000)]
print(len(rows))
# ---
total = sum(rows)
# ---
%%keel_step fit
model = {"w": total}
model
"""


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_steps_have_badges_and_plain_cells_have_none(notebook, app):
    book = notebook(CELLS, app=app)
    book.event("hello")
    book.run_all()
    book.wait_states(load="recorded", fit="recorded")
    assert len(book.states()) == 2
    badge = book.page.get_by_role("button", name="Step load: recorded")
    assert badge.inner_text().strip() == "done"
    badge.click()
    row = book.page.locator("#keel-panel [role=row][data-keel-step=load]")
    row.wait_for()
    assert row.get_attribute("aria-selected") == "true"
    assert "1000" in book.page.locator("#keel-panel .keel-details").inner_text()
    # Wide enough for two columns, and every tab in sight, also in Notebook 7.
    book.until("() => document.querySelector('#keel-panel').clientWidth >= 350")
    edge = "node => node.getBoundingClientRect().right"
    panel, last = book.page.locator("#keel-panel"), book.page.locator("#keel-panel [data-keel-tab=storage]")
    assert last.evaluate(edge) <= panel.evaluate(edge)


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_an_edit_shows_as_a_divergence_before_anything_runs_and_the_panel_shows_the_lines(notebook, app):
    book = notebook(CELLS, app=app)
    book.event("hello")
    book.run_all()
    book.wait_states(load="recorded", fit="recorded")
    book.edit(
        0,
        CELLS.split("\n# ---", maxsplit=1)[0].replace("range(1000)", "range(10)"),
    )
    book.wait_states(load="diverged")
    book.command("keel:next-divergence")
    diff = book.page.locator("#keel-panel .keel-diff")
    diff.wait_for()
    assert "range(1000)" in diff.locator(".keel-line-changed .keel-recorded").inner_text()
    assert "range(10)" in diff.locator(".keel-line-changed .keel-current").inner_text()
    row = book.page.locator("#keel-panel [role=row][data-keel-step=load]")
    assert row.get_attribute("data-keel-differs") == "code"
    assert "1 of 2 differs; first at load (code)" in book.page.locator(".keel-headline").first.inner_text()


ASKED = "() => keelLog.filter(one => one.event === 'flow').length"


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_an_idle_notebook_asks_nothing(notebook, app):
    book = notebook(CELLS, app=app)
    book.event("hello")
    assert book.event("active") < 50, "milliseconds that the start of the application waits for the extension"
    book.run_all()
    book.wait_states(load="recorded", fit="recorded")
    book.page.wait_for_timeout(1000)
    before = book.page.evaluate(ASKED)
    book.page.wait_for_timeout(3000)
    assert book.page.evaluate(ASKED) == before


def test_a_hidden_notebook_asks_nothing_until_it_is_seen_again(notebook):
    book = notebook(CELLS)
    book.event("hello")
    book.run_all()
    book.wait_states(load="recorded", fit="recorded")
    assert book.page.locator(".keel-status").inner_text() == "keel 2/2 saved"
    book.page.wait_for_timeout(1000)
    before = book.page.evaluate(ASKED)
    book.page.evaluate("() => { window.book = jupyterapp.shell.currentWidget; }")
    book.command("launcher:create")
    book.until("() => !book.isVisible")
    book.page.evaluate("() => book.sessionContext.session.kernel.requestExecute({ code: 'x = 1' }).done")
    book.page.wait_for_timeout(1500)
    assert book.page.evaluate(ASKED) == before
    book.page.evaluate("() => jupyterapp.shell.activateById(book.id)")
    book.until(f"before => ({ASKED})() > before", before)


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_an_accepted_record_is_replayed_for_the_edited_cell(notebook, app):
    book = notebook(CELLS, app=app)
    book.event("hello")
    book.run_all()
    book.wait_states(load="recorded", fit="recorded")
    book.edit(0, CELLS.split("\n# ---", maxsplit=1)[0].replace("range(1000)", "range(0, 1000)"))
    book.wait_states(load="diverged")
    book.page.get_by_role("button", name="Step load: differs").click()
    book.page.locator("#keel-panel [data-keel-action=accept]").click()
    book.page.locator("#keel-panel .keel-said").get_by_text("load").wait_for()
    book.run_all()
    book.wait_states(load="replayed")
    assert (book.folder / "hits.txt").read_text().split() == ["loaded"]
