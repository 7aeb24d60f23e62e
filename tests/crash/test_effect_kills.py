"""SIGKILL at every write boundary of a guarded step: it never happens twice without a person's word (Z4, Z15, Z21)."""

import signal

import pytest

from tests.crash.shells import Zygote
from tests.crash.test_kills import HIT, hits

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800)]

PAY = '%%keel_step pay --effect exactly_once{word}\nhit(keel.idempotency_key())\nreceipt = "r-1"\n'


def cells(word=""):
    return ["%load_ext keel_notebook", HIT + "import keel_notebook as keel\n", PAY.format(word=word), "print(receipt)"]


@pytest.fixture(scope="module")
def zygote():
    process = Zygote()
    yield process
    process.close()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_z4_z15_z21_a_kill_at_every_write_boundary_of_a_guarded_step(zygote, tmp_path, after):
    ends = set()
    for number in range(1, 1000):
        folder = tmp_path / str(number)
        folder.mkdir()
        first = zygote.run(folder, cells(), kill_at=number, after=after)
        if first.signal != signal.SIGKILL:
            assert first.code == 0
            break
        paid = len(hits(folder))
        second = zygote.run(folder, cells())
        if second.code == 0:
            ends.add("done once")
            assert (second.printed[-1], len(hits(folder))) == ("r-1\n", 1), f"killed at write {number}"
            continue
        ends.add(f"asked after {paid}")
        assert len(hits(folder)) == paid, f"it happened again after a kill at write {number}"
        third = zygote.run(folder, cells(" --on-ambiguous rerun"))
        assert (third.code, third.printed[-1]) == (0, "r-1\n")
        assert len(hits(folder)) == paid + 1
        assert len(set(hits(folder))) == 1, "one idempotency key in every attempt"
    # A heartbeat that is due writes between body and result: then a kill after a write hits that window, too.
    every = {"done once", "asked after 0", "asked after 1"}
    assert every - ({"asked after 1"} if after else set()) <= ends <= every, "every window was hit"
