"""Everything by keyboard, with names and roles, in every theme."""

from pathlib import Path

import pytest

from tests.browser.test_first import CELLS

pytestmark = pytest.mark.browser

AXE = Path(__file__).resolve().parents[2] / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
OURS = [
    ".keel-badge",
    ".keel-banner:not(.lm-mod-hidden)",
    "#keel-panel",
    ".jp-OutputArea .keel-lineage",
    ".keel-status",
]
THEMES = ["JupyterLab Light", "JupyterLab Dark", "JupyterLab Dark High Contrast"]


def violations(page):
    """What axe finds in the parts that are ours."""
    return page.evaluate(
        "async parts => { const there = parts.filter(part => document.querySelector(part)).map(part => [part]);"
        " const found = await axe.run({ include: there }, { resultTypes: ['violations'] });"
        " return found.violations.map(one => one.id + ': ' + one.nodes.map(node => node.html.slice(0, 160) + ' '"
        " + (node.any[0]?.message ?? '')).join(' | ')); }",
        OURS,
    )


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
    book.page.add_script_tag(path=AXE)
    for theme in THEMES:
        book.page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
        book.until("theme => document.body.dataset.jpThemeName === theme", theme)
        book.until("() => [...document.styleSheets].every(sheet => sheet.cssRules !== null)")
        assert violations(book.page) == [], theme
    for tab in ("timeline", "waiting", "storage"):
        book.page.locator(f"[data-keel-tab={tab}]").click()
        book.page.locator(f"#keel-body-{tab} > *").first.wait_for()
        assert violations(book.page) == [], tab


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
