"""The quick figures, in one process: each next to a floor of the same run, both as the least of several tries.

Processor time where the disk has no part in it, so that what else runs says little. The last line is JSON.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import sys
import time
from collections.abc import Callable
from typing import Any

TRIES = 7


def least(call: Callable[[int], Any], clock: Callable[[], float] = time.process_time, tries: int = TRIES) -> float:
    """Seconds of the fastest try; the call gets the number of the try."""
    took = []
    for number in range(tries):
        gc.collect()
        began = clock()
        call(number)
        took.append(clock() - began)
    return min(took)


def main(folder: str) -> None:
    """Measure."""
    os.chdir(folder)
    os.environ["JPY_SESSION_NAME"] = os.path.join(folder, "a.ipynb")
    import numpy as np
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False

    def run(source: str) -> None:
        shell.run_cell(source, store_history=False).raise_error()

    run("%load_ext keel_notebook\nimport keel_notebook as keel, numpy as np\ndef f(i): return i * 2")
    run("%%keel_step warm\nwarm = 1")
    ratios: dict[str, float] = {}

    def many(template: str) -> Callable[[int], None]:
        def cells(number: int) -> None:
            for at in range(20):
                run(template.format(name=f"t{number}_{at}", at=at))

        return cells

    plain = least(many("# {name}\nx{at} = 1"))
    ratios["a trivial step, recorded, to a plain cell"] = least(many("%%keel_step {name}\nx{at} = 1")) / plain
    run("%keel status")
    for number in range(TRIES):
        many("%%keel_step again{at}\ny{at} = 1")(number)
    ratios["a trivial step, replayed, to a plain cell"] = least(many("%%keel_step again{at}\ny{at} = 1")) / plain

    fd = os.open("floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def writes(number: int) -> None:
        for at in range(1000):
            os.write(fd, json.dumps({"key": at, "value": [at] * 20, "more": str(number) * 20}).encode())

    write = least(writes)
    loop = "%%keel_step calls{name} --ignore f\nfor i in range(1000): keel.call(f, i, key=i)"
    ratios["a durable call, recorded, to a small JSON write"] = least(lambda n: run(loop.format(name=n))) / write
    again = "%%keel_step calls0 --ignore f\nfor i in range(1000): keel.call(f, i, key=i)\nagain = {name}"
    ratios["a durable call, replayed, to a small JSON write"] = least(lambda n: run(again.format(name=n))) / write

    graph = "value = [{{'id': i, 'name': 'n%d' % i, 'nbr': [i % 7, 'x']}} for i in range(20_000 + {name})]"
    run(graph.format(name=0))
    value = shell.user_ns["value"]
    floor = least(lambda _: pickle.dumps(value, 5)) + least(lambda n: run(f"# {n}\n" + graph.format(name=n)))
    recorded = least(lambda n: run(f"%%keel_step g{n}\n" + graph.format(name=n)))
    ratios["60,000 objects, recorded, to making and pickling them"] = recorded / floor

    made = "big = np.random.default_rng({name}).random(4_000_000)"
    floor = least(lambda n: (run(f"# {n}\n" + made.format(name=n)), np.save("floor.npy", shell.user_ns["big"])))
    recorded = least(lambda n: run(f"%%keel_step b{n}\n" + made.format(name=100 + n)))
    ratios["32 MB array, recorded, to making and saving it"] = recorded / floor
    print(json.dumps(ratios))


if __name__ == "__main__":
    main(*sys.argv[1:])
