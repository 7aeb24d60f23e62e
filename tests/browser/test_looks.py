"""What stands in the page can be read: at every width, with every name, and however long an output is."""

import pytest

pytestmark = pytest.mark.browser

APPS = pytest.mark.parametrize("app", ["lab", "notebook"])
LONG = "a_very_long_name_of_a_step_" * 11
RTL = "🐧-بطريق-pinguin"

CELLS = f"""\
import base64, struct, zlib
from IPython.display import Image, display
def picture(width, height):
    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((bytes([0]) + bytes([90]) * width) * height)
    display(Image(b"\\x89PNG\\r\\n\\x1a\\n" + part(b"IHDR", head) + part(b"IDAT", rows) + part(b"IEND", b"")))
# ---
%%keel_step {LONG}
a = 1
# ---
%%keel_step {RTL}
picture(900, 200)
b = a + 1
# ---
%%keel_step שלום
for n in range(400):
    print(n, "a line of output that goes on and on, so that it has to be wrapped somewhere " * 2)
c = b
gen = (x for x in range(3))
"""
EDITED = CELLS.split("# ---\n")[2].strip().replace("900, 200", "300, 300")
OVERFLOWS = (
    "root => [...root.querySelectorAll('*')].filter(one => one.getClientRects().length && one.closest('svg') === null"
    " && !one.closest('.keel-hidden') && one.getBoundingClientRect().right > root.getBoundingClientRect().right + 1)"
    ".map(one => one.className + ': ' + one.textContent.slice(0, 40))"
)
CUT = (
    "root => [...root.querySelectorAll('[role=gridcell]')].filter(one => one.scrollWidth > one.clientWidth)"
    ".map(one => one.textContent)"
)


def ran(notebook, app, more=""):
    book = notebook(CELLS + more, app=app)
    book.event("hello")
    book.run_all()
    book.wait_states(**{LONG: "recorded", RTL: "recorded", "שלום": "recorded"})
    return book


@APPS
def test_nothing_leaves_the_panel_whatever_the_steps_are_called(notebook, app):
    book = ran(notebook, app)
    page = book.page
    book.edit(2, EDITED)
    book.wait_states(**{RTL: "diverged"})
    page.evaluate("() => { jupyterapp.shell.currentWidget.content.activeCellIndex = 2; }")
    book.command("notebook:run-cell")
    book.wait_states(**{RTL: "recorded"})
    book.command("keel:show-lineage")
    panel = page.locator("#keel-panel")
    page.locator(f"#keel-panel [role=row][data-keel-step='{RTL}']").wait_for()
    for at in (1, 2, 3):
        row = page.locator("#keel-panel [role=row]").nth(at)
        if row.get_attribute("aria-expanded") == "false":
            row.click()
        book.until("at => document.querySelectorAll('#keel-panel .keel-details').length === 1", at)
        assert panel.evaluate(OVERFLOWS) == []
        assert panel.evaluate(CUT) == []
    cut = page.locator("#keel-panel .keel-outputs-same .keel-note")
    cut.get_by_text("characters more in the record").wait_for()
    assert page.locator("#keel-panel .keel-outputs-same pre").first.evaluate("one => one.clientHeight") <= 330
    headline = page.locator("#keel-panel .keel-headline").inner_text()
    assert f"\u2066{RTL}\u2069 (code" in headline, "the name keeps its direction to itself"
    page.locator("#keel-panel [role=row]").nth(2).click()
    page.locator("#keel-panel .keel-outputs img").nth(1).wait_for()
    sides = page.locator("#keel-panel .keel-outputs img")
    left, right = (sides.nth(side).bounding_box() for side in (0, 1))
    assert left["x"] + left["width"] <= right["x"], "pictures of two sizes stand beside each other"
    for tab in ("timeline", "storage"):
        page.locator(f"[data-keel-tab={tab}]").click()
        page.locator(f"#keel-body-{tab} [data-keel-step='שלום']").first.wait_for()
        assert panel.evaluate(OVERFLOWS) == [], tab


