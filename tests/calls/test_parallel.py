"""keel.map and keel.gather: ids when made, results as they arrive, exactly the missing ones paid (C71, C74)."""

# ruff: noqa: E501 - a cell that is given to a kernel is one text

import os
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import pytest

from tests.support.kernels import Kernel

COUNT = "import keel_paid\ndef ask(x):\n    keel_paid.calls.append(x)\n    return x * x\n"


@pytest.fixture(autouse=True)
def paid(monkeypatch):
    import types

    module = types.ModuleType("keel_paid")
    module.calls = []
    monkeypatch.setitem(sys.modules, "keel_paid", module)
    return module.calls


def test_results_come_in_the_order_of_the_items_and_only_missing_ones_are_called(boot, paid):
    first = boot()
    first.run(COUNT)
    first.step("s", "out = keel.map(ask, range(5))")
    first.kill()
    second = boot()
    second.run(COUNT)
    second.step("s", "out = keel.map(ask, [9, *range(7)])")
    assert second.names["out"] == [81, 0, 1, 4, 9, 16, 25, 36]
    assert sorted(paid[5:]) == [5, 6, 9]


def test_z1_sixteen_concurrent_calls_have_sixteen_places_and_rows(boot):
    kernel = boot()
    sys.modules["keel_paid"].gate = threading.Barrier(16)  # nobody passes before all sixteen run
    kernel.run("import keel_paid\ndef ask(x):\n    keel_paid.gate.wait(30)\n    return x\n")
    kernel.step("s", "out = keel.map(ask, ['same'] * 16, max_workers=16)")
    entries = kernel.entries()
    assert sorted(entry.occurrence for entry in entries) == list(range(1, 17))
    assert len({entry.entry for entry in entries}) == 16


def test_z2_deferred_calls_have_their_ids_when_they_are_made_whatever_ends_first(boot):
    source = """
    import asyncio
    async def slow(ms):
        await asyncio.sleep(ms / 1000)
        return ms
    """
    for _ in range(2):
        kernel = boot()
        kernel.run(source)
        kernel.step(
            "s", "calls = [keel.defer(slow, ms, key=ms) for ms in (30, 5, 0)]\nout = asyncio.run(keel.gather(*calls))"
        )
        assert kernel.names["out"] == [30, 5, 0]
        kernel.kill()
    written = boot().entries()
    assert [entry.key for entry in sorted(written, key=lambda entry: entry.seq)] == ["30", "5", "0"]
    assert [entry.key for entry in written] != ["30", "5", "0"], "they ended in another order"


def test_c74_one_of_five_fails_the_others_are_recorded_and_only_it_is_called_again(boot, paid):
    source = """
    import asyncio, keel_paid
    async def call(i):
        keel_paid.calls.append(i)
        await asyncio.sleep(0)
        if i == 3 and not keel_paid.fixed: raise RuntimeError("429")
        return i
    """
    cell = "out = asyncio.run(keel.gather(*[keel.defer(lambda i=i: call(i), key=i) for i in range(5)]))"
    sys.modules["keel_paid"].fixed = False
    first = boot()
    first.run(source)
    with pytest.raises(RuntimeError, match="429") as caught:
        first.step("par", cell)
    assert "key 3" in caught.value.__notes__[0]
    first.kill()
    sys.modules["keel_paid"].fixed = True
    second = boot()
    second.run(source)
    second.step("par", cell)
    assert second.names["out"] == [0, 1, 2, 3, 4]
    assert sorted(paid) == [0, 1, 2, 3, 3, 4]


def test_a_call_of_an_async_function_is_awaited_live_and_replayed(boot, paid):
    source = "import asyncio, keel_paid\nasync def f(x):\n    keel_paid.calls.append(x)\n    return x + 1\n"
    for _ in range(2):
        kernel = boot()
        kernel.run(source)
        kernel.step(
            "s",
            "async def main():\n    return await keel.call(f, 1), await keel.call(lambda: f(2), key='k')\nout = asyncio.run(main())",
        )
        assert kernel.names["out"] == (2, 3)
        kernel.kill()
    assert paid == [1, 2]


def test_a_failure_stops_handing_out_and_what_ran_is_recorded(boot, paid):
    source = "import keel_paid\ndef ask(x):\n    keel_paid.calls.append(x)\n    if x == 2: raise ValueError('no')\n    return x\n"
    kernel = boot()
    kernel.run(source)
    with pytest.raises(ValueError, match="no"):
        kernel.step("s", "keel.map(ask, range(100), max_workers=1)")
    assert len(paid) < 10
    assert {entry.inputs[0].digest for entry in kernel.entries() if entry.status == "ok"}


