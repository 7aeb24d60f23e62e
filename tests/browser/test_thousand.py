"""Notebooks of many steps: badges where cells are, a panel that is there at once, a recovery in one request."""

import pytest

from tests.browser.app import Book
from tests.support.notebook import Notebook

pytestmark = pytest.mark.browser

COUNT = 1000


def record(server, folder, cells):
    """Steps recorded without a front end, in the folder of the notebook that is opened next."""
    (server.root / folder).mkdir()
    book = Notebook(server.root / folder, cells, env={"XDG_CONFIG_HOME": str(server.home / "xdg")})
    assert all(shown.status == "ok" for shown in book.run_all())
    book.shutdown()
    return book.cells


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_forty_steps_are_back_in_one_request_and_nothing_runs(server, page, app):
    cells = [
        f"%%keel_step s{at}\nhit('s{at}')\nx{at} = list(range({at}, {at} + 10_000))\nprint({at})" for at in range(40)
    ]
    book = Book(server, page, f"forty-{app}", record(server, f"forty-{app}", cells), app=app).open()
    book.event("hello")
    took_ms = page.evaluate(
        "async () => { const began = performance.now(); await jupyterapp.commands.execute('keel:recover');"
        " return performance.now() - began; }"
    )
    assert book.event("recovered")["missing"] == []
    book.until("() => document.querySelectorAll('.keel-badge[data-keel-state=replayed]').length > 0")
    assert set(book.states().values()) == {"replayed"}
    print(f"recover, 40 steps, {app}: {took_ms:.0f} ms in the page")
    # 2 s is the promise on an idle machine (FRONTEND.md); a machine that does other things as well is waited for.
    assert took_ms < 10_000
    assert book.value("sum(len(value) for name, value in globals().copy().items() if name[:1] == 'x')") == "400000"
    assert len(book.hits.split()) == 40, "nothing ran again"
    server.end_kernels()


def test_a_thousand_steps(server, page):
    recorded = record(server, "thousand", [f"%%keel_step s{at}\nx{at} = {at}" for at in range(COUNT)])
    page.add_init_script(
        "window.longTasks = []; new PerformanceObserver(list => list.getEntries().forEach(one =>"
        " longTasks.push(one.duration))).observe({ type: 'longtask' });"
    )
    book = Book(server, page, "thousand", recorded).open()
    book.event("hello")
    book.until(
        "() => { const attached = jupyterapp.shell.currentWidget.content.widgets.filter(cell =>"
        " cell.isAttached && !cell.isPlaceholder()"
        " && cell.model.sharedModel.getSource().startsWith('%%keel_step')).length;"
        " return attached > 0 && document.querySelectorAll('button.keel-badge').length === attached; }"
    )
    took = page.evaluate(
        "async () => { await jupyterapp.commands.execute('keel:show-lineage'); const began = performance.now();"
        " const there = () => document.querySelector('#keel-panel [role=row][data-keel-step]');"
        " while (!there()) await new Promise(requestAnimationFrame);"
        " return performance.now() - began; }"
    )
    assert took < 300
    page.evaluate(
        "() => { document.querySelector('#keel-panel .keel-filter input').checked &&"
        " document.querySelector('#keel-panel .keel-filter input').click(); longTasks.length = 0; }"
    )
    tasks = page.evaluate(
        "async () => { const grid = document.querySelector('#keel-panel .keel-grid');"
        " for (let at = 0; at < 60; at += 1) { grid.scrollTop = at * 400; await new Promise(requestAnimationFrame); }"
        " return [document.querySelectorAll('#keel-panel [role=row]').length, Math.max(0, ...longTasks)]; }"
    )
    assert tasks[0] < 80
    assert tasks[1] < 100
    server.end_kernels()
