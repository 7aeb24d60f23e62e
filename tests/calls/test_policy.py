"""The policy of a call: attempts, waits, time limits (K40, E010, E011, E014, E015), with a clock of the test."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keel_notebook.core.attempts import schedule, wait_ms
from keel_notebook.core.callrules import TokenBucket
from keel_notebook.engine.callpolicy import failed, next_try, retry_of
from keel_notebook.errors import CallTimeoutError, SettingsError

FLAKY = """
import keel_paid
def f(x):
    keel_paid.calls.append(keel.idempotency_key())
    if len(keel_paid.calls) < keel_paid.good: raise keel_paid.error
    return x
"""


@pytest.fixture(autouse=True)
def paid(monkeypatch):
    import sys
    import types

    module = types.ModuleType("keel_paid")
    module.calls, module.good, module.error = [], 1, ConnectionError("reset")
    monkeypatch.setitem(sys.modules, "keel_paid", module)
    return module


def test_k40_retries_wait_longer_each_time_and_share_one_key(boot, paid):
    paid.good = 4
    kernel = boot()
    kernel.run(FLAKY)
    kernel.step("s", "out = keel.call(f, 7, retries=3)")
    assert kernel.names["out"] == 7
    assert len(set(paid.calls)) == 1
    assert [entry.attempt for entry in kernel.entries()] == [4]
    for natural, slept in zip((0.2, 0.4, 0.8), kernel.clock.slept, strict=True):
        assert natural / 2 <= slept <= natural, "jitter: between half and all of it"


def test_e010_the_last_error_is_raised_as_it_is_with_a_note(boot, paid):
    paid.good = 99
    kernel = boot()
    kernel.run(FLAKY)
    with pytest.raises(ConnectionError, match="reset") as caught:
        kernel.step("s", "keel.call(f, 7, retries=2)")
    assert caught.value is paid.error
    assert "KEEL-E010" in caught.value.__notes__[0]
    assert len(paid.calls) == 3


class Answered(Exception):
    def __init__(self, status, after=None):
        self.response = type("R", (), {"status_code": status, "headers": {"Retry-After": after} if after else {}})()


def test_e015_an_answer_that_will_not_change_is_final(boot, paid):
    paid.good, paid.error = 99, Answered(400)
    kernel = boot()
    kernel.run(FLAKY)
    with pytest.raises(Answered) as caught:
        kernel.step("s", "keel.call(f, 7, retries=5)")
    assert "KEEL-E015" in caught.value.__notes__[0]
    assert len(paid.calls) == 1


def test_retry_after_is_waited_for(boot, paid):
    paid.good, paid.error = 2, Answered(429, "17")
    kernel = boot()
    kernel.run(FLAKY)
    kernel.step("s", "keel.call(f, 7, retries=1)")
    assert kernel.clock.slept == [17.0]


def test_e014_what_is_not_idempotent_is_tried_again_only_under_a_key(boot, paid):
    paid.good = 2
    kernel = boot()
    kernel.run(FLAKY)
    with pytest.raises(ConnectionError) as caught:
        kernel.step("s", "keel.call(f, 7, retries=3, effect='exactly_once')")
    assert "KEEL-E014" in caught.value.__notes__[0]
    paid.calls.clear()
    kernel.step("t", "out = keel.call(f, 7, retries=3, effect='exactly_once', key='order 7')")
    assert len(set(paid.calls)) == 1
    assert len(paid.calls) == 2


def test_e011_a_call_that_hangs_is_left_behind(boot, paid):
    paid.gate = threading.Event()
    kernel = boot()
    kernel.run("import keel_paid\ndef f():\n    keel_paid.gate.wait(30)\n")
    with pytest.raises(CallTimeoutError, match=r"within 0\.05 s"):
        kernel.step("s", "keel.call(f, timeout=0.05)")
    with pytest.raises(CallTimeoutError):
        kernel.step("s", "keel.call(f, timeout='50ms', effect='exactly_once')")
    assert [entry.status for entry in kernel.entries()] == ["failed", "intent"], "the guarded one may still happen"
    paid.gate.set()


def test_e011_of_an_awaited_call(boot):
    kernel = boot()
    kernel.run("import asyncio\nasync def f():\n    await asyncio.sleep(30)\n")
    with pytest.raises(CallTimeoutError):
        kernel.step("s", "async def main():\n    return await keel.call(f, timeout=0.05)\nasyncio.run(main())")


def test_an_awaited_call_is_tried_again_too(boot, paid):
    paid.good = 2
    kernel = boot()
    kernel.run(FLAKY.replace("def f", "async def f"))
    kernel.step(
        "s", "import asyncio\nasync def main():\n    return await keel.call(f, 3, retries=1)\nout = asyncio.run(main())"
    )
    assert kernel.names["out"] == 3
    assert [entry.attempt for entry in kernel.entries()] == [2]


@pytest.mark.parametrize(
    "how", ["retries=-1", "on_error='ignore'", "effect='maybe'", "timeout='soon'", "trust_key=True"]
)
def test_e001_options_that_cannot_be_meant_are_refused(boot, how):
    kernel = boot()
    with pytest.raises(SettingsError):
        kernel.step("s", f"keel.call(len, [], {how})")


def test_errors_of_libraries_are_understood():
    assert failed(Answered(503)).status == 503
    assert failed(TimeoutError()).kind == "timeout"
    assert failed(ConnectionResetError()).kind == "conn"
    assert failed(TimeoutError()).kind == "timeout"
    assert failed(ValueError()).kind == "other"
    assert failed(Answered(429, "Wed, 21 Oct 2026 07:28:00 GMT")).retry_after_ms is None


def test_retries_of_a_person_are_for_any_error_that_may_pass():
    rule = retry_of(1)
    assert isinstance(next_try(rule, 1, ValueError(), repeatable=True, chance=lambda: 1.0), float)
    for status in (408, 409, 425, 429, 500, 503):
        assert isinstance(next_try(rule, 1, Answered(status), repeatable=True, chance=lambda: 1.0), float)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 5000), st.integers(0, 20_000))
def test_a_schedule_never_exceeds_the_bound_of_a_part(attempts, base, bound):
    segments = schedule(f"exp({base}ms, x2) upTo {bound}ms andThen fixed(7ms)")
    waits = [wait_ms(segments, n)[0] for n in range(1, attempts + 1)]
    first = [wait for wait in waits if wait != 7 or base == 7]
    assert waits == [*waits[: len(first)], *[7] * (len(waits) - len(first))] or base == 7
    if base != 7:
        assert sum(first) <= bound
        assert first == [base * 2**n for n in range(len(first))]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.lists(st.integers(0, 3000), max_size=30))
def test_a_bucket_never_lets_more_through_than_its_rate(limit, gaps):
    bucket, now, times = TokenBucket(limit, 1000), 0, []
    for gap in gaps:
        now += gap
        now += bucket.admit(now)
        times.append(now)
    for at, time in enumerate(times):
        assert sum(time <= other < time + 1000 for other in times[at:]) <= 2 * limit
    assert all(wait >= 0 for wait in times)
