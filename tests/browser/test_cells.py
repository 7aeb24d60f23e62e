"""Badges stay with their cells through everything that a person does to cells."""

import pytest

from tests.browser.test_first import CELLS

pytestmark = pytest.mark.browser

WHERE = """() => jupyterapp.shell.currentWidget.content.widgets.map(cell =>
    [...cell.node.querySelectorAll('.keel-badge')].map(badge => badge.dataset.keelStep).join())"""


def at(book, cell):
    book.page.evaluate("at => { jupyterapp.shell.currentWidget.content.activeCellIndex = at; }", cell)


def badges(book, expected):
    book.until(f"expected => JSON.stringify(({WHERE})()) === JSON.stringify(expected)", expected)


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_badges_stay_with_their_cells(notebook, app):
    book = notebook(CELLS, app=app)
    book.event("hello")
    book.run_all()
    book.wait_states(load="recorded", fit="recorded")
    badges(book, ["load", "", "fit"])

    at(book, 0)
    book.command("notebook:move-cell-down")
    badges(book, ["", "load", "fit"])
    book.command("notebook:move-cell-up")
    badges(book, ["load", "", "fit"])

    at(book, 2)
    book.command("notebook:copy-cell")
    book.command("notebook:paste-cell-below")
    badges(book, ["load", "", "fit", "fit"])
    book.command("notebook:delete-cell")
    badges(book, ["load", "", "fit"])

    at(book, 0)
    book.command("notebook:delete-cell")
    badges(book, ["", "fit"])
    book.command("notebook:undo-cell-action")
    badges(book, ["load", "", "fit"])

    at(book, 0)
    book.command("notebook:hide-cell-code")
    badges(book, ["load", "", "fit"])
    assert book.page.locator(".keel-badge[data-keel-step=load]").is_visible()
    book.command("notebook:show-cell-code")
    book.command("notebook:change-cell-to-markdown")
    badges(book, ["", "", "fit"])
    book.command("notebook:change-cell-to-code")
    badges(book, ["load", "", "fit"])

    book.page.evaluate(
        "() => { const nb = jupyterapp.shell.currentWidget.content; nb.mode = 'edit';"
        " nb.activeCell.editor.setCursorPosition({ line: 2, column: 0 }); }"
    )
    book.command("notebook:split-cell-at-cursor")
    badges(book, ["load", "", "", "fit"])
    book.wait_states(load="diverged")
    at(book, 0)
    book.command("notebook:merge-cell-below")
    badges(book, ["load", "", "fit"])
    book.wait_states(load="recorded", fit="recorded")
    assert book.hits == "loaded", "nothing of this runs a cell"
