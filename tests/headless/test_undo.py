"""``keel undo``: what a notebook's steps did is taken back from a terminal, in reverse, once (O26, O28)."""

import json

import pytest

pytestmark = pytest.mark.kernel

CELLS = (
    "import keel_notebook as keel\ndef cancel(what): hit('no-' + what)",
    "%%keel_step flight\nhit('flight'); keel.undo(cancel, 'flight')",
    "%%keel_step hotel\nhit('hotel'); keel.undo(cancel, 'hotel')",
    "%%keel_step car\nhit('car'); 1 / 0",
)


def test_o26_o28_steps_come_back_nothing_goes_forward_and_the_undos_run_last_first(job):
    job.write(*CELLS)
    job.run(code=1)
    assert job.hits == "flight hotel car"
    out, _ = job.call("keel_notebook", "undo", job.path, "--json")
    told = json.loads(out)
    assert told["undone"], told
    assert job.hits == "flight hotel car no-hotel no-flight"
    assert not list(job.folder.glob("*.undo*")), "the executed notebook is nobody's"
    said, _ = job.call("keel_notebook", "undo", job.path, code=None)
    assert "nothing to undo" in said
    assert job.hits == "flight hotel car no-hotel no-flight", "none twice"


def test_o27_an_undo_that_always_fails_has_a_way_out_from_a_terminal_too(job):
    job.write(CELLS[0], CELLS[1], "%%keel_step hotel\nhit('hotel'); keel.undo(lambda: 1 / 0)", "%%keel_step car\n1 / 0")
    job.run(code=1)
    for _ in range(2):
        said, _ = job.call("keel_notebook", "undo", job.path, code=1)
        assert "compensate:ZeroDivisionError" in said
    job.run(code=1)
    assert job.hits == "flight hotel", "nothing goes forward"
    job.call("keel_notebook", "undo", job.path, "--skip", "hotel")
    assert job.hits == "flight hotel no-flight"
    job.run(code=1)
    assert job.hits == "flight hotel no-flight flight hotel"
