"""Every state that a badge can have, each from what really happens (FRONTEND.md, Pinned names)."""

import pytest

from tests.browser.axe import clean

pytestmark = pytest.mark.browser

CELLS = """\
%%keel_step conn --always
client = object()
# ---
%%keel_step load
rows = [1, 2, 3]
# ---
%%keel_step fit
model = sum(rows)
# ---
%%keel_step bad
1 / 0
# ---
%%keel_step boom --max-attempts 1
import os; os.kill(os.getpid(), 9)
# ---
%%keel_step pay --effect exactly_once --kind money --on-ambiguous fail
import os; os.kill(os.getpid(), 9)
# ---
%%keel_step nap
import keel_notebook as keel
keel.sleep("2h")
"""


def run(book, at):
    book.page.evaluate("at => { jupyterapp.shell.currentWidget.content.activeCellIndex = at; }", at)
    book.command("notebook:run-cell")


def dies(book, at, hello):
    run(book, at)
    book.until("count => keelLog.filter(one => one.detail === 'autorestarting').length === count", hello - 1)
    if book.page.locator(".jp-Dialog .jp-mod-accept").count():
        book.accept_dialog()
    book.event("hello", hello)


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_every_state_comes_from_what_happened(notebook, app):
    book = notebook(CELLS, app=app)
    book.event("hello")
    for at, (step, state) in enumerate({"conn": "resource", "load": "recorded", "fit": "recorded"}.items()):
        run(book, at)
        book.wait_states(**{step: state})
    run(book, 3)
    book.wait_states(bad="failed")
    book.edit(1, "%%keel_step load\nrows = [1, 2, 3, 4]")
    book.wait_states(load="diverged", fit="stale", conn="resource")
    dies(book, 4, hello=2)
    book.wait_states(boom="dead")
    dies(book, 5, hello=3)
    book.wait_states(pay="ambiguous")
    run(book, 6)
    book.wait_states(nap="sleeping")
    seen = book.page.evaluate(
        "() => [...document.querySelectorAll('.keel-badge')].map(one => [one.innerText.trim(), one.title,"
        " one.getAttribute('aria-label'), one.querySelector('path').getAttribute('d')])"
    )
    words = [word for word, *_ in seen]
    assert words == ["live", "diff", "stale", "fail", "dead", "check?", "sleep"]
    assert all(title == label for _, title, label, _ in seen)
    clipped = (
        "() => [...document.querySelectorAll('.keel-badge-word')].filter(one => one.scrollWidth > one.clientWidth)"
    )
    assert book.page.evaluate(clipped + ".map(one => one.innerText)") == [], "every word has its room"
    assert len({path for *_, path in seen}) == len(seen), "no two states have one icon"
    book.command("keel:show-lineage")
    book.page.locator("#keel-panel [role=row][data-keel-step=nap]").wait_for()
    clean(book.page)
