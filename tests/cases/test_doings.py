"""What a function of a plain cell does to a connection that its caller does not name (DESIGN 5, Provenance; traps 3).

Each is run, run again, run with another row, again, and with the first row: a step that asks the connection never
gives the sum of other rows, and executes only where they differ.
"""

import pytest

from tests.cases.test_files import LIBRARIES, step
from tests.cases.test_rewritten_files import Pair
from tests.crash.shells import Zygote

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def zygote():
    process = Zygote(*LIBRARIES)
    yield process
    process.close()


INSERT = "con.execute('insert into t values (?)', (x,))"
CON = "con = sqlite3.connect(':memory:'); _ = con.execute('create table t (a)')"
WAYS = {
    "a function": (f"def put(x): {INSERT}", "put(ROW)"),
    "a function that is edited": ("def put(): con.execute('insert into t values (ROW)')", "put()"),
    "a function that reads another name": (f"x = ROW\ndef put(): {INSERT}", "put()"),
    "a function behind another": (f"x = ROW\ndef put(): {INSERT}\ndef both(): put()", "both()"),
    "a lambda": (f"put = lambda x: {INSERT}", "put(ROW)"),
    "a method": (f"class A:\n    def put(self, x): {INSERT}\na = A()", "a.put(ROW)"),
    "a callback": (f"def put(x): {INSERT}", "_ = list(map(put, [ROW]))"),
    "a container": ("cons = [con]\ndef put(x): " + INSERT.replace("con.", "cons[0]."), "put(ROW)"),
    "a cursor in it": (f"def put(x):\n    c = con.cursor()\n    {INSERT.replace('con.', 'c.')}", "put(ROW)"),
    "a block in it": (f"def put(x):\n    with con as c:\n        {INSERT.replace('con.', 'c.')}", "put(ROW)"),
    "a branch in it": (f"def put(x):\n    if x:\n        r = {INSERT}", "put(ROW)"),
    "a bound method": ("put = con.execute", "_ = put('insert into t values (ROW)')"),
    "a partial": (f"import functools\ndef go(x): {INSERT}\nput = functools.partial(go, ROW)", "put()"),
    "no function, a block": ("", "with con as c: _ = c.execute('insert into t values (ROW)')"),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_a_function_does_to_a_connection_counts_for_who_asks_it(zygote, tmp_path, way):
    pair = Pair(zygote, tmp_path)
    define, call = WAYS[way]
    ask = step("ask", "v = con.execute('select sum(a) from t').fetchone()[0]")
    for row, again in (("1", ["ask"]), ("1", []), ("20", ["ask"]), ("20", []), ("1", ["ask"])):
        assert pair.run(CON, define.replace("ROW", row) or "pass", call.replace("ROW", row), ask) == again


def test_a_function_that_only_uses_a_client_changes_nothing(zygote, tmp_path):
    """Trying a prompt in a plain cell is no reason to pay again."""
    pair = Pair(zygote, tmp_path)
    client = "import threading\nclass Client:\n    def __init__(self): self.lock = threading.Lock()\n"
    client += "    def chat(self, text): return text.upper()\nclient = Client()\n"
    client += "def ask(text):\n    answer = client.chat(text)\n"
    client += "    seen = [answer]; seen.append(1)\n    return answer"
    ask = step("ask", "v = ask('q')")
    for tried, again in (("a", ["ask"]), ("b", []), ("c", [])):
        assert pair.run(client, f"print(ask({tried!r}))", ask) == again
