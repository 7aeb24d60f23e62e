"""The site of these pages (`make docs`): Sphinx with MyST, so that the sources stay plain Markdown.

Links to the repository's root lead to pages of the site; what is no page (code, notebooks) keeps its name only.
"""

from __future__ import annotations

import re
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

PAGES = {"../ARCHITECTURE.md": "architecture", "../CHANGELOG.md": "changelog"}
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>\.\./[^)#\s]*)(?P<place>#[^)]*)?\)")

CONTENTS = """
```{toctree}
:hidden:

first-kill
tutorial
howto
auto
calls
effects
flows
undo
trust
headless
frontend
guarantees
reliability
comparison
reference
cli
errors
reads
files
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
    source[0] = LINK.sub(_link, source[0]) + (CONTENTS if name == "index" else "")


def _link(found: re.Match[str]) -> str:
    page = PAGES.get(found["target"])
    return f"[{found['text']}]({page}.md{found['place'] or ''})" if page else found["text"]


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", read)