def test_kept_failures_stand_in_the_list_and_are_tried_again(boot, paid):
    source = "import keel_paid\ndef ask(x):\n    keel_paid.calls.append(x)\n    if x == 1 and keel_paid.calls.count(1) == 1: raise OSError\n    return x\n"
    kernel = boot()
    kernel.run(source)
    kernel.step("s", "out = keel.map(ask, range(3), on_error='keep')")
    assert [bool(x) or x == 0 for x in kernel.names["out"]] == [True, False, True]
    kernel.step("s", "out = keel.map(ask, range(3), on_error='keep')")
    assert kernel.names["out"] == [0, 1, 2]
    assert len(paid) == 4


def test_retries_of_a_map_are_attempts_of_its_calls(boot, paid):
    kernel = boot()
    kernel.run(
        "import keel_paid\ndef ask(x):\n    keel_paid.calls.append(x)\n    if len(keel_paid.calls) < 3: raise ConnectionError\n    return x\n"
    )
    kernel.step("s", "out = keel.map(ask, [7], retries=2)")
    assert kernel.names["out"] == [7]
    assert [entry.attempt for entry in kernel.entries()] == [3]
    assert len(kernel.clock.slept) == 2


def test_a_map_whose_function_changes_what_it_reads_is_not_replayed_and_says_so(boot, paid):
    source = (
        "import keel_paid\nusage = []\ndef ask(x):\n    keel_paid.calls.append(x)\n    usage.append(x)\n    return x\n"
    )
    for turn in (1, 2):
        kernel = boot()
        kernel.run(source)
        kernel.step("s", "out = keel.map(ask, range(3), max_workers=1)")
        assert kernel.names["usage"] == [0, 1, 2], "never a replay without its side effect"
        assert any("return it instead" in line for line in kernel.said)
        assert len(paid) == 3 * turn
        kernel.kill()


def test_keys_name_the_items(boot):
    kernel = boot()
    kernel.run("def ask(x):\n    return x['v']\n")
    kernel.step("s", "out = keel.map(ask, [{'id': 'a', 'v': 1}, {'id': 'b', 'v': 2}], key=lambda x: x['id'])")
    assert sorted(entry.key for entry in kernel.entries()) == ["a", "b"]
    with pytest.raises(ValueError, match="1 keys for 2 items"):
        kernel.step("s", "keel.map(ask, [1, 2], key=['a'])")


def test_durable_calls_from_threads_that_a_person_started_are_found_in_the_step(boot):
    source = """
    import threading
    def f(x): return x
    def work(x): keel.call(f, x)
    """
    kernel = boot()
    kernel.run(source)
    kernel.step(
        "s",
        "ts = [threading.Thread(target=work, args=(n,)) for n in range(8)]\n[t.start() for t in ts]\n[t.join() for t in ts]",
    )
    assert sorted(entry.step for entry in kernel.entries()) == ["s"] * 8


PROCESSES = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.support.kernels import Kernel

if __name__ == "__main__":
    kernel = Kernel(Path({folder!r}))
    kernel.run('''
import os, time
def work(x):
    with open({hits!r}, "a") as f: f.write(f"{{x}}\\\\n")
    if x == 7 and not os.path.exists({go!r}):
        time.sleep(60)
    return x * x, os.getpid()
''')
    with ProcessPoolExecutor(2) as pool:
        kernel.names["pool"] = pool
        kernel.step("s", "out = keel.map(work, range(12), executor=pool, progress=False)", end=False)
        print([pair[0] for pair in kernel.names["out"]], len(set(pair[1] for pair in kernel.names["out"]) - {{os.getpid()}}) > 0, flush=True)
    kernel.shutdown()
