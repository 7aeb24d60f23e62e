"""What a database in memory holds, as far as its connection tells: it goes with the process, and no step can keep it.

A database in a file is another thing: what it holds is still there after a restart, and its file is an input of the
steps that read through the connection (``capture/databases.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_TABLES = """
    select database_name, schema_name, table_name, estimated_size, column_count, t.sql
    from duckdb_tables() t join duckdb_databases() d using (database_name) where d.path is null and not d.internal
    union all
    select database_name, schema_name, view_name, 0, column_count, v.sql
    from duckdb_views() v join duckdb_databases() d using (database_name) where d.path is null and not v.internal
    order by all
"""


def in_memory(value: Any) -> str:
    """A text that is another one after a change of the database behind a connection; "" where it lies in a file.

    For sqlite3 every change counts; for DuckDB tables, views and their numbers of rows do, an UPDATE does not.
    """
    cls = type(value)
    ask = next((_ASK[name] for name in map(_name, cls.__mro__) if name in _ASK), None)
    try:
        return ask(value) if ask is not None else ""
    except Exception:  # noqa: BLE001 - closed, busy, of another thread: then its type is all there is
        return ""


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__name__}"


def _sqlite(value: Any) -> str:
    connection = sys.modules["sqlite3"].Connection
    cursor = connection.cursor(value)
    cursor.row_factory = None
    if any(file for _, _, file in cursor.execute("pragma database_list").fetchall()):
        return ""
    (version,) = cursor.execute("pragma schema_version").fetchone()
    return f"{version} {value.total_changes}"


def _duckdb(value: Any) -> str:
    with value.cursor() as cursor:  # another one on the same database: what the person fetches from stays as it is
        return str(cursor.execute(_TABLES).fetchall())


_ASK: dict[str, Callable[[Any], str]] = {
    "sqlite3.Connection": _sqlite,
    "_duckdb.DuckDBPyConnection": _duckdb,
    "duckdb.duckdb.DuckDBPyConnection": _duckdb,
    "duckdb.DuckDBPyConnection": _duckdb,
}
