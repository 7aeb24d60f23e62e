"""One entry of the journal in full: what a step read, left and showed (``keel show``).

Nothing is unpickled: types, sizes and previews were written when the step was recorded, and outputs are messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from keel_notebook.core.model import Entry
from keel_notebook.core.ports import Message
from keel_notebook.core.units import count, duration, maker, size
from keel_notebook.front.logtable import entry_dict, stored_bytes
from keel_notebook.front.page import Block, Code, Column, Field, Line, Page, Table, Tone
from keel_notebook.front.tables import local_time

MOST_LINES = 200
"""Lines of output that are shown unless all are asked for."""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


class ShownOutput(Struct, frozen=True):
    """One recorded message as text. ``also`` names the richer forms that only a notebook can show."""

    kind: str
    text: str
    also: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The output as plain values."""
        return {"kind": self.kind, "text": self.text, "also": list(self.also)}


class ShowReport(Struct, frozen=True):
    """An entry and what it showed."""

    entry: Entry
    outputs: tuple[ShownOutput, ...]
    trusted: bool
    trouble: str = ""
    """Why the outputs cannot be shown, where they cannot."""
    whole: bool = False
    """Whether all lines of output are shown."""

    def to_dict(self) -> dict[str, Any]:
        """Everything that the entry says, without its payload."""
        entry = self.entry
        return entry_dict(entry) | {
            "trusted": self.trusted,
            "effect": str(entry.effect),
            "code": entry.code,
            "source": entry.source,
            "inputs": [_slots(item, "name type digest weak preview producer") for item in entry.inputs],
            "files": [_slots(item, "path role digest weak") for item in entry.files],
            "writes": [_slots(item, "name type bytes digest preview") for item in entry.writes],
            "deleted": list(entry.deleted),
            "not_stored": [_slots(item, "name type reason") for item in entry.not_stored],
            "outputs": [output.to_dict() for output in self.outputs],
            "trouble": self.trouble,
        }


def _slots(item: object, names: str) -> dict[str, Any]:
    return {name: getattr(item, name) for name in names.split()}


class ShowTable(Page):
    """An entry in full."""

    def __init__(self, report: ShowReport) -> None:
        super().__init__(tuple(_blocks(report)), report)


def outputs_of(messages: Iterable[Message]) -> tuple[ShownOutput, ...]:
    """Recorded messages as text, in order, without colours and cursor movements."""
    return tuple(shown for message in messages if (shown := _output(message)) is not None)


def _output(message: Message) -> ShownOutput | None:
    content = message.content
    match message.kind:
        case "stream":
            return ShownOutput(str(content.get("name", "stdout")), _plain(content.get("text", "")))
        case "display_data" | "execute_result" | "update_display_data":
            forms: Mapping[str, Any] = content.get("data", {})
            also = tuple(sorted(str(form) for form in forms if form != "text/plain"))
            return ShownOutput(message.kind, _plain(forms.get("text/plain", "")), also)
        case "error":
            return ShownOutput("error", _plain("\n".join(content.get("traceback", ()))))
        case _:
            return None  # comm messages and the like have no text


def _plain(text: Any) -> str:
    return _ESCAPES.sub("", "".join(text) if isinstance(text, (list, tuple)) else str(text))


_LEFT = (Column("left", limit=40), Column("type"), Column("size", right=True), Column("value", limit=80))
_READ = (Column("read", limit=40), Column("type"), Column("value", limit=80), Column("made by"), Column("compared"))
_FILES = (Column("file", limit=100), Column("used as"), Column("compared"))


def _blocks(report: ShowReport) -> Iterator[Block]:
    entry = report.entry
    yield Line(_headline(entry), Tone.STRONG)
    if entry.why:
        yield Line(entry.why, Tone.QUIET)
    if not report.trusted:
        yield Line("not written with your key: shown as text, never replayed (KEEL-E050)", Tone.WARN)
    if entry.writes:
        yield _table(_LEFT, [(w.name, w.type, size(w.bytes), w.preview) for w in entry.writes])
    if entry.deleted:
        yield Line("deleted: " + ", ".join(entry.deleted))
    yield from (Line(f"not stored: {i.name} ({i.type}): {i.reason}", Tone.WARN) for i in entry.not_stored)
    if entry.inputs:
        yield _table(_READ, [(i.name, i.type, i.preview, maker(i.producer), _weak(i.weak)) for i in entry.inputs])
    if entry.files:
        yield _table(_FILES, [(f.path, f.role, _weak(f.weak)) for f in entry.files])
    yield Line("code", Tone.STRONG)
    yield Code(tuple(entry.source.splitlines()))
    yield from _output_blocks(report)


def _weak(weak: bool) -> str:
    return "weakly" if weak else ""


def _headline(entry: Entry) -> str:
    parts = [f"{entry.step}: entry {entry.entry}, {entry.kind} {entry.status}, run {entry.run}"]
    if entry.attempt > 1:
        parts.append(f"attempt {entry.attempt}")
    parts.append(local_time(entry.started_at))
    if entry.took_s is not None:
        parts.append(f"took {duration(entry.took_s)}")
    if stored := stored_bytes(entry):
        parts.append(size(stored))
    if entry.error is not None:
        parts.append(f"{entry.error.type} {entry.error.code}".strip())
    return ", ".join(parts)


def _table(columns: tuple[Column, ...], rows: Sequence[Sequence[str]]) -> Table:
    return Table(columns, tuple(tuple(map(Field, row)) for row in rows))


def _output_blocks(report: ShowReport) -> Iterator[Block]:
    if report.trouble:
        yield Line(report.trouble, Tone.BAD)
    room = None if report.whole else MOST_LINES
    for output in report.outputs:
        also = f" (also {', '.join(output.also)})" if output.also else ""
        yield Line(f"{output.kind}{also}", Tone.STRONG)
        lines = tuple(output.text.splitlines())
        if room is not None and len(lines) > room:
            yield Code(lines[:room])
            yield Line(f"and {count(len(lines) - room, 'more line')}: --all shows them", Tone.QUIET)
            room = 0
            continue
        yield Code(lines)
        room = None if room is None else room - len(lines)