"""


@pytest.mark.crash
def test_a_map_over_processes_killed_in_the_middle_owes_exactly_the_missing_ones(tmp_path):
    folder, hits, go = tmp_path / ".keel", tmp_path / "hits", tmp_path / "go"
    script = tmp_path / "run.py"
    root = str(Path(__file__).resolve().parents[2])
    script.write_text(PROCESSES.format(root=root, folder=str(folder), hits=str(hits), go=str(go)))
    child = subprocess.Popen([sys.executable, str(script)], start_new_session=True, stdout=subprocess.PIPE, text=True)

    def recorded():
        probe = Kernel(folder) if folder.exists() else None
        try:
            return 0 if probe is None else len(probe.entries())
        finally:
            if probe is not None:
                probe.shutdown()

    wait_until(lambda: hits.exists() and len(hits.read_text().split()) >= 9 and recorded() >= 7)
    os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
    paid_before = recorded()
    go.touch()
    before = hits.read_text().split()
    out = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True).stdout
    assert out.split("]")[0] + "]" == str([n * n for n in range(12)])
    assert "True" in out, "it ran in other processes"
    after = hits.read_text().split()[len(before) :]
    assert len(after) == 12 - paid_before


def wait_until(ready, seconds=60.0):
    import time

    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


def test_the_progress_line_counts_what_was_there_and_is_silent_where_nobody_looks(capsys):
    from keel_notebook.engine.progress import Progress
    from tests.support.kernels import ManualClock

    clock = ManualClock()
    bar = Progress("ask", wanted=True, clock=clock)
    bar.begin(total=10, done=4)
    clock.advance(3)
    bar.step()
    bar.step(failed=True)
    line = bar.line(clock.monotonic())
    assert "6/10" in line
    assert "4 from the journal" in line
    assert "1 failed" in line
    assert "about 6.0 s left" in line
    bar.end()
    assert capsys.readouterr().err == "", "stderr is captured here: nobody looks"


def test_the_progress_line_is_folded_by_carriage_returns_in_a_terminal(monkeypatch):
    import io

    from keel_notebook.engine.progress import Progress
    from tests.support.kernels import ManualClock

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    clock = ManualClock()
    bar = Progress("ask", wanted=True, clock=clock)
    bar.begin(total=2, done=0)
    for _ in range(2):
        clock.advance(1)
        bar.step()
    bar.end()
    lines = shown.getvalue().split("\r")
    assert len(lines) == 4
    assert lines[-1].endswith("\n")
    assert "2/2" in lines[-1]


# ---- what a person sees of a call that fails


def seen(error):
    """The frames that IPython shows of an error: those that do not hide themselves."""
    frames = [here for here, _ in traceback.walk_tb(error.__traceback__)]
    return [(f.f_code.co_filename, f.f_code.co_name) for f in frames if "__tracebackhide__" not in f.f_locals]


FAILS = """
def inner(item): raise ValueError('no')
def ask(item):
    if item['n'] == 3: return inner(item)
    return item['n']
items = [{'n': n, 'api_key': 'sk-verysecret1234567890'} for n in range(5)]
"""
EXECUTORS = {"threads": "None", "one thread": "ThreadPoolExecutor(1)", "processes": "ProcessPoolExecutor(1)"}


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_failing_item_names_its_index_and_argument_and_shows_the_persons_own_lines(executor, boot):
    kernel = boot()
    kernel.run(FAILS)
    kernel.run("from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor")
    kernel.run(f"pool = {EXECUTORS[executor]}")
    with pytest.raises(ValueError, match="no") as caught:
        kernel.step("s", "keel.map(ask, items, executor=pool, progress=False)", end=False)
    error = caught.value
    (note,) = [line for line in error.__notes__ if line.startswith("keel: ")]
    assert "item 4 of 5" in note
    assert "'n': 3" in note
    assert "sk-very" not in note
    if executor == "processes":
        told = str(error.__cause__)
        assert "in inner" in told
        assert "concurrent" not in told
        assert "keel_notebook" not in told
        kernel.names["pool"].shutdown()
    else:
        assert [name for _, name in seen(error)][-2:] == ["ask", "inner"]
        assert not any("concurrent" in file or "keel_notebook" in file for file, _ in seen(error))


def test_a_call_of_gather_that_fails_says_which_one(boot):
    kernel = boot()
    kernel.run(FAILS)
    with pytest.raises(ValueError, match="no") as caught:
        kernel.step("s", "import asyncio; asyncio.run(keel.gather(*[keel.defer(ask, i) for i in items]))", end=False)
    assert any("item 4 of 5" in line for line in caught.value.__notes__)


def test_a_kept_failure_says_which_item_it_was_and_is_tried_again(boot):
    kernel = boot()
    kernel.run(FAILS)
    kernel.step("s", "out = keel.map(ask, items, on_error='keep', progress=False)", end=False)
    values = kernel.names["out"]
    assert [bool(value) for value in values[1:]] == [True, True, False, True]
    assert (values[3].type, type(values[3].error)) == ("ValueError", ValueError)
    assert any("item 4 of 5" in line for line in values[3].error.__notes__)
