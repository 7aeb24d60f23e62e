"""Values without a digest count by how they were made (DESIGN 5, Provenance; traps 3). A restart is a new process."""

import contextlib
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.crash

CLIENT = """
import threading
# ---
class Client:
    def __init__(self, model):
        self.model, self.lock, self.ready, self.cache = model, threading.Lock(), threading.Event(), {}
    def ask(self, text):
        self.ready.set()
        return self.cache.setdefault(text, f"{self.model}: {text}")
client = Client("m1"); prompts = ["a", "b"]
def helper(text): return client.ask(text)
# ---
%%keel_step first
hit("first"); answers = [helper(text) for text in prompts]
# ---
%%keel_step second
hit("second"); more = client.ask("c")
# ---
print(answers, more)
"""


def test_a_client_that_fills_itself_on_first_use(book):
    notebook = book(CLIENT)
    truth = "['m1: a', 'm1: b'] m1: c"
    for _ in range(3):
        assert notebook.shows() == truth
    assert notebook.hits == "first second"


def test_an_edit_counts_by_the_statement_that_it_touches(book):
    notebook = book(CLIENT)
    notebook.run_all()
    notebook.edit(1, "def helper(text): return client", "def helper(text):\n    # as before\n    return client")
    assert notebook.shows() == "['m1: a', 'm1: b'] m1: c"
    assert notebook.hits == "first second"
    notebook.edit(1, '["a", "b"]', '["a", "x"]')
    assert notebook.shows() == "['m1: a', 'm1: x'] m1: c"
    notebook.edit(1, 'Client("m1")', 'Client("m2")')
    for _ in range(2):
        assert notebook.shows() == "['m2: a', 'm2: x'] m2: c"
    assert notebook.hits == "first second first second first second"


class Way(NamedTuple):
    """A value without a digest, made in a plain cell; a step that reads it; an edit that makes another one."""

    name: str
    above: str
    step: str
    before: object
    after: object
    edit: tuple[str, str]


SQL = "c{n} = sqlite3.connect(':memory:'); c{n}.execute('create table t (v)')\n"
WAYS = [
    Way("pool", "p1 = ThreadPoolExecutor(2)", "p1._max_workers", 2, 3, ("(2)", "(3)")),
    Way("lock", "class A2:\n  def __init__(s, v): s.v, s.l = v, Lock()\na2 = A2(1)", "a2.v", 1, 2, ("A2(1)", "A2(2)")),
    Way("sql", SQL.format(n=3) + "c3.execute('insert into t values (5)')", "one(c3)", 5, 6, ("(5)", "(6)")),
    Way(
        *("cursor", SQL.format(n=4) + "u4 = c4.cursor()\nu4.execute('insert into t values (5)')", "one(c4)"),
        *(5, 6, ("(5)", "(6)")),
    ),
    Way(
        "kept",
        SQL.format(n=5) + "n5 = c5.execute('insert into t values (5)').rowcount",
        "one(c5)",
        5,
        6,
        ("(5)", "(6)"),
    ),
    Way("attribute", "e6 = Holder()\ne6.x = 1", "e6.x", 1, 2, ("= 1", "= 2")),
    Way("item", "e7 = Holder()\ne7.d['k'] = 1", "e7.d['k']", 1, 2, ("= 1", "= 2")),
    Way("called", "e8 = Holder()\ne8.set(1)", "e8.x", 1, 2, ("(1)", "(2)")),
    Way("helper", "m9 = 1\ndef make9(): return Holder(m9)\ne9 = make9()", "e9.x", 1, 2, ("m9 = 1", "m9 = 2")),
    Way("overwritten", "m10 = 1\ne10 = Holder(m10)\nm10 = 0", "e10.x", 1, 2, ("m10 = 1", "m10 = 2")),
    Way("branch", "f11 = False\ne11 = Holder(1)\nif f11: e11 = Holder(2)", "e11.x", 1, 2, ("False", "True")),
    Way("environment", "os.environ['U12'] = '1'\ne12 = Holder(os.environ['U12'])", "e12.x", "1", "2", ("'1'", "'2'")),
    Way(
        "environment_in_helper",
        "os.environ['U99'] = '1'\ndef address(): return os.getenv('U99')\ne99 = Holder(address())",
        "e99.x",
        "1",
        "2",
        ("= '1'", "= '2'"),
    ),
    Way("wrapped", "e13 = Holder(Holder(1))\ne13 = Holder(e13)", "e13.x.x.x", 1, 2, ("(1)", "(2)")),
    Way("with", "with Lock() as l14: e14 = Holder(1)", "e14.x", 1, 2, ("(1)", "(2)")),
    Way("named file", "e15 = Holder('cfg15.txt', read=True)", "e15.x", "1", "2", ("", "")),
    Way("lambda", "e16 = Holder(1)\ng16 = lambda: e16.x", "g16()", 1, 2, ("(1)", "(2)")),
    Way("list", "e17 = [Holder(1), {'k': Holder(2)}]", "e17[1]['k'].x", 2, 3, ("(2)", "(3)")),
]
HOLDER = """
import itertools, threading
class Holder:  # of an installed package: only its type can be seen
    def __init__(self, x=0, read=False):
        self.x, self.d, self.used = open(x).read() if read else x, {}, []
        self.lock = threading.Lock()
    def set(self, x): self.x = x
"""
TOP = """
import os, sqlite3, sys
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
sys.path.append("site-packages")
from keelholder import Holder
def one(c): return c.execute("select v from t").fetchone()[0]
"""


