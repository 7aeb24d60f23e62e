"""Guarded calls: intent before, result after, never fired twice under one key (Z4, Z15, Z19-Z23, O14, E060)."""

import pytest

from keel_notebook.core.model import Kind, Status
from keel_notebook.errors import (
    AmbiguousError,
    DiskFullError,
    JournalUnreachableError,
    LeaseError,
    NotNowError,
    SettingsError,
)

PAY = """
import keel_paid
rate = 1
def pay(x):
    keel_paid.calls.append((x, keel.idempotency_key()))
    if keel_paid.die: raise SystemExit
    return x * rate
"""


@pytest.fixture(autouse=True)
def paid(monkeypatch):
    import sys
    import types

    module = types.ModuleType("keel_paid")
    module.calls, module.die = [], False
    monkeypatch.setitem(sys.modules, "keel_paid", module)
    return module


def pay(kernel, how="", amount=5, **options):
    kernel.step("pay", f"out = keel.call(pay, {amount}, key='k', effect='exactly_once'{how})", end=False, **options)
    return kernel.names["out"]


def test_z4_the_intent_is_there_before_the_body_and_the_result_after(boot, paid):
    kernel = boot()
    kernel.run(
        "import keel_paid\ndef pay(x):\n    keel_paid.seen = [e.status for e in keel_paid.look()]\n    return x\n"
    )
    paid.look = kernel.entries
    assert pay(kernel) == 5
    assert paid.seen == [Status.INTENT]
    assert [e.status for e in kernel.entries()] == [Status.OK]
    assert (kernel.entries()[0].effect, kernel.guard.held) == ("exactly_once", 0)


def test_z15_a_committed_call_is_not_fired_again_although_function_and_arguments_differ(boot, paid):
    first = boot()
    first.run(PAY)
    assert pay(first) == 5
    first.kill()
    second = boot()
    second.run(PAY.replace("rate = 1", "rate = 3"))
    assert pay(second, amount=7) == 5
    assert len(paid.calls) == 1
    assert "does not fire again" in second.said[0]
    assert pay(second, identity="other inputs") == 15, "another logical execution: another key"


def died_in_pay(boot, paid):
    first = boot()
    first.run(PAY)
    paid.die = True
    with pytest.raises(SystemExit):
        pay(first)
    paid.die = False
    first.kill()
    second = boot()
    second.run(PAY)
    return second


def test_z21_fail_stops_and_fires_nothing(boot, paid):
    kernel = died_in_pay(boot, paid)
    for _ in range(2):
        with pytest.raises(AmbiguousError, match="run 1"):
            pay(kernel)
    assert len(paid.calls) == 1
    assert kernel.entries(Kind.AUDIT) == []


def test_z21_z22_skip_goes_on_without_firing_and_is_audited_once(boot, paid):
    kernel = died_in_pay(boot, paid)
    for _ in range(2):
        assert pay(kernel, ", on_ambiguous='skip'") is None
    assert len(paid.calls) == 1
    [audit] = kernel.entries(Kind.AUDIT)
    assert audit.ambient["on_ambiguous"] == "skip"
    assert len(audit.ambient["idempotency_key"]) == 16, "the first 8 bytes, in hex"
    assert audit.payload is None


def test_z21_z23_rerun_fires_again_under_the_same_key(boot, paid):
    kernel = died_in_pay(boot, paid)
    assert pay(kernel, ", on_ambiguous='rerun'") == 5
    assert pay(kernel, ", on_ambiguous='rerun'") == 5
    assert len(paid.calls) == 2
    assert paid.calls[0] == paid.calls[1], "one key in every attempt (K40)"
    assert len(kernel.entries(Kind.AUDIT)) == 1
    assert [e.status for e in kernel.entries()] == [Status.INTENT, Status.OK], "the intent is not written again"


def test_z20_without_a_word_it_is_fail_and_a_wrong_word_is_refused(boot):
    kernel = boot()
    kernel.run(PAY)
    with pytest.raises(SettingsError, match="perhaps"):
        pay(kernel, ", on_ambiguous='perhaps'")


