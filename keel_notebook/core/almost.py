"""A line that is almost a mark (``# keel: stp fit``): such a cell would run plainly, and nobody would know why.

Pure text. Only what can hardly mean anything else is named: prose about keel in a comment is no slip.
"""

from __future__ import annotations

import difflib
import io
import re
import tokenize

from keel_notebook.core.harmless import RUN_ONCE_MAGICS
from keel_notebook.core.options import COMMENT, MAGIC, find_marker

_MAGIC = re.compile(r"%%?\s*(?P<word>[Kk][\w-]*)(?:[ \t]+(?P<line>.*))?$")
_COMMENT = re.compile(
    r"#+\s*(?P<keel>[^\W_]+)(?P<between>[\s:;=.,_-]+)(?P<word>[^\W_]+)\s*[:;,]?(?:[ \t]+(?P<line>.*))?$"
)
_NAMED = re.compile(r"\S+(\s+--.*)?")
"""What stands behind the word of a mark, and hardly in prose: one word, then options."""
_TAKEN = frozenset({"keel", "keel_undo"})
_HOLDS_FILES = frozenset({"writefile", "file"})


def almost(cell: str) -> str:
    """What to say of a cell's first line that is almost a mark, with the right form; empty where there is none."""
    lines = cell.splitlines(keepends=True)
    top = next((at for at, line in enumerate(lines) if line.strip()), 0)
    magic = _magic(lines[top]) if lines else ""
    if magic in RUN_ONCE_MAGICS - {"keel_step"}:  # the mark may stand below it
        lines = ["\n"] * (top + 1) + lines[top + 1 :]
    marker = None if magic in _HOLDS_FILES else find_marker("".join(lines))
    for at, line in enumerate(lines):
        text = line.strip()
        if magic in _HOLDS_FILES or not text.startswith(("#", "%")) or (marker is not None and at <= marker.at):
            continue
        said = _said(text, already=marker is not None)
        if said and (text.startswith("%") or _is_comment(at, lines)):
            return f"line {at + 1}, `{text}`, is no mark{said}"
    return ""


def _magic(line: str) -> str:
    words = line.strip().removeprefix("%%").split() if line.lstrip().startswith("%%") else []
    return words[0] if words else ""


def _said(text: str, *, already: bool) -> str:
    if MAGIC.match(text) or COMMENT.match(text):
        one = ": this cell is a step already, and a cell is one step"
        return one if already else ": only comments and blank lines may stand above it"
    meant = "" if already else _meant(text)
    return f"; the form is `{meant}`" if meant else ""


def _is_comment(at: int, lines: list[str]) -> bool:
    """Whether a line is a comment and not part of a text; where the cell is not plain Python it counts as one."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO("".join(lines)).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return True
    return any(token.type == tokenize.COMMENT and token.start[0] == at + 1 for token in tokens)


def _meant(text: str) -> str:
    """The mark that a line was meant to be; empty where it was meant to be something else."""
    if found := _MAGIC.match(text):
        word = found["word"].replace("-", "_")
        if word in _TAKEN or not _near(word, "keel_step"):
            return ""
        return f"%%keel_step {found['line'] or 'NAME'}"
    found = _COMMENT.match(text)
    if found is None or COMMENT.match(text):
        return ""
    word, line = found["word"].casefold(), found["line"] or ""
    if word in _OTHERS or not (_near(found["keel"], "keel") and _near(word, "step")):
        return ""
    if (not found["between"].strip() or word == "steps") and not _NAMED.fullmatch(line):
        return ""  # prose
    return f"# keel: step {line or 'NAME'}"


_OTHERS = frozenset({"stop", "stops", "keep", "steep", "stem"})
_ALIKE = 0.74


def _near(word: str, meant: str) -> bool:
    return difflib.SequenceMatcher(None, word.casefold(), meant).ratio() >= _ALIKE
