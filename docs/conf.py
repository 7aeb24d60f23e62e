"""The site of these pages (`make docs`): Sphinx with MyST, so that the sources stay plain Markdown.

Pages of the repository's root become pages of the site; what is no page (code, notebooks) keeps its name only.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

project = "keel-notebook"
author = "the keel-notebook authors"
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "keel-notebook"
exclude_patterns = ["conf.py"]
# JSON with "…" for what varies, and shell transcripts, are shown as they are.
suppress_warnings = ["misc.highlighting_failure"]

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"../ARCHITECTURE.md": "architecture", "../CHANGELOG.md": "changelog"}
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>\.\./[^)#\s]*)(?P<place>#[^)]*)?\)")

CONTENTS = """
```{toctree}
:hidden:

tutorial
howto
calls
effects
flows
undo
headless
frontend
guarantees
reference
cli
errors
reads
payload
outputs
journal
contracts
architecture
changelog
```
"""


def read(app: Any, name: str, source: list[str]) -> None:  # noqa: ARG001 - Sphinx calls it so
    """Give the first page its table of contents, and let links lead to pages of the site."""
    text = source[0] + (CONTENTS if name == "index" else "")
    if name in PAGES.values():
        original = next(path for path, page in PAGES.items() if page == name)
        text = (ROOT / original.removeprefix("../")).read_text("utf-8").replace("](docs/", "](")
    source[0] = LINK.sub(_link, text)


def _link(found: re.Match[str]) -> str:
    page = PAGES.get(found["target"])
    return f"[{found['text']}]({page}.md{found['place'] or ''})" if page else found["text"]


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", read)
