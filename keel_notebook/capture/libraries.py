"""State that a library keeps behind no variable: DuckDB's default connection (DESIGN 6).

What is in it cannot be compared. While it is empty it is an input like any other; a step that uses the library and
meets or leaves something there executes every time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from keel_notebook.core.ids import text_digest
from keel_notebook.core.ports import Digested
from keel_notebook.core.reads import CellNames

DUCKDB = "duckdb.default_connection"
_EMPTY = Digested(text_digest("nothing in it"))
_FULL = Digested(None, reason="tables and settings of a connection cannot be compared")
_COUNT = """
select (select count(*) from duckdb_tables() where not internal)
    + (select count(*) from duckdb_views() where not internal)
    + (select count(*) from duckdb_functions() where not internal)
    + (select count(*) from duckdb_databases() where not internal and path is not null)
"""
_OWN_TO_A_CONNECTION = frozenset({"temp", "temporary", "set", "pragma", "attach", "load", "install", "prepare"})
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

    def look(self) -> Digested:
        """Equal to itself while nothing is there; else unknown."""
        duckdb = sys.modules.get("duckdb")
        if self._unseen:
            return _FULL
        if duckdb is None:
            return _EMPTY
        try:  # beside the connection: what the person fetches next from it stays where it is
            count = duckdb.default_connection().cursor().execute(_COUNT).fetchall()[0][0]
        except Exception:  # noqa: BLE001 a closed or broken connection, an old version: nobody can tell
            return _FULL
        return _FULL if count else _EMPTY

    def _uses_duckdb(self, names: Iterable[str], modules: Iterable[str]) -> bool:
        return any(map(self._is_duckdb, names)) or any(module.partition(":")[0] == "duckdb" for module in modules)

    def _is_duckdb(self, name: str) -> bool:
        value = self._namespace.get(name)
        return type(value) is ModuleType and value.__name__ == "duckdb"
