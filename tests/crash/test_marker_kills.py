"""SIGKILL at every write boundary of an undoing, a lane that begins and a strict flow (O26-O28, K16, K21, K8, K9)."""

import signal

import pytest

from tests.crash.shells import Zygote
from tests.crash.test_kills import HIT, hits

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800)]

LOAD = ["%load_ext keel_notebook", HIT + "import keel_notebook as keel\n"]


@pytest.fixture(scope="module")
def zygote():
    process = Zygote()
    yield process
    process.close()


def kills(zygote, tmp_path, before, cells, *, after, first_cell=2):
    """One folder for each write of ``cells`` from a cell on, whose kernel died there; an earlier one ran ``before``."""
    for number in range(1, 1000):
        folder = tmp_path / str(number)
        folder.mkdir()
        if before:
            assert zygote.run(folder, before).code == 0
        first = zygote.run(folder, cells, kill_at=number, after=after)
        if first.signal != signal.SIGKILL:
            assert first.code == 0
            return
        if len(first.acknowledged) < first_cell:
            continue  # a death before it began is shown elsewhere
        yield folder, f"killed {'after' if after else 'before'} write {number}"


STEPS = [
    cell
    for i in (1, 2)
    for cell in (
        f"%%keel_step s{i}\nv{i} = {i}\n",
        f"%%keel_undo s{i}\nhit(f'undo{{v{i}}} ' + keel.idempotency_key())\n",
    )
]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_o26_o28_a_kill_at_every_write_boundary_of_an_undoing(zygote, tmp_path, after):
    twice = set()
    cells = [*LOAD, *STEPS, "%keel undo"]
    for folder, where in kills(zygote, tmp_path, [], cells, after=after, first_cell=len(cells) - 1):
        done = [hit.split()[0] for hit in hits(folder)]
        ran = zygote.run(folder, cells)
        if ran.code != 0:  # what was undone is not done again while something is left: that step is refused
            assert "E062" in ran.error, (where, ran.error)
            assert zygote.run(folder, [*cells[: len(ran.acknowledged)], "%keel undo"]).code == 0, where
        undone = [hit.split() for hit in hits(folder)]
        names = [name for name, _ in undone]
        if done == ["undo2", "undo1"] and ran.code == 0 and len(undone) == 4:
            assert names == 2 * done, "the undoing had ended: its steps were done anew, and undone anew"
            continue
        assert sorted(set(names)) == ["undo1", "undo2"], (where, undone)
        assert names == sorted(names, reverse=True), f"last first: {where}"
        for name in set(names):
            if names.count(name) > 1:  # cut between its body and its record: again, under the same key
                twice.add(name)
                assert len([one for one in undone if one[0] == name]) == 2, (where, undone)
                assert len({key for one, key in undone if one == name}) == 1, (where, undone)
    # The flush thread writes as well, so the n-th write differs between runs: one of the two windows will do.
    assert after or twice, "the window between a body and its record was hit"


LANES = "print(get_ipython().run_line_magic('keel', 'lanes'))"
FIT = "%%keel_step fit --on-divergence branch\nhit('fit{k}')\nmodel = {k}\n"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_k16_a_kill_at_every_write_boundary_of_a_lane_that_begins(zygote, tmp_path, after):
    first, second = FIT.format(k=1), FIT.format(k=2)
    for folder, where in kills(zygote, tmp_path, [*LOAD, first], [*LOAD, second], after=after):
        ran = zygote.run(
            folder, [*LOAD, second, "print(model)", "print(get_ipython().run_line_magic('keel', 'lanes'))"]
        )
        assert (ran.code, ran.printed[-2]) == (0, "2\n"), where
        lanes = ran.printed[-1].splitlines()
        assert [line.split()[0] for line in lanes] == ["main", "*"], (where, lanes)
        assert hits(folder).count("fit2") <= 2, where
        back = zygote.run(folder, [*LOAD, first, "print(model)"])
        assert (back.code, back.printed[-1]) == (0, "1\n"), where
        assert hits(folder).count("fit1") == 1, f"the first lane is as it was: {where}"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_k21_k26_a_kill_at_every_write_boundary_of_a_strict_flow(zygote, tmp_path, after):
    cells = [*LOAD, "%keel flow --strict", "%%keel_step a\nhit('a')\nx = 1\n", "%%keel_step b\nhit('b')\ny = x + 1\n"]
    for folder, where in kills(zygote, tmp_path, [], cells, after=after):
        second = zygote.run(folder, [*cells, "print(y)"])
        assert (second.code, second.printed[-1]) == (0, "2\n"), (where, second.error)
        paid = hits(folder)
        third = zygote.run(folder, [*cells, "print(y)"])
        assert (third.code, third.printed[-1]) == (0, "2\n"), (where, third.error)
        assert hits(folder) == paid, f"completed: pure replay ({where})"
        assert all(paid.count(step) <= 2 for step in "ab"), where
