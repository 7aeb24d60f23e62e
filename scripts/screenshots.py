"""Takes the pictures of the docs from the running product: JupyterLab, a real notebook, a kernel killed with SIGKILL.

``make screenshots`` writes docs/img/*.png. Nothing is staged: every badge, banner and row comes from what happened.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from PIL import Image  # noqa: E402 - as below
from playwright.sync_api import Browser, sync_playwright  # noqa: E402 - after the path to this repository

from tests.browser.app import CHROMIUM, FLAGS, Book, Server  # noqa: E402

PICTURES = ROOT / "docs" / "img"
SIZE = {"width": 1180, "height": 760}
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark", "contrast": "JupyterLab Dark High Contrast"}

CELLS = """\
import time, random
from statistics import mean
# ---
%%keel_step load
random.seed(7)
rows = [(random.gauss(40, 6), random.gauss(17, 2)) for _ in range(2_000)]
time.sleep(1.2)
print(f"{len(rows):,} rows")
# ---
%%keel_step clean
good = [(length, depth) for length, depth in rows if length > 30]
# ---
ratio = [length / depth for length, depth in good]
# ---
%%keel_step fit
time.sleep(1.5)
model = {"mean": mean(ratio), "rows": len(ratio)}
model
# ---
%%keel_step train
import os
while not os.path.exists("go"):
    time.sleep(0.05)
weights = [model["mean"] * n for n in range(5)]
# ---
%keel lineage
"""


def main() -> None:
    """Take all pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        server = Server(Path(home))
        try:
            story(server, browser)
            server.end_kernels()
            notebook_7(server, browser)
        finally:
            server.close()
            browser.close()


def story(server: Server, browser: Browser) -> None:
    """A notebook runs, its kernel is killed, it comes back, a cell is edited."""
    page = browser.new_context(viewport=SIZE).new_page()  # type: ignore[arg-type]
    page.add_init_script("window.keelLog = [];")
    book = Book(server, page, "penguins", CELLS).open()
    page.evaluate("() => jupyterapp.commands.execute('application:toggle-left-area')")
    book.event("hello")
    book.start_all()
    book.wait_states(load="recorded", clean="recorded", fit="recorded", train="running")
    book.kill()
    book.accept_dialog()
    book.event("hello", 2)
    book.until("() => document.querySelector('.keel-banner').innerText.includes('memory last seen')")
    shot(page, "died")
    (book.folder / "go").touch()
    book.idle()
    book.run_all()
    book.wait_states(load="replayed", clean="replayed", fit="replayed", train="recorded")
    page.evaluate("() => document.querySelector('.keel-banner [data-keel-action=dismiss]').click()")
    shot(page, "replayed")
    page.evaluate("() => document.querySelector('.jp-OutputArea .keel-lineage').scrollIntoView({ block: 'end' })")
    shot(page, "widget")
    book.edit(2, CELLS.split("# ---\n")[2].strip().replace("> 30", "> 35 and depth > 14"))
    book.wait_states(clean="diverged")
    book.command("keel:next-divergence")
    page.locator("#keel-panel .keel-diff").wait_for()
    page.evaluate("() => { jupyterapp.shell.currentWidget.content.activeCellIndex = 2; }")
    for name in THEMES:
        theme_is(page, name)
        shot(page, f"panel-{name}")
    theme_is(page, "light")
    book.run_all()
    book.wait_states(clean="recorded", fit="recorded")
    page.locator("[data-keel-tab=timeline]").click()
    page.locator("#keel-body-timeline .keel-attempts").wait_for()
    part(page, "timeline", 260)
    page.locator("[data-keel-tab=storage]").click()
    room = page.locator("#keel-body-storage .keel-room")
    room.locator("select").select_option("any age")
    room.locator("[data-keel-action=dry-run]").click()
    room.locator("[data-keel-action=delete]").click()
    part(page, "storage", 372)


def notebook_7(server: Server, browser: Browser) -> None:
    """The same in Notebook 7, after Recover."""
    page = browser.new_context(viewport=SIZE).new_page()  # type: ignore[arg-type]
    page.add_init_script("window.keelLog = [];")
    book = Book(server, page, "penguins-7", CELLS.rpartition("# ---")[0], app="notebook").open()
    book.event("hello")
    book.start_all()
    book.wait_states(load="recorded", clean="recorded", fit="recorded", train="running")
    book.kill()
    book.accept_dialog()
    book.event("hello", 2)
    book.banner("died").locator("[data-keel-action=recover]").click()
    book.event("recovered")
    book.wait_states(load="replayed", train="interrupted")
    book.command("keel:show-lineage")
    page.locator("#keel-panel [role=row][data-keel-step=train]").wait_for()
    theme_is(page, "light")
    shot(page, "notebook-7")


def theme_is(page: Any, name: str) -> None:
    """Change the theme, and wait until it is drawn."""
    page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', { theme })", THEMES[name])
    light = "true" if name == "light" else "false"
    page.wait_for_selector(f"body[data-jp-theme-light={light}]", state="attached")
    page.wait_for_timeout(800)  # a style sheet has no event that says it is drawn


def part(page: Any, name: str, height: int) -> None:
    """A picture of the panel's upper part."""
    box = page.locator("#keel-panel").bounding_box()
    page.mouse.move(2, 400)
    page.wait_for_timeout(400)  # let the last frame be drawn
    page.screenshot(path=PICTURES / f"{name}.png", clip=box | {"height": height})
    small(PICTURES / f"{name}.png")


def shot(page: Any, name: str) -> None:
    """One picture."""
    page.mouse.move(2, 400)
    page.wait_for_timeout(400)  # let the last frame be drawn
    page.screenshot(path=PICTURES / f"{name}.png")
    small(PICTURES / f"{name}.png")


def small(path: Path) -> None:
    """The same picture with the 256 colours that a page of text and thin lines needs: a quarter of the bytes."""
    picture = Image.open(path).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main()
