"""Everything by keyboard, with names and roles, in every theme."""

import pytest

from tests.browser.axe import clean
from tests.browser.test_first import CELLS

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_axe_finds_nothing_in_any_theme(notebook, app):
    book = notebook(CELLS + "# ---\n%keel lineage\n", app=app)
    book.event("hello")
    book.run_all()
    book.wait_states(load="recorded", fit="recorded")
    book.page.locator(".jp-OutputArea .keel-lineage [role=row][data-keel-step=load]").wait_for()
    book.edit(2, '%%keel_step fit\nmodel = {"w": total + 1}\nmodel')
    book.wait_states(fit="diverged")
    book.kill()
    book.accept_dialog()
    book.event("hello", 2)
    book.banner("died")
    book.command("keel:next-divergence")
    book.page.locator("#keel-panel .keel-diff").wait_for()
    book.page.locator(".keel-menu-button").click()
    book.page.locator(".lm-Menu.keel-menu").wait_for()
    clean(book.page)
    book.page.keyboard.press("Escape")
    clean(book.page)
    for tab in ("timeline", "waiting", "storage"):
        book.page.locator(f"[data-keel-tab={tab}]").click()
        book.page.locator(f"#keel-body-{tab} > *").first.wait_for()
        clean(book.page)


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_from_the_cell_to_the_diff_and_back_by_keyboard_alone(notebook, app):
    book = notebook(CELLS, app=app)
    book.event("hello")
    book.run_all()
    book.wait_states(load="recorded", fit="recorded")
    book.edit(2, '%%keel_step fit\nmodel = {"w": total + 1}\nmodel')
    book.wait_states(fit="diverged")
    focus = "() => document.activeElement.dataset.keelStep ?? document.activeElement.className"

    book.page.keyboard.press("Control+Alt+k")
    book.until("() => document.activeElement.matches('#keel-panel [role=row]')")
    book.page.keyboard.press("Home")
    assert book.page.evaluate(focus) == "load"
    book.page.keyboard.press("d")
    assert book.page.evaluate(focus) == "fit"
    if book.page.evaluate("() => document.activeElement.getAttribute('aria-expanded')") == "false":
        book.page.keyboard.press("Enter")
    book.page.locator("#keel-panel .keel-diff .keel-line-changed").first.wait_for()
    book.page.keyboard.press("Escape")
    book.until("() => document.querySelector('#keel-panel .keel-diff') === null")
    book.page.keyboard.press("Escape")
    book.until("() => document.activeElement.closest('.jp-Notebook') !== null")
    assert book.page.evaluate("() => jupyterapp.shell.currentWidget.content.activeCellIndex") == 2


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_what_happens_is_said_once_for_all_steps(notebook, app):
    book = notebook(CELLS, app=app)
    book.event("hello")
    book.run_all()
    book.wait_states(load="recorded", fit="recorded")
    book.kill()
    book.accept_dialog()
    book.event("hello", 2)
    book.until("() => document.querySelector('.keel-live').textContent === '2 steps saved'")
