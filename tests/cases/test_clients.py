"""Durable calls whose function uses a client, a lock or a counter (C71, C77; DESIGN 5, Undigestible values).

Every restart is a new process, and the first one is really killed, after four of six calls.
"""

from typing import NamedTuple

import pytest

pytestmark = pytest.mark.crash

ITEMS = [f"p{n}" for n in range(6)]
BOOK = """
import keel_notebook as keel, os, threading
# ---
{above}
# ---
{ask}
# ---
%%keel_step answers
{body}out = {first}
if not os.path.exists("go"): os.kill(os.getpid(), 9)
out += {rest}
# ---
print(out)
"""
HTTP = """
import threading
class Client:  # of an installed package: only its type can be seen
    def __init__(self, base="b"):
        self.base, self.lock, self.used = base, threading.Lock(), 0
    def get(self, p):
        with self.lock: self.used += 1
        return self.base + p
    async def aget(self, p): return self.get(p)
    def close(self): pass
class Lazy:
    def __init__(self, base="b"): self.base, self.connection = base, None
    def get(self, p):
        self.connection = self.connection or threading.Lock()
        return self.base + p
"""
OWN = """
class Api:
    def __init__(self, base): self.base, self.s, self.n, self.token, self.lazy = base, Client("in"), 0, "", None
    def get(self, p):
        self.n += 1; self.token = "t" + p; self.lazy = self.lazy or Client()
        return self.base + p
api = Api("b")
"""
MAP = "keel.map(ask, {}, max_workers=2)"
CALL = "[keel.call(ask, p) for p in {}]"
GATHER = "await keel.gather(*[keel.defer(ask, p) for p in {}])"
GET = "def ask(p):\n    hit(p)\n    return {}.get(p)"


class Way(NamedTuple):
    """A client that a plain cell makes, a function that uses it, and an edit after which every answer is another."""

    name: str
    above: str
    ask: str
    call: str
    edit: tuple[str, str] = ("Client()", "Client('c')")
    body: str = ""


SESSION = "import requests\ns = requests.Session(); s.headers['base'] = 'b'"
COOKIES = "def ask(p):\n    hit(p); s.cookies.set('seen', p)\n    return s.headers['base'] + p"
LOCK = "lock = threading.Lock(); base = 'b'"
WAYS = [
    Way("client", "c = Client()", GET.format("c"), MAP),
    Way("client in calls", "c = Client()", GET.format("c"), CALL),
    Way("session with cookies", SESSION, COOKIES, MAP, ("'b'", "'c'")),
    Way("session in calls", SESSION, COOKIES, CALL, ("'b'", "'c'")),
    Way("lock", LOCK, "def ask(p):\n    with lock: hit(p)\n    return base + p", MAP, ("'b'", "'c'")),
    Way(
        *("semaphore", "class A:\n    def __init__(s, b): s.b, s.sem = b, threading.Semaphore(2)\na = A('b')"),
        *("def ask(p):\n    with a.sem: hit(p)\n    return a.b + p", MAP, ("'b'", "'c'")),
    ),
    Way("own class", OWN, GET.format("api"), MAP, ('Api("b")', 'Api("c")')),
    Way("own class in calls", OWN, GET.format("api"), CALL, ('Api("b")', 'Api("c")')),
    Way("method", "c = Client()", "def ask(p):\n    hit(p)\n    return c.get(p)\nask = ask", CALL),
    Way("dict", "cs = {'k': Client()}", GET.format("cs['k']"), MAP),
    Way("default", "", GET.format("c").replace("(p):", "(p, c=Client()):"), MAP),
    Way(
        "closure",
        "",
        "def make(c):\n    def ask(p):\n        hit(p)\n        return c.get(p)\n    return ask\nask = make(Client())",
        MAP,
    ),
    Way(
        "argument",
        "c = Client()",
        "def ask(c, p):\n    hit(p)\n    return c.get(p)",
        "[keel.call(ask, c, p) for p in {}]",
    ),
    Way(
        "inner lambda",
        "c = Client()",
        "def ask(d, p):\n    hit(p)\n    return d.get(p)",
        "(lambda d: keel.map(lambda p: ask(d, p), {}))(c)",
    ),
    Way("async", "c = Client()", "async def ask(p):\n    hit(p)\n    return await c.aget(p)", GATHER),
    Way("helper", "b = 'b'\ndef make(): return Client(b)\nc = make()", GET.format("c"), MAP, ("= 'b'", "= 'c'")),
    Way("configured", "c = Client()\nc.base = 'b'", GET.format("c"), MAP, ("= 'b'", "= 'c'")),
    Way("opened on first use", "c = Lazy()", GET.format("c"), CALL, ("Lazy()", "Lazy('c')")),
    Way("durable", "c = Client()", "@keel.durable\n" + GET.format("c"), "[ask(p) for p in {}]"),
    Way("in the step", "", GET.format("c"), MAP, body="c = Client()\n"),
    Way("set in the step", "c = Client()", GET.format("c"), MAP, ("= 'b'", "= 'c'"), body="c.base = 'b'\n"),
]