def test_every_way_in_which_such_a_value_can_differ(book):
    steps = [f'%%keel_step s{n}\nhit("{w.name}")\nr{n} = {w.step}' for n, w in enumerate(WAYS)]
    results = f"print([{', '.join(f'r{n}' for n in range(len(WAYS)))}])"
    notebook = book("")
    (notebook.folder / "site-packages").mkdir()
    (notebook.folder / "site-packages" / "keelholder.py").write_text(HOLDER)
    (notebook.folder / "cfg15.txt").write_text("1")
    above = [way.above for way in WAYS]
    notebook.cells = [TOP, *above, *steps, results]
    before, after = ([getattr(way, which) for way in WAYS] for which in ("before", "after"))
    for _ in range(2):
        assert notebook.shows() == str(before)
    assert sorted(notebook.hits.split()) == sorted(" ".join(way.name for way in WAYS).split())
    (notebook.folder / "cfg15.txt").write_text("2")
    notebook.cells[1 : 1 + len(WAYS)] = [way.above.replace(*way.edit) if way.edit[0] else way.above for way in WAYS]
    for _ in range(2):
        assert notebook.shows() == str(after)
    assert sorted(notebook.hits.split()) == sorted(" ".join(way.name for way in WAYS * 2).split())


STORE = """
import threading
class Store:
    def __init__(self): self.lock, self.rows = threading.Lock(), []
store = Store()
# ---
%%keel_step add
hit("add"); store.rows.append(5)
# ---
%%keel_step total
hit("total"); n = sum(store.rows)
# ---
print(n)
"""


def test_a_change_that_nobody_can_store_is_never_missing_from_a_result(book):
    notebook = book(STORE)
    for _ in range(2):
        assert notebook.shows() == "5"
    assert notebook.hits == "add total"
    notebook.edit(2, "sum(store.rows)", "2 * sum(store.rows)")
    refused = notebook.run_all()
    assert "E020" in refused.error
    assert "store (Store) was" in refused.error or "store.lock" in refused.error
    for _ in range(2):
        assert notebook.shows() == "10"
    assert notebook.hits == "add total add total"
    notebook.cells[3] = "def rows(): return store.rows\nprint(n, rows())"
    for _ in range(2):
        notebook.run_all()
    notebook.cells[3] = "print(n, store.rows)"
    for _ in range(2):
        assert notebook.shows() == "10 [5]"


DATABASE = """
import sqlite3, duckdb
lite, duck = sqlite3.connect(":memory:"), duckdb.connect()
lite.execute("create table t (v)"); duck.execute("create table t (v integer)")
# ---
%%keel_step add
hit("add")
lite.execute("insert into t values (5)"); duck.execute("insert into t values (6)")
# ---
%%keel_step total
hit("total"); n = [c.execute("select sum(v) from t").fetchone()[0] for c in (lite, duck)]
# ---
print(n)
"""


def test_nor_is_what_a_step_wrote_into_a_database_in_memory(book):
    notebook = book(DATABASE)
    for _ in range(2):
        assert notebook.shows() == "[5, 6]"
    assert notebook.hits == "add total"
    notebook.edit(2, "sum(v)", "-sum(v)")
    assert "E020" in notebook.run_all().error
    for _ in range(2):
        assert notebook.shows() == "[-5, -6]"
    assert notebook.hits == "add total add total"


LEFT_BY_STEPS = """
import threading
from concurrent.futures import ThreadPoolExecutor
# ---
%%keel_step res --always
hit("res"); pool = ThreadPoolExecutor(2)
# ---
class Holder:
    def __init__(self, pool): self.pool, self.lock = pool, threading.Lock()
held = Holder(pool)
# ---
%%keel_step use
hit("use"); n = len(list(held.pool.map(str, [1, 2])))
# ---
%%keel_step mk
hit("mk"); own = ThreadPoolExecutor(3)
# ---
%%keel_step follows
hit("follows"); m = own._max_workers
# ---
def lazy():
    global late
    late = threading.Lock()
lazy(); rest = (i for i in range(3))
# ---
%%keel_step unseen
hit("unseen"); k = late.locked()
# ---
%%keel_step used_up
hit("used_up"); q = next(rest)
# ---
print(n, m, k, q)
"""


