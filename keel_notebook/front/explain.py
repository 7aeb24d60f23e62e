"""Error codes for people: ``keel explain CODE`` and ``docs/errors.md``, both from ``errors.json`` (K45)."""

from __future__ import annotations

import re

from msgspec import Struct

from keel_notebook import errors
from keel_notebook.errors import KeelError, UnknownNameError, catalogue

_FIELD = re.compile(r"(?P<before>^|.)\{(?P<name>\w+)\}")
_CODE = re.compile(r"(?:KEEL-)?(?P<code>E\d{3})", re.IGNORECASE)


class Explained(Struct, frozen=True):
    """One code with its four texts; fields of a message stand in capitals."""

    code: str
    title: str
    what: str
    why: str
    next: str

    def to_dict(self) -> dict[str, str]:
        """The texts as plain values."""
        return {"code": self.code, "title": self.title, "what": self.what, "why": self.why, "next": self.next}

    def __str__(self) -> str:
        head = f"KEEL-{self.code}: {self.title}"
        return f"{head}\n\n  what: {self.what}\n  why:  {self.why}\n  next: {self.next}"


def explained(code: str) -> Explained:
    """The texts of a code, written ``E031``, ``e031`` or ``KEEL-E031``. Raises UnknownNameError (E002)."""
    match = _CODE.fullmatch(code.strip())
    known = match["code"].upper() if match else ""
    texts = catalogue().get(known)
    if texts is None:
        raise UnknownNameError(what="code", name=code, hint="; known: " + ", ".join(sorted(catalogue())))
    return Explained(known, *(_generic(texts[part]) for part in ("title", "what", "why", "next")))


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
            f"- **Next**: {found.next}\n{later}"
        )
    return "\n".join(parts)


if __name__ == "__main__":
    print(errors_page(), end="")  # noqa: T201 - this is how the page is written
