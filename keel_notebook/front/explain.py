"""Error codes for people: ``keel explain CODE`` and ``docs/errors.md``, both from ``errors.json`` (K45)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from keel_notebook import errors
from keel_notebook.core.why import hint
from keel_notebook.errors import KeelError, UnknownNameError, catalogue

_FIELD = re.compile(r"(?P<before>^|.)\{(?P<name>\w+)\}")
_PARTS = ("what", "why", "next")
_CODE = re.compile(r"(?:KEEL-)?(?P<code>E\d{3})", re.IGNORECASE)


class Explained(Struct, frozen=True):
    """One code with its four texts; fields of a message stand in capitals."""

    code: str
    title: str
    what: str
    why: str
    next: str
    cases: tuple[Mapping[str, str], ...] = ()
    """Where other texts hold: ``when``, and those texts."""

    def to_dict(self) -> dict[str, Any]:
        """The texts as plain values."""
        texts = {"code": self.code, "title": self.title, "what": self.what, "why": self.why, "next": self.next}
        return texts | {"cases": [dict(case) for case in self.cases]}

    def __str__(self) -> str:
        head = f"KEEL-{self.code}: {self.title}"
        parts = [f"{head}\n\n  what: {self.what}\n  why:  {self.why}\n  next: {self.next}"]
        for case in self.cases:
            parts.append(
                f"  {case['when']}:" + "".join(f"\n    {part + ':':5} {case[part]}" for part in _PARTS if part in case)
            )
        return "\n\n".join(parts)


def explained(code: str) -> Explained:
    """The texts of a code, written ``E031``, ``e031`` or ``KEEL-E031``. Raises UnknownNameError (E002)."""
    match = _CODE.fullmatch(code.strip())
    known = match["code"].upper() if match else ""
    texts = catalogue().get(known)
    if texts is None:
        raise UnknownNameError(what="code", name=code, hint=_meant(code))
    others = tuple({part: _generic(text) for part, text in case.items()} for case in errors.cases(known).values())
    title, what, why, following = (_generic(texts[part]) for part in ("title", *_PARTS))
    return Explained(known, title, what, why, following, others)


def _meant(code: str) -> str:
    """The code that was meant: that with the same number, else one that looks like it, else all of them."""
    number = re.fullmatch(r"(?:KEEL-?)?E?0*(\d{1,3})", code.strip().upper())
    written = f"E{number[1]:0>3}" if number else code.strip().upper().removeprefix("KEEL-")
    return f"; did you mean {written}?" if written in catalogue() else hint(written, catalogue(), most=1000)


def _generic(text: str) -> str:
    """A text with its fields in capitals. A field glued to a word is an optional ending and left out."""
    return _FIELD.sub(lambda m: m["before"] if m["before"].isalnum() else m["before"] + m["name"].upper(), text)


def raised_here() -> frozenset[str]:
    """The codes that this version has an error class for."""
    return frozenset(
        found.code for found in vars(errors).values() if isinstance(found, type) and issubclass(found, KeelError)
    )


_HEAD = """\
# Errors

Every error of keel has a code, and says what happened, why, and what to do next. `keel explain E031` prints the same
texts. No message holds a value of your notebook: names, types, sizes and paths only. Words in CAPITALS stand for what a
message names.

This page is written by `python -m keel_notebook.front.explain` from `keel_notebook/errors.json`; change it there.
"""


_LATER = "\nNot raised by this version: the code is reserved.\n"


def _table(found: Explained) -> str:
    """The cases of a code, and what is said in each in the place of the texts above; empty where there are none."""
    if not found.cases:
        return ""
    rows = [f"| {case['when']} | {_cell(case)} | {case.get('next', '')} |" for case in found.cases]
    return "\n".join(["", "| case | why | next |", "| --- | --- | --- |", *rows, ""])


def _cell(case: Mapping[str, str]) -> str:
    return " ".join(case[part] for part in ("what", "why") if part in case).replace("|", "\\|")


def errors_page() -> str:
    """``docs/errors.md``: every code with its texts, and whether this version raises it."""
    parts = [_HEAD]
    for code in sorted(catalogue()):
        found = explained(code)
        later = "" if code in raised_here() else _LATER
        if code in errors.NOTED:
            later = "\nIt stands in a note on your own exception, which is raised as it is.\n"
        parts.append(
            f"## KEEL-{code}: {found.title}\n\n- **What**: {found.what}\n- **Why**: {found.why}\n"
            f"- **Next**: {found.next}\n{_table(found)}{later}"
        )
    return "\n".join(parts)


if __name__ == "__main__":
    print(errors_page(), end="")  # noqa: T201 - this is how the page is written
