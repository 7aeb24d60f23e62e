"""A notebook of a thousand steps: badges where cells are, and a panel that is there at once (FRONTEND.md)."""

import pytest

from tests.support.notebook import Notebook

pytestmark = pytest.mark.browser

COUNT = 1000


@pytest.fixture
def recorded(server):
    """A thousand steps, recorded without a front end, in the folder of the notebook that is opened next."""
    folder = server.root / "thousand"
    folder.mkdir()
    cells = [f"%%keel_step s{at}\nx{at} = {at}" for at in range(COUNT)]
    book = Notebook(folder, cells, env={"XDG_CONFIG_HOME": str(server.home / "xdg")})
    assert all(shown.status == "ok" for shown in book.run_all())
    book.shutdown()
    return cells


def test_a_thousand_steps(server, page, recorded):
    from tests.browser.app import Book

    page.add_init_script(
        "window.longTasks = []; new PerformanceObserver(list => list.getEntries().forEach(one =>"
        " longTasks.push(one.duration))).observe({ type: 'longtask' });"
    )
    book = Book(server, page, "thousand", recorded).open()
    book.event("hello")
    book.until(
        "() => { const attached = jupyterapp.shell.currentWidget.content.widgets.filter(cell =>"
        " cell.isAttached && !cell.isPlaceholder()).length;"
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
