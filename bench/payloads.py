"""What values cost: graphs of objects, frames and arrays, each against a floor of the same run, interleaved."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.kernels import TimedKernel
from bench.report import Figure

LOAD = "%load_ext keel_notebook"
REPEATS = 3
_OFTEN = 0.7
"""A value that was digested before is told apart where that takes at most this share of the first time."""

NODES = """nodes = [{'id': i, 'name': 'n%d' % i, 'nbr': []} for i in range(200_000)]
for i in range(1, 200_000):
    nodes[i]['nbr'].append(nodes[i // 2])
index = {d['name']: d for d in nodes}"""
"""The object graph that the peers were measured with: some 1M objects that share each other."""

_GRAPHS = {
    "1M objects that share each other": (NODES + "\nvalue = [nodes, index]", 1.5),
    "100,000 records, 1M objects": (
        "value = [{'id': i, 'user': {'name': 'u%d' % i, 'tags': ['a', 'b', str(i)]}, 'score': i / 3, 'ok': i % 2 == 0}"
        " for i in range(100_000)]",
        1.5,
    ),
    "200,000 instances, 1M objects": (
        "class P:\n    def __init__(self, i): self.i = i; self.name = 'n%d' % i; self.tags = ['a', i]\n"
        "value = [P(i) for i in range(200_000)]",
        1.5,
    ),
    "a list of 1M floats": ("value = [i / 3 for i in range(1_000_000)]", None),
    "100,000 small arrays": ("import numpy as np\nvalue = [np.arange(i % 10 + 1.0) for i in range(100_000)]", None),
}

_DIGEST = """
import gc, json, pickle, sys, time
from IPython.core.interactiveshell import InteractiveShell
from keel_notebook.capture.definitions import NotebookDefinitions
from keel_notebook.payload.digest import StructuralDigester
shell = InteractiveShell.instance()
assert shell.run_cell(sys.argv[1]).success
value = shell.user_ns["value"]
definitions = NotebookDefinitions(shell)
def timed(call):
    gc.collect(); gc.disable()
    began = time.process_time(); result = call(); took = time.process_time() - began
    gc.enable()
    return took, result
floor, first, again = [], [], []
for _ in range(3):
    floor.append(timed(lambda: len(pickle.dumps(value, 5)))[0])
    digester = StructuralDigester(salt=b"s" * 32, definitions=definitions)
    for kept in (first, again):
        took, found = timed(lambda: digester.digest(value))
        assert found.digest, found.reason
        kept.append(took)
print(json.dumps([min(floor), min(first), min(again)]))
"""

_STRINGS = """import numpy as np, pandas as pd
rng = np.random.default_rng(0)
texts = pd.array([f"user {i:06d} of the shop" for i in range(200_000)], dtype="str")
value = pd.DataFrame({f"f{i}": rng.random(10_000_000) for i in range(6)})
for i in range(2):
    value[f"s{i}"] = texts.take(rng.integers(0, 200_000, 10_000_000))"""


def digests(folder: Path) -> Iterator[Figure]:
    """Digests of graphs against `pickle.dumps` of the same, in processor time; of a frame by its size."""
    for label, (source, bound) in _GRAPHS.items():
        floor, took, again = _child(folder, source)
        against = f"pickle.dumps of it ({floor:.2f} s)"
        yield Figure(f"digest, {label}", took / floor, "x", against, bound)
        if again < took * _OFTEN:
            yield Figure(f"digest once more, {label}", again / floor, "x", against, bound)
    floor, took, _ = _child(folder, _STRINGS)
    yield Figure("digest, 0.96 GB frame with strings", took, "s of processor", f"pickle.dumps ({floor:.2f} s)", 0.96)


def _child(folder: Path, source: str) -> tuple[float, float, float]:
    done = subprocess.run(
        [sys.executable, "-c", _DIGEST, source], capture_output=True, text=True, check=True, cwd=folder
    )
    floor, took, again = json.loads(done.stdout.splitlines()[-1])
    return floor, took, again


_RECORDED = {
    "1 GB array": ("import numpy as np", "value = np.random.default_rng({seed}).random(125_000_000)", 1.15),
    "2M x 10 frame, arrow strings": (
        "import numpy as np, pandas as pd\nnames = pd.array([f'user {{i:06d}}' for i in range(200_000)], dtype='str')",
        "rng = np.random.default_rng({seed})\n"
        "value = pd.DataFrame({{f'f{{i}}': rng.random(2_000_000) for i in range(6)}})\n"
        "for i in range(2):\n"
        "    value[f'i{{i}}'] = rng.integers(0, 9, 2_000_000)\n"
        "    value[f's{{i}}'] = names.take(rng.integers(0, 200_000, 2_000_000))\n"
        "del rng",
        1.15,
    ),
    "graph of 1M objects": ("seed = 0", "seed = {seed}\n" + NODES.replace("{", "{{").replace("}", "}}"), 2.0),
}


_MUCH = 64 << 20
_WRITTEN = """import os as _os, time as _time
_bytes = memoryview(_os.urandom(1 << 23))
_fd = _os.open("floor", _os.O_WRONLY | _os.O_CREAT | _os.O_TRUNC)
_began = _time.perf_counter()
for _at in range(0, {size}, 1 << 23):
    _os.write(_fd, _bytes[: {size} - _at])
print(_time.perf_counter() - _began)
_os.close(_fd); _os.unlink("floor")
"""
"""What nobody can record faster than: the same bytes written, without a digest, a sync or a name."""


def records(folder: Path) -> Iterator[Figure]:
    """Recording against the same cells in a kernel without keel, turn by turn; what comes back, and how fast."""
    plain, kernel = TimedKernel(folder), TimedKernel(folder)
    kernel.run(LOAD)
    for label, (setup, body, bound) in _RECORDED.items():
        ratios, floors, beyond, writing = [], [], [], []
        for each in (plain, kernel):
            each.run(setup.format())
        for seed in range(REPEATS):
            floors.append(plain.run(body.format(seed=seed))[0])
            before = _objects(folder)
            took = kernel.run(f"%%keel_step {_step(label, seed)}\n{body.format(seed=seed)}")[0]
            ratios.append(took / floors[-1])
            size = _objects(folder) - before
            if size > _MUCH:
                beyond.append(took - floors[-1])
                writing.append(float(plain.run(_WRITTEN.format(size=size))[1]))
            for each in (plain, kernel):
                each.run("value = nodes = index = None")
        against = f"the same cell plain ({statistics.median(floors):.2f} s), turn by turn"
        yield Figure(f"record again and again, {label}", statistics.median(ratios), "x", against, bound)
        if beyond:
            floor = statistics.median(writing)
            against = f"{size >> 20} MB written to the same disk, nothing else ({floor:.2f} s)"
            yield Figure(f"what recording adds, {label}", statistics.median(beyond) / floor, "x", against, None)
    plain.kill()
    kernel.kill()
    yield from _graph_back(folder)


def _graph_back(folder: Path) -> Iterator[Figure]:
    kernel = TimedKernel(folder)
    kernel.run(LOAD)
    setup, body, _ = _RECORDED["graph of 1M objects"]
    kernel.run(setup)
    step = _step("graph of 1M objects", 0)
    kernel.run(f"%%keel_step {step}\n{body.format(seed=0)}")
    row = kernel.steps()[step]
    assert row["decision"] == "replayed", row
    kernel.run("assert index['n77'] is nodes[77] and nodes[77]['nbr'][0] is nodes[38]")
    kernel.kill()
    yield Figure("restore, graph of 1M objects", row["replay_s"] * 1000, "ms", "identity kept", 500)


def _step(label: str, seed: int) -> str:
    return f"{label.rsplit(maxsplit=1)[-1]}_{seed}"


_FRAME = """import numpy as np, pandas as pd
rng = np.random.default_rng(0)
frame = pd.DataFrame({f"c{i}": rng.random(5_000_000) for i in range(8)})
del rng"""


def inputs(folder: Path) -> Iterator[Figure]:
    """A step that reads a 5M x 8 frame and does nothing else (C36), and a frame that is recorded once more."""
    kernel = TimedKernel(folder)
    kernel.run(LOAD)
    kernel.run(f"%%keel_step make\n{_FRAME}")
    took, floor = [], []
    for at in range(REPEATS):
        floor.append(kernel.run("n = len(frame)")[0])
        took.append(kernel.run(f"%%keel_step read{at}\nn{at} = len(frame)")[0])
    more = (statistics.median(took) - statistics.median(floor)) / 0.32
    yield Figure("a step that reads a 0.32 GB frame", more, "s more a GB", "the same cell plain", 1)
    before = _objects(folder)
    assert before > 300 << 20, before
    kernel.run(f"%%keel_step again\n{_FRAME}")
    kernel.kill()
    grown = (_objects(folder) - before) / (1 << 20)
    yield Figure("growth, the frame recorded once more", grown, "MB", "0.3 GB of equal content", 0.1)


def columns(folder: Path, rows: int = 1_000_000, cells: int = 12) -> Iterator[Figure]:
    """Twelve cells each add a column to a frame: what is written beside the columns themselves."""
    kernel = TimedKernel(folder)
    kernel.run(LOAD + "\nimport numpy as np, pandas as pd")
    kernel.run(f"%%keel_step base\nframe = pd.DataFrame({{'c': np.random.default_rng(0).random({rows})}})")
    before = _objects(folder)
    for at in range(cells):
        kernel.run(f"%%keel_step add{at}\nframe['n{at}'] = frame['c'] * {at + 2}")
    grown = _objects(folder) - before
    kernel.kill()
    new = rows * 8 * cells
    yield Figure(
        "twelve cells each adding a column", grown / new, "x", f"the bytes of the columns ({new >> 20} MB)", 1.2
    )


def _objects(folder: Path) -> int:
    return sum(each.stat().st_size for each in (folder / ".keel" / "objects").rglob("*") if each.is_file())
