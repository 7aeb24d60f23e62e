"""SIGKILL at every write boundary of a step and at random: nothing acknowledged is lost, nothing half done is believed.

Shells without a kernel (see ``shells``); the real files, the real signal. ``KEEL_SOAK=N`` makes N random kills.
"""

import os
import random
import re
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.crash.shells import Zygote

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800)]

HIT = """
import os
def hit(t):
    f = os.open("hits.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(f, (t + "\\n").encode()); os.close(f)
"""
FIRST = """%%keel_step first
hit("start first")
a = list(range(5)); b = a
print("made", a)
hit("end first")
"""
SECOND = """%%keel_step second
hit("start second")
import numpy as np
big = np.arange(200_000.0); n = len(a)
print("big", big.sum())
hit("end second")
"""
CELLS = ["%load_ext keel_notebook", HIT, FIRST, SECOND, "print(a, b is a, n, big[-1])"]
TRUTH = ["", "", "made [0, 1, 2, 3, 4]\n", "big 19999900000.0\n", "[0, 1, 2, 3, 4] True 5 199999.0\n"]


@pytest.fixture(scope="module")
def zygote():
    process = Zygote()
    yield process
    process.close()


def hits(folder):
    path = folder / "hits.txt"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_k8_k9_a_kill_at_every_write_boundary(zygote, tmp_path, after):
    deaths = 0
    for number in range(1, 1000):
        folder = tmp_path / str(number)
        folder.mkdir()
        first = zygote.run(folder, CELLS, kill_at=number, after=after)
        if first.signal != signal.SIGKILL:
            assert first.code == 0
            break
        deaths += 1
        before = hits(folder)
        second = zygote.run(folder, CELLS)
        assert second.code == 0
        assert second.printed == TRUTH, f"killed at write {number}"
        since = hits(folder)[len(before) :]
        for name, cell in (("first", 2), ("second", 3)):
            acknowledged = len(first.acknowledged) > cell
            assert not (acknowledged and f"start {name}" in since), f"{name} ran twice after a kill at write {number}"
            assert f"end {name}" in before or f"end {name}" in since, "what never ended was not replayed"
        if number % 5 == 0:
            done = hits(folder)
            assert zygote.run(folder, CELLS).printed == TRUTH
            assert hits(folder) == done, "the third shell executes nothing"
    assert deaths > 8, "the wrapper saw the writes"


STEPS = 6
STEP = """%%keel_step s{at} --max-attempts 1000
hit("start s{at} " + str(k)); v{at} = [k, {at}]; print(v{at}); hit("end s{at} " + str(k))
"""
ROUND = [CELLS[0], CELLS[1], "k = {k}", *(STEP.format(at=at) for at in range(STEPS))]


def test_random_kills_lose_nothing_acknowledged_and_replay_nothing_unfinished(zygote, tmp_path):
    wanted = int(os.environ.get("KEEL_SOAK", "0")) or 220
    chance = random.Random(20261129)
    kills = k = 0
    while kills < wanted:
        k += 1
        acknowledged: set[str] = set()
        while True:
            cells = [cell.replace("{k}", str(k)) for cell in ROUND]
            before = Counter(hits(tmp_path))
            pid, acks = zygote.start(tmp_path, cells)
            if chance.random() < 0.9:
                _kill_after(pid, acks, chance)
            run = zygote.wait(acks)
            since = Counter(hits(tmp_path)) - before
            for name in acknowledged:
                assert not since[f"start {name} {k}"], f"{name} was acknowledged and ran again in round {k}"
            for at in range(STEPS):
                if len(run.acknowledged) > at + 3:
                    assert run.printed[at + 3] == f"[{k}, {at}]\n"
                    ended = before[f"end s{at} {k}"] + since[f"end s{at} {k}"]
                    assert ended, f"s{at} was replayed in round {k} although it never ended"
                    acknowledged.add(f"s{at}")
            if run.signal == signal.SIGKILL:
                kills += 1
            else:
                assert run.code == 0
                break


def _kill_after(pid, acks, chance):
    """Kill the shell at a random moment: after a random number of acknowledgements and a random wait of work."""
    cells = chance.randrange(0, STEPS + 3)
    spins = chance.randrange(0, 60_000)
    while acks.read_text().count("\n") < cells:
        if not os.path.exists(f"/proc/{pid}") or _gone(pid):
            return
    while spins:
        spins -= 1
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _gone(pid):
    try:
        state = re.search(r"^State:\s+(\w)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state is None or state[1] == "Z"
