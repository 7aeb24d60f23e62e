"""One life of a kernel in the long-life test: a shell, many edits and runs of a small notebook, and what it cost.

Started by ``test_long_life`` as a process of its own: ``life.py FOLDER SEED ROUNDS``. The last line is JSON.
"""

from __future__ import annotations

import gc
import json
import os
import random
import sys
import time
from typing import Any

STEPS = 8


class Book:
    """The notebook as its user sees it: a constant for each step; every step reads the one above it."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.base = 1
        self.added = [chance.randrange(3) for _ in range(STEPS)]
        self.large = 1_000

    def edit(self) -> None:
        """What a person does between two runs: nothing, a plain value, the code of a step, or another size."""
        match self.chance.randrange(6):
            case 0 | 1:
                self.added[self.chance.randrange(STEPS)] = self.chance.randrange(50)
            case 2:
                self.base = self.chance.randrange(20)
            case 3:
                self.large = self.chance.choice((1_000, 20_000, 200_000))

    def cells(self) -> list[str]:
        """The cells from top to bottom."""
        made = [f"base = {self.base}\nimport numpy as np"]
        above = "base"
        for at, added in enumerate(self.added):
            made.append(
                f"%%keel_step s{at}\nv{at} = [{above if at == 0 else above + '[0]'} + {added}, 'step {at}'] * 50"
            )
            above = f"v{at}"
        made.append(f"%%keel_step big\nbig = np.arange({self.large}.0) + {above}[0]\nprint('big', len(big))")
        return made

    def truth(self) -> tuple[int, int, float]:
        """What the last cell has to print."""
        last = self.base + sum(self.added)
        return last, self.large, float(self.large - 1 + last)


def main(folder: str, seed: str, rounds: str) -> None:
    """Live."""
    os.chdir(folder)
    os.environ["JPY_SESSION_NAME"] = os.path.join(folder, "a.ipynb")
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    book = Book(random.Random(int(seed)))
    seen: dict[str, Any] = {"cells": 0, "wrong": [], "rss": [], "fds": [], "round_s": []}

    def run(source: str) -> str:
        with capture_output() as shown:
            shell.run_cell(source, store_history=False).raise_error()
        seen["cells"] += 1
        return str(shown.stdout)

    run("%load_ext keel_notebook")
    began = time.perf_counter()
    shell._keel_session.leader()
    seen["attach_s"] = time.perf_counter() - began
    for number in range(int(rounds)):
        if number:
            book.edit()
        began = time.perf_counter()
        for cell in book.cells():
            run(cell)
        found = run(f"print((v{STEPS - 1}[0], len(big), float(big[-1])))").strip()
        seen["round_s"].append(time.perf_counter() - began)
        if found != str(book.truth()):
            seen["wrong"].append((number, found, str(book.truth())))
        gc.collect()
        seen["rss"].append(_rss_mb())
        seen["fds"].append(len(os.listdir("/proc/self/fd")))
    shell._keel_session.close()
    print(json.dumps(seen))


def _rss_mb() -> float:
    with open("/proc/self/smaps_rollup") as lines:  # what is only mapped from the journal is not the kernel's memory
        return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous")) / 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
