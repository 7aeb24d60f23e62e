"""What cells keep in DuckDB's default connection, which stands behind no name (DESIGN 6; T16)."""

import pytest

from tests.cases.test_files import LIBRARIES, step
from tests.cases.test_rewritten_files import Pair
from tests.crash.shells import Zygote

pytestmark = pytest.mark.kernel

USE = step("use", "v = duckdb.sql('select sum(a) from t').fetchall()")
SMALL = {
    "a table": ("_ = duckdb.sql('create or replace table t as select {n} a')", USE),
    "a table that was filled": (
        "_ = duckdb.sql('create or replace table t (a int)'); _ = duckdb.sql('insert into t values ({n})')",
        USE,
    ),
    "a table in a schema": (
        "_ = duckdb.sql('create schema if not exists s; create or replace table s.t as select {n} a')",
        step("use", "v = duckdb.sql('select sum(a) from s.t').fetchall()"),
    ),
    "an attached database in memory": (
        "_ = duckdb.sql(\"attach ':memory:' as m; create or replace table m.t as select {n} a\")",
        step("use", "v = duckdb.sql('select sum(a) from m.t').fetchall()"),
    ),
}


@pytest.fixture(scope="module")
def zygote():
    process = Zygote(*LIBRARIES)
    yield process
    process.close()


@pytest.mark.parametrize("way", SMALL)
def test_small_tables_in_memory_count_by_what_they_hold(zygote, tmp_path, way):
    pair, (above, use) = Pair(zygote, tmp_path), SMALL[way]
    for number, executed in ((1, ["use"]), (1, []), (2, ["use"]), (2, [])):
        assert pair.run(above.format(n=number), use) == executed


UNSURE = {
    "a view": ("_ = duckdb.sql('create or replace view t as select {n} a')", USE),
    "a macro": (
        "_ = duckdb.sql('create or replace macro m() as {n}')",
        step("use", "v = duckdb.sql('select m()').fetchall()"),
    ),
    "many rows": ("_ = duckdb.sql('create or replace table t as select range + {n} a from range(6000)')", USE),
    "updated": (
        "_ = duckdb.sql('create or replace table t as select 1 a'); _ = duckdb.sql('update t set a = {n}')",
        USE,
    ),
    "a sequence": (
        "_ = duckdb.sql('create sequence q start {n}')",
        step("use", "v = duckdb.sql(\"select nextval('q')\").fetchall()"),
    ),
    "a type": (
        "_ = duckdb.sql(\"create type e as enum ('a{n}')\")",
        step("use", "v = duckdb.sql('select enum_range(null::e)').fetchall()"),
    ),
    "another schema in use": (
        "_ = duckdb.sql('create schema if not exists s{n}; create or replace table s{n}.t as select {n} a; use s{n}')",
        USE,
    ),
    "a transaction": ("_ = duckdb.sql('begin'); _ = duckdb.sql('create or replace table t as select {n} a')", USE),
}


@pytest.mark.parametrize("way", UNSURE)
def test_what_cannot_be_compared_there_executes_every_time(zygote, tmp_path, way):
    pair, (above, use) = Pair(zygote, tmp_path), UNSURE[way]
    for number in (1, 1, 2):
        assert pair.run(above.format(n=number), use) == ["use"]


def test_a_step_that_changes_it_executes_every_time(zygote, tmp_path):
    pair = Pair(zygote, tmp_path)
    make = step("make", "_ = duckdb.sql('create or replace table t as select 1 a'); v = 0")
    for _ in range(2):
        assert "make" in pair.run("pass", make, "print(duckdb.sql('from t').fetchall())")