def made(book, way):
    notebook = book("")
    library = notebook.folder / "site-packages"
    library.mkdir()
    (library / "keelhttp.py").write_text(HTTP)
    top = "import sys\nsys.path.append('site-packages')\nfrom keelhttp import Client, Lazy\n"
    first, rest = (way.call.format(part) for part in (ITEMS[:4], ITEMS[4:]))
    text = BOOK.format(above=top + way.above, ask=way.ask, body=way.body, first=first, rest=rest)
    notebook.cells = [part.strip("\n") for part in text.split("# ---\n")]
    return notebook


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_client_that_the_same_cell_made_owes_only_what_is_missing_and_an_edited_one_owes_all(book, way):
    notebook = made(book, way)
    died = notebook.run_all()
    assert died.signal == 9, died.error
    assert sorted(notebook.hits.split()) == ITEMS[:4]
    (notebook.folder / "go").touch()
    for _ in range(2):
        assert notebook.shows() == str(["b" + p for p in ITEMS])
        assert sorted(notebook.hits.split()) == ITEMS, "the first four came from their records"
    (at,) = [at for at, cell in enumerate(notebook.cells) if way.edit[0] in cell]
    notebook.edit(at, *way.edit)
    assert notebook.shows() == str(["c" + p for p in ITEMS])
    assert sorted(notebook.hits.split()) == sorted(ITEMS * 2)


PLAIN = """
import keel_notebook as keel, collections, sys, threading
sys.path.append("site-packages")
from keelhttp import Client
# ---
{above}
# ---
%%keel_step answers
{call}
# ---
{below}
"""


def small(book, above, call, below="print(out)"):
    notebook = book("")
    (notebook.folder / "site-packages").mkdir()
    (notebook.folder / "site-packages" / "keelhttp.py").write_text(HTTP)
    notebook.cells = [part.strip("\n") for part in PLAIN.format(above=above, call=call, below=below).split("# ---\n")]
    return notebook


COUNTS = [
    "n = collections.Counter()\ndef ask(p):\n    n['c'] += 1; return n['c']",
    "n = {'c': 0}\ndef ask(p):\n    n['c'] += 1; return n['c']",
    "n = collections.defaultdict(int)\ndef ask(p):\n    n['c'] += 1; return n['c']",
    "class N:\n    __slots__ = ('c',)\n    def __getitem__(s, k): return s.c\nn = N(); n.c = 0\n"
    "def ask(p):\n    n.c += 1; return n.c",
    "class Store:\n    def __init__(s): s.lock, s.rows = threading.Lock(), []\n"
    "    def __getitem__(s, k): return len(s.rows)\nn = Store()\n"
    "def ask(p):\n    with n.lock: n.rows.append(p)\n    return len(n.rows)",
    "import sqlite3\ndb = sqlite3.connect(':memory:', check_same_thread=False)\ndb.execute('create table t (v)')\n"
    "class N:\n    def __getitem__(s, k): return db.execute('select count(*) from t').fetchone()[0]\nn = N()\n"
    "def ask(p):\n    db.execute('insert into t values (1)'); return n['c']",
]


