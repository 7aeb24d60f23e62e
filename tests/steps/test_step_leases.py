"""Two real kernels, one notebook: the lease of guarded steps (K31, O12, O14, Z18; DESIGN 5, Lease)."""

import os
import signal

import pytest

pytestmark = pytest.mark.kernel

PAY = """
import os, time
def wait_for(name):
    while not os.path.exists(name): time.sleep(0.01)
# ---
%%keel_step pay --effect exactly_once --on-ambiguous rerun
hit(f"paid{os.getpid()}"); open("begun", "w").close()
wait_for("go"); receipt = os.getpid()
"""


def send(book, at):
    """Send a cell without waiting for its end; the id of its request."""
    sent = book.client.session.msg(
        "execute_request", {"code": book.cells[at + 2], "silent": False, "store_history": True, "user_expressions": {}}
    )
    sent["metadata"]["cellId"] = book.ids[at + 2]
    book.client.shell_channel.send(sent)
    return sent["header"]["msg_id"]


def wait_for(path):
    while not path.exists():
        pass


def test_o12_o14_a_paused_holder_that_wakes_up_records_nothing_and_the_other_may_take_over(notebook, tmp_path):
    first, second = notebook(PAY), notebook(PAY)
    for book in (first, second):
        book.start()
        for at in (-2, -1, 0):
            assert book.run(at).status == "ok"
    request = send(first, 1)
    wait_for(tmp_path / "begun")
    assert "KEEL-E030" in second.run(1).error, "it runs in another kernel"
    assert "KEEL-E030" in second.execute("%keel flow --take").error, "and nobody takes it from a kernel that runs"
    os.kill(first.pid, signal.SIGSTOP)
    try:
        (tmp_path / "go").touch()
        assert "KEEL-E030" in second.run(1).error, "a pause alone takes nothing away"
        assert second.execute("%keel flow --take").status == "ok"
        assert second.run(1).status == "ok"
    finally:
        os.kill(first.pid, signal.SIGCONT)
    woken = first._collect(request)
    assert woken.status == "ok"
    assert "not recorded: KEEL-E030" in woken.stderr
    assert second.run(1).status == "ok"
    assert len(first.hits.split()) == 2, "the second firing was a person's word; nothing fired after it"
    third = notebook(PAY)
    third.start()
    for at in (-2, -1, 0, 1):
        assert third.run(at).status == "ok"
    assert third.execute("receipt").text == str(second.pid), "the record is the one of who took over"
