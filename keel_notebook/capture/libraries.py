"""State that a library keeps behind no variable: DuckDB's default connection (DESIGN 6).

A few small tables in memory are compared by what they hold. With more in it, or with files, views and settings, it
cannot be compared: then a step that uses the library executes every time, as does one that changes what is in it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from keel_notebook.core.ids import text_digest
from keel_notebook.core.ports import Digested
from keel_notebook.core.reads import CellNames

DUCKDB = "duckdb.default_connection"
_EMPTY = Digested(text_digest("nothing in it"))
_FULL = Digested(None, reason="tables and settings of a connection cannot be compared")
_COUNT = """
select (select count(*) from duckdb_views() where not internal)
    + (select count(*) from duckdb_functions() where not internal)
    + (select count(*) from duckdb_sequences())
    + (select count(*) from duckdb_types() where not internal)
    + (select count(*) from duckdb_databases() where not internal and path is not null)
"""
_TABLES = """
select database_name, schema_name, table_name, sql from duckdb_tables() where not internal order by all
"""
_MOST_TABLES, _MOST_ROWS = 20, 5_000
_OWN_TO_A_CONNECTION = frozenset(
    {"temp", "temporary", "set", "pragma", "use", "load", "install", "prepare", "begin", "transaction"}
)
"""Words of SQL that change what only the connection itself can see, and nobody from beside it."""


class LibraryState:
    """What libraries keep, in one kernel."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._unseen = False

    def note(self, cell: CellNames) -> None:
        """A cell was executed: what it put into a default connection may be seen by no look."""
        if self._uses_duckdb(cell.mentioned, cell.modules):
            words = {word.lower() for word in cell.hidden.words}
            registers = any(chain.endswith(".register") and self._is_duckdb(chain[:-9]) for chain in cell.chains)
            self._unseen = self._unseen or registers or not words.isdisjoint(_OWN_TO_A_CONNECTION)

    def used_by(self, names: Iterable[str], modules: Iterable[str]) -> set[str]:
        """The states that code with these names and imports may use, each under a dotted name."""
        return {DUCKDB} if self._uses_duckdb(names, modules) else set()

    def look(self, digest: Callable[[Any], Digested]) -> Digested:
        """Equal to itself while little is there, and just that; else unknown. ``digest`` is the digester's own way."""
        duckdb = sys.modules.get("duckdb")
        if self._unseen:
            return _FULL
        if duckdb is None:
            return _EMPTY
        try:  # beside the connection: what the person fetches next from it stays where it is
            beside = duckdb.default_connection().cursor()
            held = None if beside.execute(_COUNT).fetchall()[0][0] else _held(beside)
        except Exception:  # noqa: BLE001 a closed or broken connection, an old version: nobody can tell
            return _FULL
        return _FULL if held is None else digest(held) if held else _EMPTY

    def _uses_duckdb(self, names: Iterable[str], modules: Iterable[str]) -> bool:
        return any(map(self._is_duckdb, names)) or any(module.partition(":")[0] == "duckdb" for module in modules)

    def _is_duckdb(self, name: str) -> bool:
        value = self._namespace.get(name)
        return type(value) is ModuleType and value.__name__ == "duckdb"


def _held(connection: Any) -> list[str] | None:
    """What the tables hold, as texts; None where that is much."""
    tables = connection.execute(_TABLES).fetchall()
    held: list[str] = []
    left = _MOST_ROWS
    for *path, sql in tables[: _MOST_TABLES + 1]:
        name = ".".join('"' + part.replace('"', '""') + '"' for part in path)
        rows = connection.execute(f"select * from {name} limit {left + 1}").fetchall()  # noqa: S608 - its own names
        left -= len(rows)
        held += [name, sql, repr(rows)]
    return held if left >= 0 and len(tables) <= _MOST_TABLES else None