@pytest.mark.parametrize("call", ["[keel.call(ask, p) for p in 'abc']", "keel.map(ask, 'abc', max_workers=1)"])
@pytest.mark.parametrize("above", COUNTS)
def test_what_a_call_changes_in_data_never_fails_its_cell_and_is_never_missing_from_what_is_read(book, above, call):
    notebook = small(
        book, above, f"out = {call}\nseen = n['c']\nif open('go', 'a').tell() == 0: hit('x')", "print(seen)"
    )
    for edit in ("seen = n['c']", "seen = n['c'] + 0", "seen = n['c'] - 0"):
        notebook.cells[2] = notebook.cells[2].replace("seen = n['c']\n", edit + "\n")
        assert notebook.shows() == "3"


WRONG = [
    ("another cell binds it again", "c = Client()\n", "c = Client('c')"),
    ("another cell sets it", "c = Client()\n", "c.base = 'c'"),
    ("another cell tells it", "c = Client()\ndef tell(c, b): c.base = b\n", "tell(c, 'c')"),
    ("a call logs in", "c = Client()\ndef login(b): c.base = b\n", "keel.call(login, 'c')"),
    ("a call logs an argument in", "c = Client()\ndef login(c, b): c.base = b\n", "keel.call(login, c, 'c')"),
]


# What a durable call of a plain cell does to a client that it does not name, no step sees; the running cell does.
WHERE = [(*row, inside) for row in WRONG for inside in (False, True) if inside or row[0] != "a call logs in"]


@pytest.mark.parametrize(
    ("above", "change", "inside"), [row[1:] for row in WHERE], ids=[f"{row[0]}-{row[3]}" for row in WHERE]
)
def test_a_client_that_is_made_to_be_another_one_is_asked_anew(book, above, change, inside):
    """What the code above the call does to it counts, in another cell and in the running one."""
    call = "out = keel.map(ask, 'ab', max_workers=1)"
    ask = "def ask(p):\n    hit(p)\n    return c.get(p)"
    notebook = small(book, above + ask, call)
    assert notebook.shows() == "['ba', 'bb']"
    if inside:
        notebook.cells[2] = notebook.cells[2].replace("out =", change + "\nout =")
    else:
        notebook.cells.insert(2, change)
    for _ in range(2):
        assert notebook.shows() == "['ca', 'cb']"
        notebook.edit(-2, "'ab'", "['a', 'b']")
        assert notebook.shows() == "['ca', 'cb']"
        notebook.edit(-2, "['a', 'b']", "'ab'")


def test_steps_that_use_one_session_replay_although_its_cookies_change(book):
    notebook = small(
        book,
        SESSION + "\n" + COOKIES,
        "out = keel.map(ask, 'ab')",
        "%%keel_step more\nhit('more'); more = [ask(p) for p in 'cd']\n# ---",
    )
    notebook.cells.append("print(out, more)")
    for _ in range(3):
        assert notebook.shows() == "['ba', 'bb'] ['bc', 'bd']"
    assert sorted(notebook.hits.split()) == ["a", "b", "c", "d", "more"]


SETS = {
    "call": ("def configure(s): s.headers['X'] = 'old'", "configure(s)"),
    "result": ("def configure(s):\n    s.headers['X'] = 'old'\n    return True", "ok = configure(s)"),
    "value": ("X = 'old'", "s.headers['X'] = X"),
    "value in a function": ("X = 'old'\ndef configure(s): s.headers['X'] = X", "configure(s)"),
    "alias": ("h = s.headers\nX = 'old'", "h['X'] = X"),
    "loop": ("def configure(s): s.headers['X'] = 'old'", "for c in [s]: configure(c)"),
    "comprehension": ("def configure(s): s.headers['X'] = 'old'", "_ = [configure(c) for c in (s,)]"),
}


@pytest.mark.parametrize("way", SETS)
def test_what_a_session_holds_beside_its_cookies_counts_whoever_set_it(book, way):
    notebook = book("")
    step = "%%keel_step asks\nhit('asks'); s.cookies.set('seen', 'yes'); r = s.headers['X']"
    notebook.cells = ["import requests\ns = requests.Session()", *SETS[way], step, "print(r)"]
    for _ in range(2):
        assert notebook.shows() == "old"
    assert notebook.hits.split() == ["asks"]
    notebook.edit(1, "'old'", "'new'")
    assert notebook.shows() == "new"
