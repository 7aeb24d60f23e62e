"""Outputs of a journal that somebody else wrote: nothing in them may run in the reader's browser (C23)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from typing import Any

from msgspec.structs import replace

from keel_notebook.core.ports import Message

_INERT = ("text/plain", "image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp")
"""What a front end shows without interpreting it."""
_HTML = ("text/html", "image/svg+xml", "text/markdown")
_ACTIVE_TAGS = frozenset({"script", "iframe", "object", "embed", "link", "meta", "base", "form", "foreignobject"})
_RUNS = re.compile(r"^\s*(?:javascript|vbscript)\s*:", re.IGNORECASE)
_UNSEEN = frozenset({"script", "style", "head", "title", "template"})
_HOW_TO_TRUST = (
    "keel: this journal was written by somebody else: outputs are shown as text and pictures only. "
    "`keel trust` shows them as they were.\n"
)


def has_script(messages: Iterable[Message]) -> bool:
    """Whether showing the messages could run code in the front end. In doubt: yes."""
    return any(_is_active(mime, value) for message in messages for mime, value in _data(message).items())


def sanitised(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages as text and pictures only, and a line that says how to see all of it, if anything was taken out."""
    kept, changed = [], False
    for message in messages:
        data = _data(message)
        if message.kind.startswith("comm_"):
            changed = True
            continue
        safe = {mime: value for mime, value in data.items() if mime in _INERT}
        if safe != data:
            changed = True
            safe.setdefault("text/plain", _as_text(data))
            message = replace(message, content={**message.content, "data": safe, "metadata": {}}, buffers=())  # noqa: PLW2901 - the same message, made safe
        kept.append(message)
    if changed:
        kept.append(Message("stream", {"name": "stderr", "text": _HOW_TO_TRUST}))
    return tuple(kept)


def _data(message: Message) -> Mapping[str, Any]:
    data = message.content.get("data")
    return data if isinstance(data, Mapping) and not message.kind.startswith("comm_") else {}


def _is_active(mime: str, value: Any) -> bool:
    if mime in _INERT or mime == "text/latex":
        return False
    if mime not in _HTML or not isinstance(value, str):
        return True  # JavaScript, and types that a front end's plugins draw from a description
    page = _Page()
    page.feed(value)
    page.close()
    return page.active


def _as_text(data: Mapping[str, Any]) -> str:
    for mime in ("text/html", "text/markdown", "text/latex"):
        if isinstance(value := data.get(mime), str):
            page = _Page()
            page.feed(value)
            page.close()
            return " ".join("".join(page.text).split())
    return f"[{', '.join(sorted(data)) or 'nothing'}]"


class _Page(HTMLParser):
    """The visible text of a page, and whether anything in it would run."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.active = False
        self.text: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _UNSEEN
        runs = any(name.startswith("on") or _RUNS.match(value or "") for name, value in attrs)
        self.active = self.active or runs or tag in _ACTIVE_TAGS

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(0, self._hidden - (tag in _UNSEEN))

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text.append(data)
