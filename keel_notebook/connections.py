"""What an open database connection tells of itself: the files behind it, and what it holds in memory.

Asked through a cursor of its own, so that what the person fetches stays as it is. A library that was not imported has
made no connection; nothing is imported here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

_TABLES = """
    select database_name, schema_name, table_name, estimated_size, column_count, t.sql
    from duckdb_tables() t join duckdb_databases() d using (database_name) where d.path is null and not d.internal
    union all
    select database_name, schema_name, view_name, 0, column_count, v.sql
    from duckdb_views() v join duckdb_databases() d using (database_name) where d.path is null and not v.internal
    order by all
"""


class _Library(Struct, frozen=True):
    """How a library's connections are asked. What it raises means that nobody can tell: closed, busy, of a thread."""

    files: Callable[[Any], Iterable[str | None]]
    memory: Callable[[Any], str]


def is_connection(kind: type) -> bool:
    """Whether objects of a type are connections, or lead to one (a cursor, a relation)."""
    return any(name in _KNOWN for name in map(_name, kind.__mro__))


def files_behind(value: Any) -> tuple[str, ...]:
    """Absolute paths of the database files that a connection, cursor or relation has open; none for one in memory."""
    connection, library = _asked(value)
    try:
        return tuple(str(path) for path in library.files(connection) if path) if library is not None else ()
    except Exception:  # noqa: BLE001 - see _Library
        return ()


def in_memory(value: Any) -> str:
    """A text that is another one after a change of the database behind a connection; "" where it lies in a file.

    For sqlite3 every change counts; for DuckDB tables, views and their numbers of rows do, an UPDATE does not.
    """
    connection, library = _asked(value)
    try:
        return library.memory(connection) if library is not None and connection is value else ""
    except Exception:  # noqa: BLE001 - see _Library
        return ""


def _asked(value: Any) -> tuple[Any, _Library | None]:
    """The connection that a value is or leads to, and how it is asked."""
    for name in map(_name, type(value).__mro__):
        if name in _KNOWN:
            attribute, library = _KNOWN[name]
            return (getattr(value, attribute, None) if attribute else value), library
    return None, None


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"


def _sqlite_files(connection: Any) -> list[str]:
    cursor = sys.modules["sqlite3"].Connection.cursor(connection)
    cursor.row_factory = None
    return [path for _, _, path in cursor.execute("pragma database_list").fetchall()]


def _sqlite_memory(connection: Any) -> str:
    if any(_sqlite_files(connection)):
        return ""
    cursor = sys.modules["sqlite3"].Connection.cursor(connection)
    cursor.row_factory = None
    (version,) = cursor.execute("pragma schema_version").fetchone()
    return f"{version} {connection.total_changes}"


def _duckdb_files(connection: Any) -> list[str]:
    with connection.cursor() as cursor:
        return [path for (path,) in cursor.execute("select path from duckdb_databases() where not internal").fetchall()]


def _duckdb_memory(connection: Any) -> str:
    with connection.cursor() as cursor:
        return str(cursor.execute(_TABLES).fetchall())


_SQLITE = _Library(_sqlite_files, _sqlite_memory)
_DUCKDB = _Library(_duckdb_files, _duckdb_memory)
_KNOWN: dict[str, tuple[str, _Library]] = {
    "sqlite3.Connection": ("", _SQLITE),
    "sqlite3.Cursor": ("connection", _SQLITE),
    "_duckdb.DuckDBPyConnection": ("", _DUCKDB),
    "duckdb.duckdb.DuckDBPyConnection": ("", _DUCKDB),
    "duckdb.DuckDBPyConnection": ("", _DUCKDB),
    "duckdb._relation.DuckDBPyRelation": ("_con", _DUCKDB),
}
"""By the name of a type: the attribute that leads to the connection, and its library."""
