"""Tables and limits that a step names only in pieces of a query, or in queries kept in containers (traps 5).

Each runs, replays, and executes once the table or limit is another one; compared with the same cells without keel.
"""

import pytest

from tests.cases.test_files import LIBRARIES, step
from tests.cases.test_rewritten_files import Pair
from tests.crash.shells import Zygote

pytestmark = pytest.mark.kernel

ONE, TWO = "df = pd.DataFrame({'v': [1, 2]})", "df = pd.DataFrame({'v': [1, 5]})"
SUM = "duckdb.sql(f'select sum(v) from {t}').fetchall()"
QUERIES = {
    "the table's name in a variable": ("t = 'df'", f"v = {SUM}"),
    "in a list": ("ts = ['df']", f"v = [{SUM} for t in ts]"),
    "in a dict of lists": ("ts = {'a': ['df']}", f"v = [{SUM} for t in ts['a']]"),
    "in a constant of the step": ("", f"v = [{SUM} for t in ('df',)]"),
    "given to a helper": (f"def total(t): return {SUM}", "v = total('df')"),
    "concatenated": ("", "v = duckdb.sql('select sum(v) from ' + 'df').fetchall()"),
    "formatted": ("", "v = duckdb.sql('select sum(v) from {}'.format('df')).fetchall()"),
    "a list of queries": ("qs = ['select sum(v) from df']", "v = [duckdb.sql(q).fetchall() for q in qs]"),
    "a dict of queries": ("qs = {'a': 'select sum(v) from df'}", "v = [duckdb.sql(q).fetchall() for q in qs.values()]"),
    "a query of polars": (
        "pf, t = pl.DataFrame(df.to_dict('list')), 'pf'",
        "v = pl.sql(f'select sum(v) s from {t}').collect()['s'][0]",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def zygote():
    process = Zygote(*LIBRARIES)
    yield process
    process.close()


@pytest.mark.parametrize("way", QUERIES)
def test_a_table_that_is_named_in_pieces_is_an_input(zygote, tmp_path, way):
    pair, (above, body) = Pair(zygote, tmp_path), QUERIES[way]
    for table, executed in ((ONE, ["use"]), (ONE, []), (TWO, ["use"]), (TWO, [])):
        assert pair.run(f"{table}\n{above}", step("use", body)) == executed


def test_a_limit_that_a_list_of_conditions_names_is_an_input(zygote, tmp_path):
    pair = Pair(zygote, tmp_path)
    for limit, executed in ((1, ["use"]), (1, []), (0, ["use"])):
        cells = [f"{ONE}\nt = {limit}\nqs = ['v > @t']", step("use", "v = [len(df.query(q)) for q in qs]")]
        assert pair.run(*cells) == executed


def test_a_word_that_is_no_part_of_a_query_is_no_input(zygote, tmp_path):
    """``splits["train"]`` is not the frame ``train``."""
    pair = Pair(zygote, tmp_path)
    for number, executed in ((1, ["use"]), (2, [])):
        cells = [
            f"train = pd.DataFrame({{'v': [{number}]}})\nsplits = {{'train': 3}}",
            step("use", "v = splits['train']"),
        ]
        assert pair.run(*cells) == executed
