"""Which records a run without a front end takes (DESIGN 5, Runs; traps 10d): a nightly job shows tonight's numbers."""

import os

import pytest

pytestmark = pytest.mark.kernel

CELLS = (
    "%%keel_step ask\nimport socket\nhit('ask'); host = socket.getaddrinfo('localhost', 80)[0][0].name",
    "%%keel_step kept --ttl 7d\nimport socket\nhit('kept'); here = socket.getaddrinfo('localhost', 80)[0][0].name",
    "%%keel_step shell\nimport subprocess\nhit('shell'); text = subprocess.check_output(['echo', 'x'], text=True)",
    "%%keel_step timed\nimport time\nhit('timed'); at = time.time() > 0",
    "%%keel_step pure\nhit('pure'); n = 1 + 1",
    "%%keel_step after\nhit('after'); m = len(host + text)",
)


def test_a_new_run_asks_the_world_again_and_keeps_what_is_pure_and_one_that_stopped_is_gone_on_with(job):
    job.write(*CELLS, "import os; assert not os.path.exists('stop')")
    job.run()
    assert job.hits == "ask kept shell timed pure after"
    (job.folder / "stop").touch()
    events = job.run(code=1)
    assert job.hits.split()[6:] == ["ask", "shell", "timed"], "equal values: what reads them replays"
    assert "run 1" in str(job.call("keel_notebook", "why", "ask", "--in", job.path)[0])
    os.unlink(job.folder / "stop")
    job.run()
    assert job.hits.split()[9:] == [], "the second run was not finished: it is gone on with"
    job.run("--replay")
    assert job.hits.split()[9:] == []
    job.call("nbconvert", "--to", "notebook", "--execute", "--output", "out.ipynb", job.path, JPY_SESSION_NAME=job.path)
    assert job.hits.split()[9:] == ["ask", "shell", "timed"], "what builds on nbclient keeps the same rule"
    job.call(
        "nbconvert", "--to", "notebook", "--execute", "--output", "out.ipynb", job.path,
        JPY_SESSION_NAME=job.path, KEEL_MODE="replay",
    )  # fmt: skip
    assert len(job.hits.split()) == 12
    assert events[-1]["status"] == "failed"


def test_with_a_front_end_run_all_brings_everything_back(notebook):
    book = notebook("\n# ---\n".join(CELLS))
    book.run_all()
    book.shutdown()
    book.run_all()
    book.rerun()
    assert book.hits == "ask kept shell timed pure after"
    book.shutdown()
    book.front_end = False
    book.run_all()
    assert book.hits == "ask kept shell timed pure after ask shell timed"


INWARD = {
    "lock": "threading.Lock()",
    "rlock": "threading.RLock()",
    "condition": "threading.Condition()",
    "semaphore": "threading.BoundedSemaphore(3)",
    "event": "threading.Event()",
    "barrier": "threading.Barrier(1)",
    "shared_lock": "multiprocessing.Lock()",
    "async_lock": "asyncio.Lock()",
    "jobs": "queue.Queue()",
    "prompts": "filled([{'text': 'a', 'lock': threading.Lock()}])",
    "given": "queue.SimpleQueue()",
    "pool": "ThreadPoolExecutor(2)",
    "reference": "weakref.ref(threading.Lock)",
    "context": "contextvars.Context()",
    "variable": "contextvars.ContextVar('variable')",
    "dice": "random.SystemRandom()",
    "chance": "random.Random(1)",
    "own": "np.random.default_rng(1)",
    "packer": "struct.Struct('i')",
    "memory": "mmap.mmap(-1, 8)",
    "several": "{'a': threading.Lock(), 'b': [threading.Event()]}",
    "holder": "Holder()",
    "dicer": "{'lock': threading.Lock(), 'own': np.random.default_rng(1), 'values': np.arange(3)}",
}
OUTWARD = {
    "secured": "ssl.create_default_context()",
    "plug": "socket.socket()",
    "known": "Known(socket.socket())",
    "waiting": "filled(socket.socket())",
    "session": "{'lock': threading.Lock(), 'session': requests.Session()}",
    "handed": "filled([requests.Session()])",
    "local": "threading.local()",
    "base": "sqlite3.connect(':memory:')",
    "started": "ThreadPoolExecutor(1, initializer=socket.socket().connect)",
    "subclass": "type('Lock', (threading.Event,), {'client': socket.socket()})()",
    "pointed": "weakref.ref(plug)",
}
MADE = """
import asyncio, contextvars, mmap, multiprocessing, queue, random, socket, sqlite3, ssl, struct, threading, weakref
import numpy as np, requests
from concurrent.futures import ThreadPoolExecutor
class Holder:
    def __init__(self): self.lock, self.cache = threading.Lock(), {}
class Known:
    def __init__(self, client): self.client = client
def filled(thing):
    jobs = queue.Queue(); jobs.put(thing)
    return jobs
"""


def test_a_lock_is_no_client(notebook):
    """What uses one executes in a new run no more than anything else; what may be a client does, as nobody sees it."""
    cells = [MADE + "\n".join(f"{name} = {made}" for name, made in (INWARD | OUTWARD).items())]
    cells += [f"%%keel_step use_{name}\nhit('{name}'); kind_{name} = str(type({name}))" for name in INWARD | OUTWARD]
    cells += [
        "import keel_notebook as keel\ndef ask(text):\n    with lock: hit('ask'); return text.upper()",
        "%%keel_step mapped\nanswers = keel.map(ask, ['a', 'b'])",
    ]
    book = notebook(cells)
    book.front_end = False
    assert [shown.error for shown in book.run_all()] == [""] * len(cells)
    book.shutdown()
    (book.folder / "hits.txt").unlink()
    book.run_all()
    assert book.hits.split() == list(OUTWARD)