def test_what_steps_leave_counts_by_their_record_and_resources_by_their_code(book):
    notebook = book(LEFT_BY_STEPS)
    for _ in range(2):
        assert notebook.shows() == "2 3 False 0"
    again = "res mk follows unseen used_up"  # what a resource makes, and what is made of it, is the same in every run
    assert notebook.hits == f"res use mk follows unseen used_up {again}"
    notebook.edit(1, "ThreadPoolExecutor(2)", "ThreadPoolExecutor(4)")
    notebook.run_all()
    assert notebook.hits == f"res use mk follows unseen used_up {again} res use mk follows unseen used_up"


FROM_BEFORE = """
connection = sqlite3.connect("base.sqlite")
# ---
%%keel_step reads
hit("reads"); n = connection.execute("select 1").fetchone()
# ---
print(n)
"""


def test_a_connection_made_with_a_module_that_came_with_the_cell_that_loads_keel(book, monkeypatch):
    monkeypatch.setattr("tests.support.forks.LOAD", "%load_ext keel_notebook\nimport sqlite3")
    notebook = book(FROM_BEFORE)
    for _ in range(2):
        assert notebook.shows() == "(1,)"
    assert notebook.hits == "reads"


@pytest.mark.parametrize("mark", ["", "%%keel_step co --always\n"], ids=["plain", "always"])
@pytest.mark.parametrize("library", ["sqlite3", "duckdb"])
def test_a_file_behind_a_connection_is_an_input_of_what_reads_through_it(book, library, mark):
    import importlib

    made = book(
        f"import {library}\n# ---\n{mark}con = {library}.connect('q.db')\n# ---\n"
        "%%keel_step a\nhit('a')\nrows = con.execute('select x from t').fetchall()\n# ---\nprint(rows)"
    )

    def write(x):
        with contextlib.closing(importlib.import_module(library).connect(str(made.folder / "q.db"))) as con:
            con.execute("drop table if exists t")
            con.execute("create table t (x int)")
            con.execute(f"insert into t values ({x})")
            con.commit()

    write(1)
    assert made.shows() == made.shows() == "[(1,)]"
    assert made.hits == "a"
    write(2)
    assert made.shows() == made.shows() == "[(2,)]"
    assert made.hits == "a a"


def test_what_a_step_writes_through_a_connection_does_not_make_it_execute_for_ever(book):
    made = book(
        "import sqlite3\ncon = sqlite3.connect('q.db')\n# ---\n"
        "%%keel_step a\nhit('a')\ncon.execute('create table if not exists t (x int)')\n"
        "con.execute('insert into t values (1)')\ncon.commit()\nn = 1\n# ---\nprint(n)"
    )
    assert made.shows() == made.shows() == "1"
    settled = made.hits  # once more at most: the connection was made from a file that was not there yet
    assert made.shows() == made.shows() == "1"
    assert made.hits == settled


@pytest.mark.parametrize("library", ["sqlite3", "duckdb"])
@pytest.mark.parametrize(
    ("made", "reads"),
    [
        ("pool = [con]", "pool[0].execute('select x from t').fetchall()"),
        ("app = {'db': {'main': con}}", "app['db']['main'].execute('select x from t').fetchall()"),
        ("class App: pass\napp = App(); app.db = con", "app.db.execute('select x from t').fetchall()"),
        ("import types; app = types.SimpleNamespace(db=con)", "app.db.execute('select x from t').fetchall()"),
        ("cur = [con.cursor()]", "cur[0].execute('select x from t').fetchall()"),
        ("def made(c): return lambda: c\nget = made(con)", "get().execute('select x from t').fetchall()"),
        ("get = lambda c=con: c", "get().execute('select x from t').fetchall()"),
        ("get = lambda: con", "get().execute('select x from t').fetchall()"),
        ("import functools; get = functools.partial(con.execute, 'select x from t')", "get().fetchall()"),
        ("get = con.execute", "get('select x from t').fetchall()"),
        ("t = con.table('t') if library == 'duckdb' else con", "rows_of(t)"),
        ("q = [con.sql('select x from t')] if library == 'duckdb' else con", "rows_of(q)"),
    ],
)
def test_so_is_one_behind_a_connection_that_lies_in_another_value(book, library, made, reads):
    import importlib

    nb = book(f"""
import {library}
library = {library!r}
def rows_of(t):
    if library == "sqlite3": return t.execute("select x from t").fetchall()
    return (t[0] if isinstance(t, list) else t).fetchall()
# ---
con = {library}.connect("q.db")
{made}
# ---
%%keel_step a
hit("a"); rows = {reads}
# ---
print(rows)
""")

    def write(x):
        with contextlib.closing(importlib.import_module(library).connect(str(nb.folder / "q.db"))) as con:
            con.execute("drop table if exists t")
            con.execute("create table t (x int)")
            con.execute(f"insert into t values ({x})")
            con.commit()

    write(1)
    assert nb.shows() == nb.shows() == "[(1,)]"
    assert nb.hits == "a" or "con.execute" in made
    write(2)
    assert nb.shows() == "[(2,)]"
