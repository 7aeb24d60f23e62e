"""Value steps and loops hold for one sitting of a step: until it ends ok, under one code and one set of inputs."""

import pytest

from keel_notebook.errors import CannotStoreError, SettingsError

VALUES = "keel.now(), keel.time(), keel.random(), keel.randbytes(8), keel.uuid4(), keel.uuid4()"


def test_k43_c76_every_attempt_of_a_step_gets_the_same_clock_and_the_same_ids(boot, clock):
    seen = []
    for _ in range(3):
        kernel = boot()
        kernel.step("ids", f"out = ({VALUES})", end=False)
        seen.append(kernel.names["out"])
        clock.advance(3600)
        kernel.kill()
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][4] != seen[0][5]
    assert seen[0][0].tzinfo is not None


def test_a_step_that_ended_ok_gets_fresh_values_when_it_executes_anew(boot, clock):
    kernel = boot()
    kernel.step("s", "a = keel.time()")
    clock.advance(60)
    kernel.step("s", "b = keel.time()")
    assert kernel.names["b"] - kernel.names["a"] == 60


def test_other_inputs_get_fresh_values(boot, clock):
    kernel = boot()
    kernel.step("s", "a = keel.uuid4()", identity="one", end=False)
    kernel.step("s", "b = keel.uuid4()", identity="two", end=False)
    assert kernel.names["a"] != kernel.names["b"]


def test_in_a_plain_cell_values_hold_where_a_dead_run_is_gone_on_with(boot, clock):
    first = boot()
    first.step("cell-1", "a = keel.time()", resumed=())
    run = first.journal.run
    clock.advance(60)
    first.step("cell-1", "b = keel.time()", resumed=())
    assert first.names["b"] - first.names["a"] == 60, "run again by hand: a fresh one"
    first.kill()
    second = boot()
    second.step("cell-1", "c = keel.time()", resumed={run})
    assert second.names["c"] == first.names["b"]
    third = boot()
    clock.advance(5)
    third.step("cell-1", "d = keel.time()", resumed=())
    assert third.names["d"] > first.names["b"]


def test_a_loop_goes_on_after_its_last_finished_turn_with_the_state_it_had(boot):
    cell = """
    opt = {'of': model}
    for i in keel.loop(range(10), state=['model', 'opt', 'seen']):
        if i == die: raise SystemExit
        model['w'] += i
        seen.append(i)
    """
    first = boot()
    first.run("model = {'w': 0}; seen = []; die = 6")
    with pytest.raises(SystemExit):
        first.step("train", cell)
    first.kill()
    second = boot()
    second.run("model = {'w': 0}; seen = []; die = None")
    second.step("train", cell)
    assert second.names["seen"] == list(range(10))
    assert second.names["model"]["w"] == sum(range(10))
    assert second.names["opt"]["of"] is second.names["model"], "one graph: the optimizer still points into the model"
    assert "goes on with turn 7" in second.said[-1]


@pytest.mark.parametrize("identity", ["i", "edited"])
def test_a_loop_starts_anew_in_a_new_sitting(boot, identity):
    kernel = boot()
    kernel.run("n = []")
    cell = "n = []\nfor i in keel.loop(range(3), state=['n']):\n    n.append(i)"
    kernel.step("s", cell, end=identity == "i")
    kernel.step("s", "ran = []\n" + cell.replace("n.append(i)", "ran.append(i); n.append(i)"), identity=identity)
    assert kernel.names["ran"] == [0, 1, 2]


def test_a_loop_says_at_its_first_turn_what_it_cannot_keep(boot):
    kernel = boot()
    kernel.run("import threading\nlock = threading.Lock()")
    with pytest.raises(CannotStoreError, match="lock"):
        kernel.step("s", "for i in keel.loop(range(3), state=['lock']): pass")
    with pytest.raises(SettingsError, match="gone"):
        kernel.step("s", "for i in keel.loop(range(3), state=['gone']): pass")
    with pytest.raises(SettingsError, match="list of names"):
        kernel.step("s", "for i in keel.loop(range(3), state='lock'): pass")
