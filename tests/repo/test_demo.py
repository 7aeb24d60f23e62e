"""`make demo`: it keeps its promise, and it would notice if it did not."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(scope="module")
def scripts():
    """The demo's modules, imported as the demo imports them."""
    sys.path.insert(0, str(SCRIPTS))
    try:
        import demo
        import live
        import values

        yield demo, live, values
    finally:
        sys.path.remove(str(SCRIPTS))


@pytest.mark.kernel
def test_the_demo_kills_a_real_kernel_and_everything_comes_back():
    done = subprocess.run([sys.executable, SCRIPTS / "demo.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    for step in ("load", "clean", "features", "search"):
        assert "replayed" in lines[step], done.stdout
    for step in ("evaluate", "importance"):
        assert "executed" in lines[step], done.stdout
    assert "killed" in lines["evaluate"]
    assert "equal" in lines["values"]
    assert "equal" in lines["outputs"]
    assert "make lab" in done.stdout


def _outcome(scripts, *, value="1", text="a", decision="replayed"):
    demo, live, _ = scripts

    def runs(text):
        stream = {"output_type": "stream", "name": "stdout", "text": text}
        return [
            live.CellRun("c1", "fit", [stream], 1.0, finished=True),
            live.CellRun("c2", demo.KILLED, [], 1.0, finished=True),
        ]

    killed = [*runs("a")[:1], live.CellRun("c2", demo.KILLED)]
    decisions = {"fit": decision, demo.KILLED: "executed"}
    return demo.Outcome(runs("a"), killed, runs(text), {"x": "1"}, {"x": value}, decisions, {"fit": "its code differs"})


def test_the_demo_fails_if_anything_differs(scripts):
    assert _outcome(scripts).wrong == []
    assert _outcome(scripts, value="2").wrong == ["x: another value"]
    assert _outcome(scripts, text="b").wrong == ["c1: other outputs"]
    assert _outcome(scripts, decision="executed").wrong == ["step fit was not replayed: its code differs"]


def test_the_demo_tells_values_apart(scripts):
    import numpy as np
    import pandas as pd

    digest = scripts[2].digest
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    unlike = [
        None, 0, False, 0.0, -0.0, "0", b"0", [0], (0,), {0}, {0: 0}, [[0], 0], [0, [0]],
        np.array([0]), np.array([0.0]), np.array([[0]]), frame, frame.iloc[::-1], frame.rename(columns={"a": "c"}),
        frame["a"], frame["a"].astype("int8"), np.random.RandomState(1), np.random.RandomState(2),
    ]  # fmt: skip
    assert len({digest(value) for value in unlike}) == len(unlike)
    assert digest(frame) == digest(frame.copy())
    assert digest(np.arange(6).reshape(2, 3).T) == digest(np.arange(6).reshape(2, 3).T.copy())
    assert digest({3, 1, 2}) == digest({2, 3, 1})
