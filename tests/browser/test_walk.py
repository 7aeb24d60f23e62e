"""docs/first-kill.md, walked as it is written: its cells, its buttons, and what it says that one sees."""

import re
from pathlib import Path

import pytest

from tests.browser.axe import clean

pytestmark = pytest.mark.browser

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "first-kill.md").read_text("utf-8")
CELLS = re.findall(r"^```\n(.*?)^```$", PAGE, flags=re.M | re.S)
WAIT = "import os\nwhile not os.path.exists('go'): time.sleep(0.05)"
"""Stands for the minute that `train` takes: a test waits for what happens, never for the clock."""


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_the_first_kill(notebook, app):
    book = notebook(["%load_ext keel_notebook", "", "", ""], app=app)
    page = book.page

    load, plain, train = CELLS
    assert "time.sleep(60)" in train
    for at, source in enumerate([load, plain, train.replace("time.sleep(60)", WAIT)], start=1):
        book.edit(at, source.strip())
    book.start_all()
    book.wait_states(load="recorded", train="running")
    assert page.locator(".keel-badge[data-keel-step=load]").inner_text().strip() == "done"
    page.get_by_text(re.compile(r"^0:0\d$")).first.wait_for()
    book.look("walk-2")

    book.kill()
    book.accept_dialog()
    died = book.banner("died")
    book.until("() => document.querySelector('.keel-banner').innerText.includes('memory last seen')")
    assert all(said in died.inner_text() for said in ("during train", "1 of 2 steps saved", "not saved: train"))
    book.look("walk-3")

    died.locator("[data-keel-action=recover]").click()
    back = book.banner("recovered")
    assert "train runs next" in back.inner_text()
    book.wait_states(load="replayed", train="interrupted")
    assert book.value("len(rows)") == "100000"
    book.look("walk-4")

    (book.folder / "go").touch()
    back.locator("[data-keel-action=continue]").click()
    book.wait_states(load="replayed", train="recorded")
    assert book.value("model['weight'] == sum(rows)") == "True"
    book.look("walk-5")

    book.edit(1, load.strip().replace("100_000", "200_000"))
    book.wait_states(load="diverged")
    page.locator(".keel-badge[data-keel-step=load]").click()
    details = page.locator("#keel-panel .keel-diff")
    details.wait_for()
    lines = details.locator("tr.keel-line-changed td").all_inner_texts()
    assert any("100_000" in line for line in lines)
    assert any("200_000" in line for line in lines)
    clean(page)
    book.look("walk-6")