@APPS
@pytest.mark.parametrize("width", [600, 1600])
def test_the_lineage_can_be_read_at_every_width(notebook, app, width):
    book = ran(notebook, app, "# ---\n%keel lineage\n")
    page = book.page
    page.set_viewport_size({"width": width, "height": 900})
    row = page.locator(".jp-OutputArea .keel-lineage [role=row]").nth(3)
    row.wait_for()
    if app == "lab" and page.locator("#jp-left-stack").is_visible():
        book.command("application:toggle-left-area")
    page.locator("#jp-left-stack").wait_for(state="hidden")
    book.edit(2, EDITED)
    view = page.locator(".jp-OutputArea .keel-lineage")
    row = view.locator(f"[role=row][data-keel-step='{RTL}'][data-keel-state=diverged]")
    row.click()
    view.locator(".keel-diff .keel-line-changed").wait_for()
    assert view.evaluate(OVERFLOWS) == []
    assert view.evaluate(CUT) == []
    sides = [view.locator(f".keel-line-changed .keel-{side}") for side in ("recorded", "current")]
    widths = [side.evaluate("one => one.clientWidth") for side in sides]
    assert abs(widths[0] - widths[1]) <= 4, widths
    marked = [side.locator(".keel-bit").all_inner_texts() for side in sides]
    assert marked == [["900", "200"], ["300", "300"]], "what differs within the line is marked"


DEATH = """\
%%keel_step load
rows = [1, 2, 3]
# ---
%%keel_step clean
good = rows[:2]
# ---
%%keel_step a_step_that_stops_in_its_middle
import os
while not os.path.exists("go"): pass
"""


@APPS
def test_the_banner_says_all_and_badges_leave_the_code_free_also_at_200_percent(notebook, app):
    book = notebook(DEATH, app=app)
    page = book.page
    book.event("hello")
    book.start_all()
    book.wait_states(load="recorded", a_step_that_stops_in_its_middle="running")
    book.edit(1, "%%keel_step clean\ngood = rows[:1]")
    book.kill()
    book.accept_dialog()
    book.event("hello", 2)
    book.wait_states(load="saved", clean="diverged")
    book.until("() => document.querySelector('.keel-banner').innerText.includes('changed since: clean')")
    said = page.locator(".keel-banner-text").inner_text()
    assert "during a_step_that_stops_in_its_middle (memory last seen" in said
    assert said.endswith("1 of 3 steps saved; changed since: clean; not saved: a_step_that_stops_in_its_middle.")
    if app == "lab":
        book.command("application:toggle-left-area")
    for width in (1280, 640, 320):
        page.set_viewport_size({"width": width, "height": 600})
        book.until(
            "() => { const row = document.querySelector('.keel-banner-row').getBoundingClientRect();"
            " const all = document.querySelector('.keel-banner').getBoundingClientRect();"
            " return row.bottom <= all.bottom + 1 && row.right <= all.right + 1; }"
        )
        assert page.locator(".keel-banner").evaluate(OVERFLOWS) == [], width
        over = page.evaluate(
            "() => [...document.querySelectorAll('.keel-badge')].filter(badge => { const one ="
            " badge.getBoundingClientRect(), code = badge.parentElement.querySelector('.jp-InputArea-editor')"
            ".getBoundingClientRect(); return one.right > code.left + 1 && one.left < code.right - 1"
            " && one.bottom > code.top + 1 && one.top < code.bottom - 1; }).map(one => one.dataset.keelStep)"
        )
        assert over == [], f"badges over the code at {width} px"
    (book.folder / "go").touch()
    page.set_viewport_size({"width": 1280, "height": 800})
    book.banner("died").locator("[data-keel-action=show]").click()
    lost = "#keel-panel [role=row][data-keel-step=a_step_that_stops_in_its_middle][aria-expanded=true]"
    page.locator(lost).wait_for()
