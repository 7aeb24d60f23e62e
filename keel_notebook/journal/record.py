"""The record file: ``journal.duckdb`` (DESIGN 7). Used by the ingest's process only.

Short-lived: opened under the ingest's lock, one thread, a small memory limit, batches as lists, checkpointed and
closed. No DDL is ever left in the write-ahead log: DuckDB cannot always replay it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, Final

import duckdb

from keel_notebook.core.model import FlowId
from keel_notebook.core.ports import RunSeen, RunStart
from keel_notebook.journal.columns import COLUMNS, row, source, text
from keel_notebook.journal.flowlog import Written
from keel_notebook.journal.flows import FlowSeen
from keel_notebook.journal.wire import Stored

VERSION: Final = 1
_LAST_SEEN: Final = "CREATE TABLE IF NOT EXISTS last_seen (run INTEGER NOT NULL, seen_at DOUBLE NOT NULL)"
"""When each kernel was last seen to live. Beside `kernels`: record files without it are as good."""
_CONFIG: Final[dict[str, Any]] = {
    "threads": 1,
    "memory_limit": "256MB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "preserve_insertion_order": False,
}


_BODIES: Final = "SELECT stamp, frame_fence, macs, body FROM entries"
_SALVAGED_AT_ONCE: Final = 2048


class NewerRecordError(Exception):
    """The record file was written by a newer version of keel."""


class RecordFile:
    """One open connection to a record file. Methods raise duckdb.Error."""

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        there = os.path.exists(path)
        self._con = duckdb.connect(path, read_only=read_only, config=dict(_CONFIG))
        try:
            if not there or not self._tables():
                self._create()
            self._check_version()
        except BaseException:
            self._con.close()
            raise

    def generation(self) -> int:
        """How many ingests there were."""
        return int(self._rows("SELECT max(generation) FROM keel_state")[0][0])

    def upto(self) -> dict[tuple[int, bytes], int]:
        """Per run and segment id: how much of it is in here."""
        return {(run, bytes(ident)): end for run, ident, end in self._rows("SELECT run, ident, upto FROM segments")}

    def store(self, batch: Sequence[Written], *, taken: tuple[int, bytes, int] | None = None) -> None:
        """Take in entries, and how far their segment is taken in (run, id, offset), in one transaction."""
        newest = {written.entry.entry: written for written in sorted(batch, key=lambda written: written.stamp)}
        with self._transaction():
            if newest:
                self._insert(list(newest.values()))
            if taken is not None:
                self._con.execute("DELETE FROM segments WHERE run = ? AND ident = ?", taken[:2])
                self._con.execute("INSERT INTO segments VALUES (?, ?, ?)", taken)

    def add_mac(self, entry: str, body: bytes, mac: bytes) -> None:
        """Keep another owner's seal on an entry."""
        self._con.execute(
            "UPDATE entries SET macs = list_append(macs, $3)"
            " WHERE entry = $1 AND body = $2 AND NOT list_contains(macs, $3)",
            [entry, body, mac],
        )

    def finish(
        self, *, generation: int, runs: Mapping[int, RunSeen], flows: Iterable[FlowSeen], objects: Mapping[str, int]
    ) -> None:
        """Bring everything beside the entries up to date, and note the ingest, in one transaction.

        ``runs`` are those that still have a segment.
        """
        known = [[flow.id, text(flow.name), text(flow.key), text(flow.notebook)] for flow in flows]
        with self._transaction():
            self._con.execute("DELETE FROM kernels WHERE run IN (SELECT unnest(?::INTEGER[]))", [list(runs)])
            self._lists("kernels", [_kernel_row(run, seen) for run, seen in runs.items()])
            self._con.execute(_LAST_SEEN)
            self._con.execute("DELETE FROM last_seen WHERE run IN (SELECT unnest(?::INTEGER[]))", [list(runs)])
            self._lists("last_seen", [[run, seen.seen_at] for run, seen in runs.items() if seen.seen_at])
            self._con.execute("DELETE FROM segments WHERE run NOT IN (SELECT unnest(?::INTEGER[]))", [list(runs)])
            self._con.execute("DELETE FROM notebooks")
            self._lists("notebooks", known)
            self._con.execute("DELETE FROM objects WHERE object IN (SELECT unnest(?::VARCHAR[]))", [list(objects)])
            self._lists("objects", [[name, size] for name, size in objects.items()])
            self._con.execute("UPDATE keel_state SET generation = ?", [generation])

    def totals(self, flows: Iterable[FlowId]) -> dict[FlowId, int]:
        """How many entries there are of each flow."""
        rows = self._rows(
            "SELECT flow, count(*) FROM entries WHERE flow IN (SELECT unnest(?::VARCHAR[])) GROUP BY flow",
            [[text(flow) for flow in flows]],
        )
        return {FlowId(flow): total for flow, total in rows}

    def bodies(self, flow: str | None = None) -> list[Stored]:
        """Every entry (of one flow), oldest first."""
        if flow is None:
            return _bodies(self._rows(f"{_BODIES} ORDER BY stamp"))
        return _bodies(self._rows(f"{_BODIES} WHERE flow = ? ORDER BY stamp", [text(flow)]))

    def readable_bodies(self) -> list[Stored]:
        """As ``bodies``, of a damaged file: what is in blocks that can still be read."""
        try:
            return self.bodies()
        except duckdb.Error:
            rows = self._rows("SELECT max(rowid) FROM entries")[0][0] or 0
        found: list[Stored] = []
        for first in range(0, rows + 1, _SALVAGED_AT_ONCE):
            with contextlib.suppress(duckdb.Error):
                where = "WHERE rowid BETWEEN ? AND ?"
                found += _bodies(self._rows(f"{_BODIES} {where}", [first, first + _SALVAGED_AT_ONCE - 1]))
        return found

    def flows(self) -> list[FlowId]:
        """Every flow that has entries."""
        return [FlowId(flow) for (flow,) in self._rows("SELECT DISTINCT flow FROM entries")]

    def runs(self) -> dict[int, RunSeen]:
        """Every run, as it was last seen."""
        rows = self._rows("SELECT run, host, pid, boot, started, notebook, cwd, ended, rss_last FROM kernels")
        at = dict(self._rows("SELECT run, seen_at FROM last_seen")) if "last_seen" in self._tables() else {}
        return {found[0]: RunSeen(RunStart(*found[:7]), found[7], found[8], at.get(found[0], 0.0)) for found in rows}

    def read_everything(self) -> None:
        """Read every block, so that a damaged one is found: raises duckdb.Error."""
        for table in self._tables():
            self._rows(f"SELECT count(*), bit_xor(hash(t)) FROM {table} t")  # noqa: S608 - names of our own tables

    def select(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Columns and rows of one SELECT, none for an empty text. Nothing outside of this file can be reached."""
        self._con.execute("SET enable_external_access = false")
        self._con.execute("SET lock_configuration = true")
        found = self._con.execute(sql)
        if found is None or found.description is None:
            return [], []
        return [column[0] for column in found.description], found.fetchall()

    def close(self, *, fold: bool) -> None:
        """Close; with ``fold`` its log goes into it, so that nothing is left beside it."""
        try:
            if fold:
                self._con.execute("CHECKPOINT")
        finally:
            self._con.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._con.execute("BEGIN")
        try:
            yield
            self._con.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(duckdb.Error):  # the first error is the one to tell
                self._con.execute("ROLLBACK")
            raise

    def _tables(self) -> list[str]:
        return [name for (name,) in self._rows("SELECT table_name FROM duckdb_tables() ORDER BY 1")]

    def _create(self) -> None:
        script = resources.files("keel_notebook.journal").joinpath("schema.sql").read_text("utf-8")
        with self._transaction():
            for statement in self._con.extract_statements(script):
                self._con.execute(statement)
        self._con.execute("CHECKPOINT")

    def _check_version(self) -> None:
        version = int(self._rows("SELECT max(version) FROM keel_schema")[0][0])
        if version > VERSION:
            raise NewerRecordError(f"schema version {version}")

    def _rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._con.execute(sql, list(parameters)).fetchall()

    def _insert(self, batch: list[Written]) -> None:
        # An older version of an entry never replaces a newer one, whatever order segments are read in.
        newer = self._rows(
            "SELECT e.entry FROM entries e"
            " JOIN (SELECT unnest(?::VARCHAR[]) AS entry, unnest(?::BIGINT[]) AS stamp) n ON e.entry = n.entry"
            " WHERE e.stamp > n.stamp",
            [[written.entry.entry for written in batch], [written.stamp for written in batch]],
        )
        passed = {ident for (ident,) in newer}
        batch = [written for written in batch if written.entry.entry not in passed]
        idents = [written.entry.entry for written in batch]
        self._con.execute("DELETE FROM entries WHERE entry IN (SELECT unnest(?::VARCHAR[]))", [idents])
        sources = [source(name, number) for number, name in enumerate(COLUMNS, start=1)]
        columns = [list(column) for column in zip(*map(row, batch), strict=True)]
        self._con.execute(
            f"INSERT INTO entries ({', '.join(COLUMNS)}) SELECT {', '.join(sources)}",
            columns or [[] for _ in COLUMNS],
        )

    def _lists(self, table: str, rows: list[list[Any]]) -> None:
        if rows:
            marks = ", ".join(f"unnest(${n})" for n in range(1, len(rows[0]) + 1))
            columns = [list(column) for column in zip(*rows, strict=True)]
            self._con.execute(f"INSERT INTO {table} SELECT {marks}", columns)


def _kernel_row(run: int, seen: RunSeen) -> list[Any]:
    start = seen.start
    place = [text(start.notebook), text(start.cwd)]
    return [run, text(start.host), start.pid, start.boot, start.started, *place, seen.end, seen.rss_last]


def _bodies(rows: Iterable[tuple[Any, ...]]) -> list[Stored]:
    return [Stored(stamp, fence, tuple(map(bytes, macs)), bytes(body)) for stamp, fence, macs, body in rows]
