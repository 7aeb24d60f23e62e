"""What was found in a journal, as a page (``keel fsck``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from keel_notebook.core.record import as_dict
from keel_notebook.core.units import count, size
from keel_notebook.front.page import Block, Column, Field, Line, Page, Table, Tone
from keel_notebook.journal.fsck import Checked

_COLUMNS = (Column("what"), Column("name", limit=24), Column("says", limit=160), Column("mended"))


class CheckReport(Struct, frozen=True):
    """What was looked at and what was found."""

    found: Checked

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {"well": self.found.well} | as_dict(self.found)


class CheckTable(Page):
    """One sentence, and a row for each finding."""

    def __init__(self, found: Checked) -> None:
        super().__init__(tuple(_blocks(found)), CheckReport(found))


def _blocks(found: Checked) -> Iterator[Block]:
    wrong = [one for one in found.findings if one.what != "note"]
    entries = "1 entry" if found.entries == 1 else f"{found.entries} entries"
    looked = f"{entries} of {count(found.flows, 'flow')}"
    said = f"{count(len(wrong), 'thing')} not as written" if wrong else "all well"
    objects = f"{count(found.objects, 'object')} ({size(found.bytes)})"
    room = f"; {count(found.let_go, 'value')} let go by gc" if found.let_go else ""
    yield Line(f"{said}: {looked}, {objects} read{room}", Tone.WARN if wrong else Tone.GOOD)
    if found.findings:
        rows = [(one.what, one.name, one.says, "yes" if one.mended else "") for one in found.findings]
        yield Table(_COLUMNS, tuple(tuple(map(Field, row)) for row in rows))