def test_z19_at_least_once_runs_again_after_a_death_and_its_class_is_recorded(boot, paid):
    kernel = boot()
    kernel.run(PAY)
    paid.die = True
    with pytest.raises(SystemExit):
        kernel.step("s", "keel.call(pay, 1, effect='at_least_once')")
    paid.die = False
    kernel.step("s", "out = keel.call(pay, 1, effect='at_least_once')")
    assert kernel.names["out"] == 1
    assert len(paid.calls) == 2
    assert {e.effect for e in kernel.entries()} == {"at_least_once"}
    kernel.step("s", "out = keel.call(pay, 1, effect='at_least_once')")
    assert len(paid.calls) == 2


def test_a_guarded_call_that_says_itself_that_it_failed_may_be_made_again(boot, paid):
    kernel = boot()
    kernel.run(PAY.replace("raise SystemExit", "raise LookupError"))
    paid.die = True
    with pytest.raises(LookupError):
        pay(kernel)
    paid.die = False
    assert pay(kernel) == 5
    assert len(paid.calls) == 2


@pytest.mark.parametrize("problem", [DiskFullError(step="pay"), JournalUnreachableError(journal="j", detail="gone")])
def test_without_a_journal_guarded_calls_do_not_start_and_idempotent_ones_say_not_durable(boot, paid, problem, folder):
    kernel = boot()
    kernel.run(PAY)
    kernel.run("def f(x): return x")
    kernel.step("s", "keel.call(f, 0)")  # the records are read while there is a journal
    append = kernel.journal.inner.append

    def broken(entry, *, synced=False):
        raise problem

    kernel.journal.inner.append = broken
    with pytest.raises(type(problem)):
        pay(kernel)
    assert paid.calls == []
    kernel.step("s", "out = keel.call(f, 1), keel.call(f, 2)", end=False)
    assert kernel.names["out"] == (1, 2)
    assert len([line for line in kernel.said if "not durable" in line]) == 1
    kernel.journal.inner.append = append
    assert kernel.guard.held == 0


def test_k41_a_journal_that_cannot_be_read_is_not_an_empty_one(boot, paid):
    kernel = boot()
    kernel.run(PAY)
    kernel.run("def f(x): return x")

    def broken(flow):
        raise JournalUnreachableError(journal="j", detail="gone")

    kernel.journal.inner.records = broken
    with pytest.raises(JournalUnreachableError):
        pay(kernel)
    assert paid.calls == []
    kernel.step("s", "out = keel.call(f, 1)", end=False)
    assert kernel.names["out"] == 1


def test_o14_who_lost_the_lease_while_it_ran_records_no_result(boot, paid):
    kernel = boot()
    kernel.run(PAY)
    kernel.guard.lost = LeaseError(flow="f", holder="pid 9", since="now")
    with pytest.raises(LeaseError):
        pay(kernel)
    assert [e.status for e in kernel.entries()] == [Status.INTENT]
    kernel.guard.lost = None
    with pytest.raises(AmbiguousError):
        pay(kernel)


def test_a_guarded_call_in_a_flow_without_a_name_is_refused_before_it_runs(boot, paid):
    from msgspec.structs import replace

    kernel = boot()
    kernel.run(PAY)
    kernel.calls.parts = replace(kernel.calls.parts, guard=None)
    with pytest.raises(NotNowError, match="keel flow NAME"):
        pay(kernel)
    assert paid.calls == []


def test_z23_a_step_has_a_key_too_and_calls_have_others(boot):
    kernel = boot()
    kernel.run("def f(): return keel.idempotency_key()")
    cell = "k = keel.idempotency_key(), keel.idempotency_key(), keel.call(f), keel.call(f)"
    kernel.step("s", cell, end=False)
    first = kernel.names["k"]
    assert first[0] == first[1]
    assert len(set(first)) == 3
    kernel.kill()
    again = boot()
    again.step("s", "k = keel.idempotency_key()")
    assert again.names["k"] == first[0]
