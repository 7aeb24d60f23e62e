"""Durable calls in real kernels that are really killed (C71, C74, C76, C77; DESIGN 3.2)."""

import pytest

pytestmark = pytest.mark.kernel

EVALS = """
import keel_notebook as keel
# ---
%%keel_step evals
import os
out = []
for i in range(10):
    out.append(keel.call(lambda i=i: (hit(f"call{i}"), i * i)[1], key=i))
    if i == 6 and not os.path.exists("go"):
        os.kill(os.getpid(), 9)
# ---
print(out)
"""


def test_c71_a_loop_of_paid_calls_killed_at_seven_of_ten_pays_for_three(notebook):
    from tests.support.notebook import KernelDied

    book = notebook(EVALS)
    with pytest.raises(KernelDied):
        book.run_all()
    assert book.hits == " ".join(f"call{i}" for i in range(7))
    (book.folder / "go").touch()
    shown = book.rerun()
    assert shown[-1].text == str([i * i for i in range(10)]) + "\n"
    assert book.hits == " ".join(f"call{i}" for i in range(10))
    book.edit(1, "range(10)", "range(11)")
    assert book.rerun()[-1].text == str([i * i for i in range(11)]) + "\n"
    assert book.hits.endswith("call9 call10"), "an edited cell pays for what is new"


def test_c74_one_of_five_parallel_calls_fails_and_only_it_is_called_again(notebook):
    book = notebook(
        """
import keel_notebook as keel
# ---
%%keel_step par
import os
async def call(i):
    hit(f"p{i}")
    if i == 3 and not os.path.exists("fixed"): raise RuntimeError("429")
    return i
res = await keel.gather(*[keel.defer(lambda i=i: call(i), key=i) for i in range(5)])
# ---
print(res)
"""
    )
    shown = book.run_all()
    assert shown[-1].error == "RuntimeError: 429"
    assert "key 3" in str(shown[-1].outputs)
    (book.folder / "fixed").touch()
    assert book.rerun()[-1].text == "[0, 1, 2, 3, 4]\n"
    assert sorted(book.hits.split()) == ["p0", "p1", "p2", "p3", "p3", "p4"]


def test_c76_ids_and_keys_survive_a_kill_in_the_middle_of_a_step(notebook):
    from tests.support.notebook import KernelDied

    book = notebook(
        """
import keel_notebook as keel
# ---
%%keel_step ids
import os
run_id, key = keel.uuid4().hex, keel.idempotency_key()
hit(run_id); hit(key)
if not os.path.exists("go"): os.kill(os.getpid(), 9)
"""
    )
    with pytest.raises(KernelDied):
        book.run_all()
    (book.folder / "go").touch()
    book.rerun()
    seen = book.hits.split()
    assert len(seen) == 4
    assert seen[:2] == seen[2:]


def test_c77_a_changed_model_that_the_function_reads_pays_again_and_going_back_does_not(notebook):
    book = notebook(
        """
import keel_notebook as keel
cfg = {"model": "m1"}
def ask(p):
    hit(cfg["model"])
    return cfg["model"] + p
# ---
%%keel_step ask
ans = [keel.call(ask, p) for p in "ab"]
# ---
print(ans)
"""
    )
    assert book.run_all()[-1].text == "['m1a', 'm1b']\n"
    book.edit(0, '"m1"', '"m2"')
    assert book.rerun()[-1].text == "['m2a', 'm2b']\n"
    book.edit(0, '"m2"', '"m1"')
    assert book.rerun()[-1].text == "['m1a', 'm1b']\n"
    assert book.hits == "m1 m1 m2 m2"


def test_calls_in_plain_cells_maps_in_threads_and_loops_go_on_after_a_kill(notebook):
    from tests.support.notebook import KernelDied

    book = notebook(
        """
import keel_notebook as keel, os
def ask(x):
    hit(f"ask{x}")
    return x * 2
# ---
a = keel.call(ask, 1)
m = keel.map(ask, [5, 6, 7], max_workers=2)
# ---
%%keel_step train
total = 0
for i in keel.loop(range(6), state=["total"]):
    hit(f"turn{i}")
    if i == 3 and not os.path.exists("go"): os.kill(os.getpid(), 9)
    total += i
# ---
print(a, m, total)
"""
    )
    with pytest.raises(KernelDied):
        book.run_all()
    (book.folder / "go").touch()
    shown = book.rerun()
    assert shown[-1].text == "2 [10, 12, 14] 15\n"
    hits = book.hits.split()
    assert sorted(hit for hit in hits if hit.startswith("ask")) == ["ask1", "ask5", "ask6", "ask7"]
    assert [hit for hit in hits if hit.startswith("turn")] == [f"turn{i}" for i in (0, 1, 2, 3, 3, 4, 5)]


