"""One server and one browser for all browser tests; a fresh page and a fresh notebook for each."""

import itertools
import re
import shutil

import pytest

from tests.browser.app import CHROMIUM, FLAGS, PICTURES, Book, Server

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    if shutil.which("chromium") is None:
        pytest.fail("chromium is missing: make chromium")
    started = Server(tmp_path_factory.mktemp("jupyter"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, request):
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.add_init_script("window.keelLog = [];")
    said = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.set_default_timeout(30_000)
    yield page
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{_name(request)}.png")
    context.close()
    assert not [line for line in said if "keel" in line], said


@pytest.fixture
def notebook(server, page, request):
    """``notebook(cells, app="lab")``: written, opened, its kernel idle."""

    def opened(cells, *, app="lab", kernel="python3"):
        folder = f"n{next(_numbers)}"
        return Book(server, page, folder, cells, app=app, kernel=kernel).open()

    yield opened
    server.end_kernels()


def _name(request):
    return re.sub(r"\W+", "-", request.node.name).strip("-")
