"""Names in strings (traps 5): found where they are read, and not where prose only looks like it."""

from __future__ import annotations

import pytest

from keel_notebook.core.hidden import A_VALUE, Text
from keel_notebook.core.reads import hidden_names
from tests.cell.reading import names_of

EXISTING = {
    "df": "frame",
    "sales": "table",
    "x": "array",
    "y": "array",
    "rel": "relation",
    "t": "plain",
    "thresh": "plain",
    "name": "plain",
    "np": "module",
    "Model": "class",
    "log1p": "plain",
    "data": "frame",
}


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("duckdb.sql('select sum(v) from df').fetchall()", {"df"}),
        (
            'duckdb.sql("""\n  -- totals\n  WITH a AS (SELECT * FROM df) SELECT * FROM a JOIN sales USING (k)""")',
            {"df", "sales"},
        ),
        ("con.execute('select * from \"df\" where v > ?', [t])", {"df"}),
        ("q = 'SELECT * FROM df'", {"df"}),
        ("q = 'from rel select t'", {"rel"}),
        ("duckdb.sql(f'select * from {table} join df using (k)')", {"df"}),
        ("con.execute('select * from sales where v > :thresh')", {"sales", "thresh"}),
        ("con.execute('select a::int, b[1:2] from sales')", {"sales"}),
        ("frame.query('v > @thresh and @t < w')", {"thresh", "t"}),
        ("frame.query('x > 3')", {"x"}),
        ("e = 'v > @thresh'", {"thresh"}),
        ("smf.ols('y ~ x + log1p(t)', data=frame)", {"y", "x", "log1p", "t"}),
        ("f = 'y ~ x'", {"y", "x"}),
        ("pd.eval('df.a + data.b')", {"df", "data"}),
        ("ne.evaluate('x * 2 + y')", {"x", "y"}),
        ("con.table('df')", {"df"}),
        ("%sql select * from df where v > {{thresh}}", {"df", "thresh"}),
        ("%%sql\nselect *\nfrom df\nwhere v > $thresh", {"df", "thresh"}),
        ("%%R -i df\nsummary(df)", {"df"}),
        ("%Rpush name", {"name"}),
        ("def q(): return duckdb.sql('from df')\nq()", {"df"}),
        ("path = 'out/$name.csv'", {"name"}),
        ("path = 'out/{name}.csv'", {"name"}),
    ],
)
def test_trap_5_names_in_strings_are_read(cell: str, found: set[str]) -> None:
    assert names_of(cell).hidden.among(EXISTING) == found


@pytest.mark.parametrize(
    "cell",
    [
        "print('the data of df in x and y')",
        "prompt = 'Select the best df from the data'",
        "prompt = 'With df we see data; from df we learn'",
        "s = 'mail me at someone@t.de, or @home'",
        "s = 'http://host:8080/x:t and 12:30'",
        "plt.title('$x$ against $y_1$')",
        "label = r'$\\frac{x}{y}$'",
        "s = '{x} {y}'.format(x=1, y=2)",
        "tmpl = Template('$name').substitute(name='a')",
        "re.sub(r'(?P<x>a){2}', r'\\g<x>', s)",
        "s = '{{x}} {\"x\": 1}'",
        "'df from x'",
        '"""select * from df"""',
        "def f():\n    'select * from df'\nf()",
        "def f(): return duckdb.sql('from df')",
        "%%bash\nfor x in $y; do echo $x; done",
        "%%html\n<b>{x}</b>",
        "s = 'np @Model'",
        "df = load()\nduckdb.sql('select * from df')",
        "def f():\n    return duckdb.sql('select * from df')\ndf = load()\nf()",
    ],
)
def test_trap_5_false_alarms_stay_silent(cell: str) -> None:
    assert names_of(cell).hidden.among(EXISTING) == set()


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("select * from df where v > $t", {"df", "t"}),
        ("v > @thresh", {"thresh"}),
        ("Summarise {name} in $t words", set()),
        ("y ~ x", {"y", "x"}),
    ],
)
def test_strings_that_a_cell_reads_name_things_too(value: str, found: set[str]) -> None:
    assert hidden_names([Text(value, A_VALUE)], EXISTING) == found
