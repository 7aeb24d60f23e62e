"""How the log is shown: entries in the order in which they were written, many alike as one line.

A loop of a thousand calls is one thing that happened. What is folded is told by its first and last id, so that
``keel show`` still finds each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

from msgspec import Struct

from keel_notebook.core.model import Entry, Kind
from keel_notebook.core.ports import RunSeen
from keel_notebook.core.record import as_dict
from keel_notebook.core.units import count, duration, size
from keel_notebook.core.why import ended
from keel_notebook.front.page import Block, Column, Field, Line, Page, Table, Tone
from keel_notebook.front.tables import local_time

T = TypeVar("T")
_ALIKE = frozenset({Kind.CALL, Kind.LOOP, Kind.TIME, Kind.RANDOM, Kind.PLAIN})
"""Kinds of which many stand in a row."""
_FEW = 3
"""So many are still shown one by one."""
_NOUNS = {
    Kind.CALL: "call",
    Kind.LOOP: "turn",
    Kind.TIME: "time",
    Kind.RANDOM: "random value",
    Kind.PLAIN: "plain cell",
}


class LogReport(Struct, frozen=True):
    """Entries of a flow, newest last."""

    flow: str
    entries: tuple[Entry, ...]
    runs: Mapping[int, RunSeen]
    limit: int | None = None
    """The newest so many: entries for a program, lines for people."""
    each: bool = False
    """Whether people see every entry in a line of its own."""

    def to_dict(self) -> dict[str, Any]:
        """The entries as plain values: metadata only, no payload (Z30)."""
        found = [entry_dict(entry) | {"end": ended(entry, self.runs)} for entry in _newest(self.entries, self.limit)]
        return {"flow": self.flow, "entries": found}


def entry_dict(entry: Entry) -> dict[str, Any]:
    """The columns of an entry that a listing shows."""
    names = ("entry", "run", "seq", "step", "lane", "occurrence", "attempt", "started_at", "ended_at", "took_s", "why")
    plain: dict[str, Any] = {name: getattr(entry, name) for name in names}
    plain |= {"kind": str(entry.kind), "status": str(entry.status), "key": entry.key}
    plain |= {"bytes": stored_bytes(entry), "rss_peak": entry.rss_peak}
    return plain | {"error": as_dict(entry.error) if entry.error else None}


def stored_bytes(entry: Entry) -> int:
    """Bytes that an entry keeps: its payload and its outputs."""
    return (entry.payload.bytes if entry.payload else 0) + (entry.outputs.size if entry.outputs else 0)


class LogTable(Page):
    """When, run, entry, step, what it was and how it ended."""

    def __init__(self, report: LogReport) -> None:
        super().__init__(tuple(_log_blocks(report)), report)


def _log_blocks(report: LogReport) -> Iterator[Block]:
    if not report.entries:
        yield Line("no entries", Tone.QUIET)
        return
    columns = (Column("when"), Column("entry", right=True), Column("step", limit=40), Column("what"), Column("status"))
    more = (Column("took", right=True), Column("size", right=True), Column("why", limit=100))
    shown = _newest(_folded(report), report.limit)
    yield Table((*columns, *more), tuple(_row(alike, report.runs) for alike in shown))


def _newest(found: Sequence[T], limit: int | None) -> Sequence[T]:
    return found if limit is None else found[-limit:]


def _folded(report: LogReport) -> list[list[Entry]]:
    """The entries in groups: alone, or many in a row that differ in nothing but their place."""
    groups: list[list[Entry]] = []
    for _, found in groupby(report.entries, key=lambda entry: _alike(entry, report.runs)):
        alike = list(found)
        fold = len(alike) > _FEW and alike[0].kind in _ALIKE and not report.each
        groups += [alike] if fold else [[entry] for entry in alike]
    return groups


def _alike(entry: Entry, runs: Mapping[int, RunSeen]) -> tuple[Any, ...]:
    return entry.run, entry.step, entry.kind, entry.call, entry.lane, ended(entry, runs), entry.error


def _row(alike: Sequence[Entry], runs: Mapping[int, RunSeen]) -> tuple[Field, ...]:
    first, last = alike[0], alike[-1]
    if first is last:
        return _log_row(first, runs)
    took = sum(entry.took_s or 0.0 for entry in alike)
    of = f" of {first.call}" if first.call else ""
    return (
        Field(local_time(first.started_at)),
        Field(f"{first.entry} … {last.entry}"),
        Field(first.step, Tone.STRONG),
        Field(f"{count(len(alike), _NOUNS[first.kind])}{of}"),
        Field(str(ended(first, runs)), Tone.GOOD if first.error is None else Tone.BAD),
        Field(duration(took) if took else ""),
        Field(size(total) if (total := sum(map(stored_bytes, alike))) else ""),
        Field(first.error.type if first.error else "", title=""),
    )


def _log_row(entry: Entry, runs: Mapping[int, RunSeen]) -> tuple[Field, ...]:
    said = entry.ambient.get("decision") if entry.key == "decision" else None
    what = str(entry.kind) if not entry.key or said else f"{entry.kind} {entry.key}"
    end = said or ended(entry, runs)
    tone = {"ok": Tone.GOOD, "running": Tone.STRONG}.get(end, Tone.PLAIN if said else Tone.BAD)
    return (
        Field(local_time(entry.started_at)),
        Field(entry.entry),
        Field(entry.step, Tone.STRONG),
        Field("decision" if said else what),
        Field(str(end), tone),
        Field("" if entry.took_s is None else duration(entry.took_s)),
        Field(size(stored_bytes(entry)) if stored_bytes(entry) else ""),
        Field(f"{entry.error.type}: {entry.why}" if entry.error and entry.error.type else entry.why),
    )
