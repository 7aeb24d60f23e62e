"""The kernel dies before or after every entry that a durable call, a loop or a timer writes.

The engine only knows ports, so a wrapper around the journal's ``append`` is enough to die at any window.
"""

import sys
import types

import pytest

from keel_notebook.errors import AmbiguousError


class Died(BaseException):
    """The process is gone: nothing after this is written."""


@pytest.fixture(autouse=True)
def ran(monkeypatch):
    module = types.ModuleType("keel_ran")
    module.times = []
    monkeypatch.setitem(sys.modules, "keel_ran", module)
    return module.times


def dies_at(kernel, number, when):
    append, count = kernel.journal.inner.append, [0]

    def mortal(entry, *, synced=False):
        count[0] += 1
        if count[0] == number and when == "before":
            kernel.journal.inner.append = gone
            raise Died
        append(entry, synced=synced)
        if count[0] == number and when == "after":
            kernel.journal.inner.append = gone
            raise Died

    def gone(entry, *, synced=False):
        raise Died

    kernel.journal.inner.append = mortal


CODE = "import keel_ran\ndef f(x):\n    keel_ran.times.append(x)\n    return x\ntotal = 0\n"


def dead_at(boot, cell, number, when):
    kernel = boot()
    kernel.run(CODE)
    dies_at(kernel, number, when)
    with pytest.raises(Died):
        kernel.step("s", cell, end=False)
    kernel.kill()
    again = boot()
    again.run(CODE)
    return again


@pytest.mark.parametrize(("when", "total"), [("before", 2), ("after", 1)])
def test_k9_k10_an_idempotent_call_runs_again_exactly_if_its_one_entry_was_not_written(boot, ran, when, total):
    kernel = dead_at(boot, "out = keel.call(f, 1)", 1, when)
    kernel.step("s", "out = keel.call(f, 1)")
    assert kernel.names["out"] == 1
    assert len(ran) == total


GUARDED = "out = keel.call(f, 1, key='k', effect='exactly_once')"


@pytest.mark.parametrize(
    "window",
    [(1, "before", 0, "runs"), (1, "after", 0, "asks"), (2, "before", 1, "asks"), (2, "after", 1, "replays")],
)
def test_z4_z21_a_guarded_call_fires_at_most_once_whenever_the_kernel_dies(boot, ran, window):
    number, when, before, then = window
    kernel = dead_at(boot, GUARDED, number, when)
    assert len(ran) == before
    if then == "asks":
        with pytest.raises(AmbiguousError):
            kernel.step("s", GUARDED, end=False)
    else:
        kernel.step("s", GUARDED, end=False)
        assert kernel.names["out"] == 1
    assert len(ran) == (0 if (number, when) == (1, "after") else 1)


LOOP = "for i in keel.loop(range(4), state=['total']):\n    keel_ran.times.append(i)\n    total += i"


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_loop_repeats_at_most_the_turn_that_was_not_recorded(boot, ran, number, when):
    kernel = dead_at(boot, LOOP, number, when)
    kernel.step("s", LOOP)
    assert kernel.names["total"] == 6
    repeated = [number - 1] if when == "before" else []
    assert sorted(ran) == sorted([0, 1, 2, 3, *repeated])


@pytest.mark.parametrize(
    ("number", "when", "waits"), [(1, "before", 200), (1, "after", 100), (2, "before", 100), (2, "after", 100)]
)
def test_o24_a_timer_is_waited_for_once_from_the_moment_it_was_written_down(boot, clock, number, when, waits):
    began = clock.now()
    kernel = dead_at(boot, "keel.sleep('100s')", number, when)
    clock.at = max(clock.at, began + 100)  # time passes while there is no kernel
    kernel.step("s", "keel.sleep('100s')")
    assert clock.now() - began == waits


@pytest.mark.parametrize(("when", "new"), [("before", True), ("after", False)])
def test_z31_a_promise_is_made_once_and_its_token_shown_only_by_the_kernel_that_made_it(boot, when, new):
    kernel = dead_at(boot, "p = keel.promise('go')", 1, when)
    kernel.step("s", "p = keel.promise('go')")
    assert (kernel.names["p"].token is not None) is new


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", [1, 3, 5])
def test_c71_a_map_owes_exactly_what_was_not_written(boot, ran, number, when):
    cell = "out = keel.map(f, range(5), max_workers=1)"
    kernel = dead_at(boot, cell, number, when)
    recorded = len(kernel.entries())
    assert recorded == number - (when == "before")
    del ran[:]
    kernel.step("s", cell)
    assert kernel.names["out"] == [0, 1, 2, 3, 4]
    assert len(ran) == 5 - recorded
