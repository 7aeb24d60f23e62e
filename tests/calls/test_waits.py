"""Timers and promises that outlive the kernel (O24, O25, Z30-Z38; E070, E071)."""

import threading

import pytest
from msgspec.structs import force_setattr

from keel_notebook.core.model import Kind, Status
from keel_notebook.engine import waits
from keel_notebook.errors import CannotStoreError, PromiseRefusedError, UnansweredError, UnknownPromiseError


def test_o24_after_a_restart_the_recorded_instant_is_waited_for(boot, clock):
    first = boot()
    armed_at = clock.now()

    def dies(seconds):
        clock.advance(59 * 60)
        raise SystemExit

    force_setattr(first.calls.parts, "sleep", dies)
    with pytest.raises(SystemExit):
        first.step("s", "keel.sleep('1h')", end=False)
    first.kill()
    second = boot()
    second.step("s", "keel.sleep('1h')", end=False)
    assert clock.now() == armed_at + 3600, "one minute, not another hour"
    second.kill()
    third = boot()
    clock.advance(7)
    third.step("s", "keel.sleep('1h')")
    assert clock.now() == armed_at + 3607, "over is over (Z38)"
    assert [e.status for e in third.entries(Kind.SLEEP)] == [Status.OK]


def test_two_sleeps_of_one_step_are_two_timers(boot, clock):
    kernel = boot()
    began = clock.now()
    kernel.step("s", "keel.sleep('10s'); keel.sleep('10s')")
    assert clock.now() - began == 20


PROMISE = "p = keel.promise('approve-deploy')"


def test_z31_z32_the_token_is_there_once_and_the_promise_is_attached_to_again(boot):
    first = boot()
    first.step("s", PROMISE, end=False)
    made = first.names["p"]
    assert len(bytes.fromhex(made.token)) == 32
    first.kill()
    second = boot()
    second.step("s", PROMISE, end=False)
    again = second.names["p"]
    assert (again.id, again.token) == (made.id, None)
    assert len(second.entries(Kind.PROMISE)) == 1
    for entry in second.entries(Kind.PROMISE):
        assert made.token not in repr(entry), "Z30: the journal has no token"
    assert made.token not in repr(made)


def test_z33_z37_a_promise_is_answered_by_who_has_the_token_only(boot, clock):
    kernel = boot()
    kernel.step("s", PROMISE, end=False)
    made = kernel.names["p"]
    kernel.kill()  # it is answered while the kernel is dead
    desk = boot().journal
    for wrong in ("0" * 64, "", made.token[:-1], made.token + "0", made.token.upper() + " "):
        with pytest.raises(PromiseRefusedError):
            waits.resolve(desk, clock, promise_id=made.id, token=wrong, value=1)
    for unknown in (made.id[:-1] + "x", "f:short", "nonsense"):
        with pytest.raises(UnknownPromiseError):
            waits.resolve(desk, clock, promise_id=unknown, token=made.token)
    with pytest.raises(CannotStoreError, match="plain values only"):
        waits.resolve(desk, clock, promise_id=made.id, token=made.token, value=object())
    assert waits.resolve(desk, clock, promise_id=made.id, token=made.token, value={"ok": True}) is True
    assert waits.resolve(desk, clock, promise_id=made.id, token=made.token, value=False) is False, "twice is harmless"
    with pytest.raises(PromiseRefusedError):  # the token is looked at before "already answered"
        waits.resolve(desk, clock, promise_id=made.id, token="0" * 64)
    second = boot()
    second.step("s", PROMISE + "\nout = p.result()")
    assert second.names["out"] == {"ok": True}


def test_z34_z35_an_answer_of_this_process_wakes_the_waiting_cell_at_once(boot, clock, monkeypatch):
    monkeypatch.setattr(waits, "POLL_S", 1000.0)  # so that nothing but the notice can wake it
    kernel = boot()
    kernel.step("s", PROMISE, end=False)
    made = kernel.names["p"]
    assert made.peek() is None
    waiting = threading.Event()
    seen = []

    def wait():
        waiting.set()
        seen.append(made.result())

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    waiting.wait(10)
    waits.resolve(kernel.journal, clock, promise_id=made.id, token=made.token, value="yes")
    thread.join(10)
    assert seen == ["yes"]
    assert made.peek() == ("yes",)


def test_an_answer_can_be_awaited_and_waiting_can_end(boot, clock):
    kernel = boot()
    kernel.step("s", PROMISE, end=False)
    made = kernel.names["p"]
    with pytest.raises(UnansweredError, match="0 s"):
        made.result(timeout=0)
    waits.resolve(kernel.journal, clock, promise_id=made.id, token=made.token, value=[1])
    kernel.step(
        "s",
        "async def main():\n    return await keel.promise('approve-deploy')\nimport asyncio\nout = asyncio.run(main())",
    )
    assert kernel.names["out"] == [1]


def test_other_inputs_and_a_rerun_make_another_promise(boot):
    kernel = boot()
    ids = []
    for identity in ("one", "two"):
        kernel.step("s", PROMISE, identity=identity, end=False)
        ids.append(kernel.names["p"].id)
    kernel.mark("s", Kind.RETIRE, "rerun")
    kernel.step("s", PROMISE, identity="one", end=False)
    ids.append(kernel.names["p"].id)
    assert len(set(ids)) == 3


def test_z36_a_notice_is_claimed_once_over_all_restarts(boot):
    first = boot()
    first.step("s", PROMISE + "\na = p.claim_notice(), p.claim_notice()", end=False)
    assert first.names["a"] == (True, False)
    first.kill()
    second = boot()
    second.step("s", PROMISE + "\nb = p.claim_notice()", end=False)
    assert second.names["b"] is False


def test_the_owner_answers_without_the_token_and_the_record_says_so(boot, clock):
    kernel = boot()
    kernel.step("s", PROMISE, end=False)
    made = kernel.names["p"]
    kernel.kill()
    desk = boot().journal
    with pytest.raises(UnknownPromiseError):
        waits.approve(desk, clock, promise_id=made.id[:-1] + "x")
    assert waits.approve(desk, clock, promise_id=made.id, value=True) is True
    assert waits.approve(desk, clock, promise_id=made.id, value=False) is False
    assert waits.resolve(desk, clock, promise_id=made.id, token=made.token, value=False) is False
    second = boot()
    second.step("s", PROMISE + "\nout = p.result()")
    assert second.names["out"] is True
    answers = [e for e in second.entries(Kind.PROMISE) if e.call == "answer"]
    assert [e.ambient["by"] for e in answers] == ["owner"]


def test_z32_the_hash_that_is_kept_opens_no_other_promise_and_no_other_flow():
    """The same token, moved boundaries included: a hash is bound to one promise of one flow."""
    places = [("f", "f:p"), ("f", "f:q"), ("g", "f:p"), ("ff", ":p"), ("f:", "fp")]
    assert len({waits.token_hash(flow, promise, "t" * 64) for flow, promise in places}) == len(places)
