"""Random SIGKILLs of real kernels: what was acknowledged is back, what never ended is never believed."""

import os
import random
import signal
import threading
import time

import pytest

from tests.support.notebook import KernelDied

pytestmark = [pytest.mark.crash, pytest.mark.kernel, pytest.mark.timeout(1800)]

STEPS = 5
STEP = """%%keel_step s{at} --max-attempts 1000
hit(f"start-s{at}-{{k}}"); v{at} = [k, {at}]; print(v{at}); hit(f"end-s{at}-{{k}}")"""
CELLS = "\n# ---\n".join(["k = 1", *(STEP.format(at=at) for at in range(STEPS))])


def test_random_kills_of_real_kernels(notebook):
    wanted = int(os.environ.get("KEEL_SOAK", "0")) // 10 or 20
    chance = random.Random(20261129)
    book = notebook(CELLS)
    kills = k = 0
    while kills < wanted:
        k += 1
        book.cells[2] = f"k = {k}"
        acknowledged: set[str] = set()
        while True:
            book.shown.clear()
            book.start()
            before = book.hits.split()
            killer = threading.Thread(target=_kill, args=(book, chance.randrange(2, STEPS + 4), chance.random() * 0.02))
            killer.start()
            try:
                book.run_all()
                done = True
            except KernelDied:
                done = False
            killer.join()
            since = book.hits.split()[len(before) :]
            for name in acknowledged:
                assert f"start-{name}-{k}" not in since, f"{name} was acknowledged and ran again in round {k}"
            for at in range(STEPS):
                shown = book.shown.get(at + 3)
                if shown is not None and shown.status == "ok":
                    assert shown.text == f"[{k}, {at}]\n"
                    assert f"end-s{at}-{k}" in before + since, "what never ended was replayed"
                    acknowledged.add(f"s{at}")
            kills += not done
            book.kill()
            if done:
                break


def _kill(book, cells, wait_s):
    """Kill the kernel a moment after so many cells were acknowledged; let it live where there are not so many."""
    pid = book.pid
    while len(book.shown) < cells:
        if len(book.shown) == len(book.cells) or not book.kernel.is_alive():
            return
        time.sleep(0.001)
    time.sleep(wait_s)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
