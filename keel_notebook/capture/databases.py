"""The files behind an open database connection: what a step reads through it, it reads from them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any


def files_behind(value: Any) -> tuple[str, ...]:
    """Absolute paths of the database files that a connection or cursor has open; none for one in memory.

    Asks through a cursor of its own, so that what the person fetches stays as it is.
    """
    ask = next((_ASK[name] for name in map(_name, type(value).__mro__) if name in _ASK), None)
    try:
        return tuple(str(path) for path in ask(value) if path) if ask is not None else ()
    except Exception:  # noqa: BLE001 - closed, busy, of another thread: then nobody can tell
        return ()


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__name__}"


def _sqlite(value: Any) -> Iterable[str]:
    cursor = sys.modules["sqlite3"].Connection.cursor(value)
    cursor.row_factory = None
    return [path for _, _, path in cursor.execute("pragma database_list").fetchall()]


def _sqlite_cursor(value: Any) -> Iterable[str]:
    return _sqlite(value.connection)


def _duckdb(value: Any) -> Iterable[str]:
    with value.cursor() as cursor:
        return [path for (path,) in cursor.execute("select path from duckdb_databases() where not internal").fetchall()]


_ASK: dict[str, Callable[[Any], Iterable[str]]] = {
    "sqlite3.Connection": _sqlite,
    "sqlite3.Cursor": _sqlite_cursor,
    "_duckdb.DuckDBPyConnection": _duckdb,
    "duckdb.duckdb.DuckDBPyConnection": _duckdb,
    "duckdb.DuckDBPyConnection": _duckdb,
}
