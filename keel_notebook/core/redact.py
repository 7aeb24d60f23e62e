"""A cell's text as the journal keeps it: without what looks like a credential (C103).

Works on text, not on a syntax tree: cells with magics and shell lines do not parse, and are kept as well.
"""

from __future__ import annotations

import re

from keel_notebook.core.secrets import looks_secret, secret_text

HIDDEN = "…"
"""Stands in a kept source for a text that was not written down."""

_STRING = re.compile(
    r"""(?P<open>[rbufRBUF]{0,2}(?P<quote>\"{3}|'{3}|"|'))
        (?P<text>(?:\\.|(?!(?P=quote)).)*)
        (?P=quote)""",
    re.VERBOSE | re.DOTALL,
)
_NAME_BEFORE = re.compile(r"""(\w+)["'\]]{0,3}\s*[=:]\s*\Z""")
"""``api_key = "…"``, ``"password": "…"``, ``login(token="…")``, ``os.environ["KEY"] = "…"``."""
_LOOK_BACK = 200
_BARE = re.compile(r"\S{16,}")


def redacted(source: str) -> str:
    """The source with every string literal that looks like a credential replaced by ``"…"``.

    A literal is judged by its own shape and by the name that it is bound or passed to. Words outside of
    literals (a key on a ``!curl`` line, in a comment) are judged by their shape alone.
    """
    return _BARE.sub(_bare, _STRING.sub(_literal, source))


def _literal(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - _LOOK_BACK) : match.start()]
    name = _NAME_BEFORE.search(before)
    if not looks_secret(name[1] if name else "", match["text"]):
        return match[0]
    return match["open"] + HIDDEN + "\n" * match["text"].count("\n") + match["quote"]


def _bare(match: re.Match[str]) -> str:
    return HIDDEN if secret_text(match[0]) else match[0]