def test_a_map_killed_in_the_middle_pays_for_the_rest_though_it_reads_a_session_and_a_lock(notebook):
    from tests.support.notebook import KernelDied

    book = notebook(
        """
import keel_notebook as keel, http.server, os, requests, threading
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        hit(self.path)
        self.send_response(200)
        self.send_header("Set-Cookie", "seen=" + self.path[1:])
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *_): pass
# ---
session = requests.Session()
lock = threading.Lock()
# ---
%%keel_step answers
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
port = server.server_port
def ask(page):
    if page == "p6" and not os.path.exists("go"): os.kill(os.getpid(), 9)
    with lock: return session.get(f"http://127.0.0.1:{keel_port()}/{page}").text
def keel_port(): return int(os.environ["KEEL_TEST_PORT"])
os.environ["KEEL_TEST_PORT"] = str(port)
answers = keel.map(ask, [f"p{n}" for n in range(6)], max_workers=2)
answers += keel.map(ask, ["p6", "p7"], max_workers=1)
server.shutdown(); server.server_close(); del server
# ---
print(answers)
"""
    )
    with pytest.raises(KernelDied):
        book.run_all()
    (book.folder / "go").touch()
    for _ in range(2):
        shown = book.rerun()
        assert shown[-1].text == str(["ok"] * 8) + "\n", shown[-2].error
        assert sorted(book.hits.split()) == [f"/p{n}" for n in range(8)]
    book.edit(1, "Session()", "Session(); session.headers['x'] = 'y'")
    assert book.rerun()[-1].text == str(["ok"] * 8) + "\n"
    assert sorted(book.hits.split()) == sorted([f"/p{n}" for n in range(8)] * 2)


def test_a_guarded_call_is_not_fired_again_after_a_kill_in_it(notebook):
    from tests.support.notebook import KernelDied

    book = notebook(
        """
import keel_notebook as keel, os
def pay(x):
    hit("pay")
    if not os.path.exists("go"): os.kill(os.getpid(), 9)
    return x
# ---
%%keel_step pay
receipt = keel.call(pay, 5, key="order 7", effect="exactly_once")
"""
    )
    with pytest.raises(KernelDied):
        book.run_all()
    (book.folder / "go").touch()
    shown = book.rerun()
    assert "E060" in shown[-1].error or "AmbiguousError" in shown[-1].error
    assert book.hits == "pay"


def test_o26_an_undo_cell_may_await(notebook):
    book = notebook(
        """
import asyncio
# ---
%%keel_step book
room = 7
# ---
%%keel_undo book
await asyncio.sleep(0)
hit(f"cancel{room}")
print("cancelled", room)
# ---
%keel undo
# ---
%%keel_step after
x = await asyncio.sleep(0, 8)
"""
    )
    shown = book.run_all()
    assert [one.error for one in shown] == [""] * len(shown)
    assert book.hits == "cancel7"
    assert "cancelled 7" in shown[-2].text


def test_a_map_shows_one_bar_in_a_notebook_that_is_updated_and_needs_no_widget(notebook):
    book = notebook(
        """
import threading, time, keel_notebook as keel
gone = threading.Event()
def slow(i):
    if i >= 40: time.sleep(0.7)
    return i
# ---
%%keel_step mapped
out = keel.map(slow, range(48), max_workers=4)
"""
    )
    shown = book.run_all()[-1]
    bars = [o for o in shown.outputs if o["output_type"] == "display_data"]
    assert len(bars) == 1, "one display, updated"
    assert "48/48" in bars[0]["data"]["text/plain"]
    assert "<progress" in bars[0]["data"]["text/html"]
    assert shown.stderr == ""
