"""Auto mode in JupyterLab: slow cells have badges without a mark, and come back after a death."""

import pytest

pytestmark = pytest.mark.browser

CELLS = """\
%keel auto on --min-seconds 2
# ---
import time
n = 3
# ---
print("slow", file=open("hits.txt", "a"))
time.sleep(2.1)
rows = list(range(n))
# ---
print(sum(rows))
"""


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_slow_cells_have_badges_and_the_session_comes_back(notebook, app):
    book = notebook(CELLS, app=app)
    book.event("hello")
    book.run_all()
    book.wait_states(**{"cell-2": "recorded"})
    assert set(book.states()) == {"cell-2"}, "quick cells are plain ones"
    book.command("keel:show-lineage")
    book.page.locator("#keel-panel .keel-name").get_by_text('cell 3 (print("slow", file=open…)').wait_for()
    assert "Step cell 3 (print" in book.page.locator(".keel-badge").get_attribute("aria-label")
    book.kill()
    book.accept_dialog()
    book.event("hello", 2)
    book.wait_states(**{"cell-2": "saved"})
    book.banner("died").locator("[data-keel-action=recover]").click()
    book.event("recovered")
    book.wait_states(**{"cell-2": "replayed"})
    assert book.value("(n, rows)") == "(3, [0, 1, 2])"
    book.page.locator(".keel-menu-button").click()
    switch = book.page.get_by_role("menuitemcheckbox", name="Every Cell Is a Step")
    assert switch.get_attribute("aria-checked") == "true"
    switch.click()
    book.until("() => !jupyterapp.commands.isToggled('keel:toggle-auto')")
    assert book.hits == "slow"
