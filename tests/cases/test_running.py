"""What goes on after its cell is over: threads, pools, tasks, timers (C19; DESIGN 5: unknown is never equal)."""

import pytest

HEAD = """
import asyncio, queue, threading
from concurrent.futures import ThreadPoolExecutor
go = threading.Event()

def fill(box):
    go.wait(60)
    box.append(1)

async def later(box):
    while not go.is_set():
        await asyncio.sleep(0)
    box.append(1)
# ---
"""
WAYS = {
    "thread": ("t = threading.Thread(target=fill, args=(box,)); t.start()", "t.join()"),
    "closure": ("t = threading.Thread(target=lambda: fill(box)); t.start()", "t.join()"),
    "timer": ("t = threading.Timer(0, fill, [box]); t.start()", "t.join()"),
    "pool": ("ex = ThreadPoolExecutor(1); t = ex.submit(fill, box)", "t.result()"),
    "queued": ("ex = ThreadPoolExecutor(1); ex.submit(go.wait); t = ex.submit(fill, box)", "t.result()"),
    "task": ("async def start(): return asyncio.create_task(later(box))\nt = await start()", "await t"),
    "loop of a thread": (
        "loop = asyncio.new_event_loop(); u = threading.Thread(target=loop.run_forever, daemon=True); u.start()\n"
        "t = asyncio.run_coroutine_threadsafe(later(box), loop)",
        "t.result(60); loop.call_soon_threadsafe(loop.stop); u.join()",
    ),
    "method": (
        "class Filler:\n    def __init__(self, to): self.to = to\n    def run(self): fill(self.to)\n"
        "t = threading.Thread(target=Filler(box).run); t.start()",
        "t.join()",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_c19_a_value_that_is_still_being_filled_is_neither_recorded_nor_taken_for_equal(book, way):
    start, wait = WAYS[way]
    notebook = book(f"""{HEAD}
%%keel_step start
hit("start"); box = []
{start}
# ---
%%keel_step early
hit("early"); n = len(box)
# ---
go.set(); {wait}
# ---
%%keel_step whole
hit("whole"); m = len(box)
# ---
%%keel_step apart
hit("apart"); o = 3
# ---
print(n, m, o)
""")
    assert notebook.shows() == "0 1 3"
    assert notebook.shows() == "0 1 3"
    assert notebook.hits == "start early whole apart start early", way


def test_work_that_is_waited_for_in_its_step_is_an_ordinary_step(book):
    notebook = book(f"""{HEAD}
%%keel_step joined
hit("joined"); box = []
go.set()
t = threading.Thread(target=fill, args=(box,)); t.start(); t.join(); del t
with ThreadPoolExecutor(4) as pool:
    done = [future.result() for future in [pool.submit(fill, box) for _ in range(8)]]
idle = ThreadPoolExecutor(4)
more = list(idle.map(fill, [box] * 8))
del pool
await later(box)
# ---
%%keel_step reads
hit("reads"); n = len(box)
# ---
print(n)
""")
    for _ in range(3):
        assert notebook.shows() == "18"
    assert notebook.hits == "joined reads"


def test_a_step_that_hands_work_to_an_older_thread_is_not_replayed(book):
    notebook = book(f"""{HEAD}
jobs, rows = queue.Queue(), []
def serve():
    while (job := jobs.get()) is not None:
        go.wait(60)
        rows.append(job)
        jobs.task_done()
threading.Thread(target=serve, daemon=True).start()
# ---
%%keel_step ask
hit("ask"); jobs.put("a")
# ---
go.set(); jobs.join()
# ---
%%keel_step read
hit("read"); n = len(rows)
# ---
print(n)
""")
    assert notebook.shows() == notebook.shows() == "1"
    assert notebook.hits == "ask read ask read", "the thread lives: what it holds may change at any moment"


def test_a_global_that_a_thread_binds_or_changes_is_unknown_while_it_runs(book):
    notebook = book("""
import threading
go, total, seen, other = threading.Event(), 0, {}, [1]
def count():
    global total
    go.wait(60)
    total += 1
    note()
def note(): seen["n"] = total
t = threading.Thread(target=count); t.start()
# ---
%%keel_step early
hit("early"); n = total, len(seen)
# ---
%%keel_step apart
hit("apart"); m = len(other)
# ---
go.set(); t.join()
# ---
%%keel_step whole
hit("whole"); k = total, len(seen)
# ---
print(n, m, k)
""")
    assert notebook.shows() == notebook.shows() == "(0, 0) 1 (1, 1)"
    assert notebook.hits == "early apart whole early"


def test_a_new_reader_of_what_a_replayed_step_gave_to_a_thread_never_sees_it_unfilled(book):
    notebook = book(f"""{HEAD}
box = []
# ---
%%keel_step start
hit("start"); threading.Thread(target=fill, args=(box,), daemon=True).start()
""")
    notebook.run_all()
    refused = notebook.run_all("print(len(box))")
    assert "E020" in refused.error or "CannotStore" in refused.error, refused
    assert notebook.hits == "start"
    notebook.cells.append("go.set()")
    notebook.run_all()
    assert notebook.hits == "start start", "a cell below wakes the thread"


WRITERS = {
    "child": (
        'import subprocess, sys\ncode = \'import sys; f = open("out.txt", "w"); print(1, flush=True); '
        'sys.stdin.read(); f.write("whole")\'\n'
        "p = subprocess.Popen([sys.executable, '-c', code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "p.stdout.readline()",
        "p.stdin.close(); p.wait()",
    ),
    "thread": (
        "began = threading.Event()\ndef write():\n    with open('out.txt', 'w') as f:\n"
        "        began.set(); go.wait(60); f.write('whole')\n"
        "threading.Thread(target=write).start(); began.wait(60)",
        "go.set(); [t.join() for t in threading.enumerate() if 'write' in t.name]",
    ),
}


@pytest.mark.parametrize("way", WRITERS)
def test_a_file_that_is_still_being_written_makes_its_step_execute_again(book, way):
    start, wait = WRITERS[way]
    notebook = book(f"""{HEAD}
%%keel_step start
hit("start")
{start}
# ---
{wait}
# ---
%%keel_step read
hit("read"); text = open("out.txt").read()
# ---
print(text)
""")
    assert notebook.shows() == "whole"
    assert notebook.shows() == "whole"
    assert notebook.hits == "start read start"
    (notebook.folder / "out.txt").write_text("wh")  # as it is after a kill
    assert notebook.shows() == "whole"
    assert notebook.hits == "start read start start"


def test_a_cell_that_hands_out_work_may_be_run_once_more(book):
    """What it gave away is not its own change: it runs on what is there, as a plain cell would."""
    again = '%%keel_step ask\nhit("ask"); f = ex.submit(fill, box)'
    notebook = book(f"{HEAD}\nex = ThreadPoolExecutor(1); box = []\n# ---\n{again}")
    run = notebook.run_all(again, "go.set(); f.result(); print(len(box))")
    assert run.printed[-1].strip() == "2", run.error
    assert "job fill still runs" in run.acknowledged[4]["err"]
    assert notebook.hits == "ask ask"
