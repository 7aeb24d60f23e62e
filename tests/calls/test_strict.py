"""Strict flows beyond the stories: write order, exits, leases, failures of the journal (K2-K42, Z16, O8, O10, O14)."""

import itertools

import pytest

from keel_notebook.core.decide import Response
from keel_notebook.core.flowstate import FlowStatus, flow_state
from keel_notebook.core.model import Kind, Status
from keel_notebook.engine.lease import TTL_S, Holder, Lease
from keel_notebook.engine.strict import Identity, NoLease, Rules, enter
from keel_notebook.errors import DeadError, DiskFullError, LeaseError, StepCapError, VersionError
from keel_notebook.journal.memory import MemoryFolder, MemoryJournal
from tests.support.kernels import SEAL, ManualClock

ID = Identity("nb:a", "args", code_hash="v1")


class House:
    """One flow, its journal and its leases."""

    def __init__(self, folder):
        self.leases, self.memory, self.clock = folder, MemoryFolder(), ManualClock()
        self._pids = itertools.count(1)

    def enter(self, identity=ID, holder=None, lease=None, **rules):
        self.journal = MemoryJournal(self.memory, clock=self.clock, seal=SEAL)
        who = Holder("h", holder or next(self._pids), "b")
        lease = lease or Lease(self.leases, identity.flow, holder=who, clock=self.clock, locks=False)
        return enter(identity, journal=self.journal, clock=self.clock, lease=lease, rules=Rules(**rules))

    def rows(self):
        return [e for e in self.journal.records(ID.flow).entries if e.kind is not Kind.MARKER]

    @property
    def state(self):
        return flow_state(self.journal.records(ID.flow).entries)

    def lease(self):
        return Lease(self.leases, ID.flow, holder=Holder("h", 0, "b"), clock=self.clock, locks=False).seen()


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def ok(value, attempts=1):
    return lambda: {"result": "ok", "payload": value, "attempts": attempts}


def test_k2_the_code_is_kept_at_the_first_entry_and_is_no_part_of_the_identity(house):
    house.enter().fail()
    other = Identity("nb:a", "args", code_hash="v2")
    assert other.flow == ID.flow
    house.enter(other).fail()
    assert house.state.code == "v1"
    assert len([e for e in house.journal.records(ID.flow).entries if e.key == "flow:open"]) == 1


def test_k4_the_position_is_claimed_before_the_effect_runs(house):
    flow = house.enter()

    def outer():
        flow.call("inner#-", ok("i"))
        return ok("o")()

    flow.call("outer#-", outer)
    assert {e.key: e.occurrence for e in house.rows()} == {"outer#-": 1, "inner#-": 2}


def test_k8_k9_running_is_written_before_the_effect_and_the_outcome_before_its_release(house):
    flow, seen = house.enter(), []

    def effect():
        seen.extend((e.status, e.ended_at) for e in house.rows())
        return ok(1)()

    flow.call("a#-", effect)
    assert seen == [(Status.RUNNING, None)]
    assert [e.status for e in house.rows()] == [Status.OK]


def test_k14_o8_the_divergence_names_flow_position_expected_and_observed(house):
    house.enter().call("old#1", ok(1))
    house.clock.advance(TTL_S + 1)
    outcome = house.enter().call("new#2", ok(2))
    for part in (f"flow {ID.entrypoint}", "position 1", "old#1", "new#2"):
        assert part in outcome["error"]["message"]


def test_k17_the_marker_says_mode_expected_and_observed(house):
    house.enter().call("old#1", ok(1))
    house.clock.advance(TTL_S + 1)
    house.enter(response=Response.WARN).call("new#2", ok(2))
    marker = house.state.rows["", 1]
    assert marker.ambient == {"mode": "warn", "expected": "old#1", "observed": "new#2"}
    kept = [e for e in house.journal.records(ID.flow).entries if e.key == "old#1"]
    assert [e.status for e in kept] == [Status.OK], "the old row stays: history is never overwritten"


def test_k28_k30_z16_only_the_first_end_counts_and_completed_stays(house):
    flow = house.enter()
    flow.complete()
    flow.fail()
    flow.complete()
    assert house.state.status is FlowStatus.COMPLETED
    again = house.enter()
    again.fail()
    assert house.state.status is FlowStatus.COMPLETED
    assert again.pure


ENDS = {"complete": FlowStatus.COMPLETED, "fail": FlowStatus.FAILED, "abort": FlowStatus.ABORTED}


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(ENDS, 2)))
@pytest.mark.parametrize("leased", [True, False])
def test_z16_only_the_first_transition_out_of_running_applies(house, first, second, leased):
    flow = house.enter(lease=None if leased else NoLease())
    getattr(flow, first)()
    written = len(house.journal.records(ID.flow).entries)
    getattr(flow, second)()
    assert house.state.status is ENDS[first]
    assert len(house.journal.records(ID.flow).entries) == written


def test_k30_a_status_that_cannot_be_written_only_warns(house):
    flow = house.enter()
    house.journal.problem = DiskFullError(step="x")
    flow.complete()
    house.journal.problem = None
    assert len(flow.warnings) == 1
    assert house.state.status is FlowStatus.RUNNING


def test_k29_a_handle_that_is_dropped_leaves_the_flow_running_with_its_lease(house):
    house.enter().call("a#-", ok(1))
    assert house.state.status is FlowStatus.RUNNING
    assert house.lease().holder is not None
    with pytest.raises(LeaseError):
        house.enter()


def test_o15_an_ended_flow_holds_no_lease(house):
    house.enter().complete()
    assert house.lease().holder is None


def test_k26_a_completed_flow_replays_while_another_holds_a_lease_and_counts_no_attempt(house):
    flow = house.enter()
    flow.call("a#-", ok(1))
    flow.complete()
    stranger = Lease(house.leases, ID.flow, holder=Holder("x", 9, "b"), clock=house.clock, locks=False)
    stranger.acquire()
    again = house.enter()
    assert again.call("a#-", ok(2))["payload"] == 1
    assert house.state.attempts == 1
    assert house.lease().holder == Holder("x", 9, "b")


def test_k35_a_stolen_lease_refuses_the_next_call_before_its_effect(house):
    flow, ran = house.enter(), []
    house.clock.advance(TTL_S + 1)
    house.enter()  # another holder takes over
    outcome = flow.call("a#-", lambda: ran.append(1))
    assert outcome["error"]["code"] == "KEEL-E030"
    assert ran == []


def test_o14_a_lease_stolen_while_the_effect_ran_leaves_its_result_unrecorded(house):
    flow = house.enter()

    def effect():
        house.clock.advance(TTL_S + 1)
        house.enter()
        return ok(1)()

    assert flow.call("a#-", effect)["error"]["code"] == "KEEL-E030"
    assert [e.status for e in house.rows()] == [Status.RUNNING]


def test_k33_a_wall_clock_that_is_set_back_or_on_fences_nobody(house):
    flow = house.enter()
    for jump in (-86_400, 86_400 * 2):
        house.clock.at += jump
        assert flow.call(f"a#{jump}", ok(1))["result"] == "ok"


def test_k42_a_call_that_cannot_be_recorded_goes_on_with_a_warning(house):
    flow = house.enter()
    house.journal.problem = DiskFullError(step="x")
    assert flow.call("a#-", ok(1))["payload"] == 1
    assert flow.warnings


def test_k38_the_key_of_an_attempt_that_crashed_is_in_its_row_and_comes_back(house):
    class Died(BaseException):
        pass

    def dies():
        raise Died

    flow = house.enter()
    flow.call("a#1", ok(1), idempotency_key="done")
    with pytest.raises(Died):
        flow.call("pay#1", dies, idempotency_key="k-1")
    house.clock.advance(TTL_S + 1)
    again = house.enter()
    assert again.peek_key("a#1") is None, "what ended has none to give"
    again.call("a#1", ok(1))
    assert (again.peek_key("pay#1"), again.peek_key("pay#2")) == ("k-1", None)
    again.call("pay#1", ok(2))
    assert [(e.status, e.idempotency_key) for e in house.rows() if e.key == "pay#1"][-1] == (Status.OK, "k-1")


def test_k39_looking_at_the_key_moves_nothing(house):
    flow = house.enter()
    assert [flow.peek_key("a#-") for _ in range(3)] == [None] * 3
    flow.call("a#-", ok(1))
    assert [e.occurrence for e in house.rows()] == [1]


def test_o21_what_is_not_plain_is_refused_by_its_type(house):
    with pytest.raises(TypeError, match="object"):
        house.enter().call("a#-", ok(object()))


def test_k23_attempts_of_a_replayed_call_are_those_of_the_record(house):
    house.enter().call("a#-", ok(1, attempts=4))
    house.clock.advance(TTL_S + 1)
    assert house.enter().call("a#-", ok(2, attempts=1))["attempts"] == 4


def test_lanes_of_two_branches_stay_apart_and_the_first_lane_is_unchanged(house):
    def run(keys):
        flow = house.enter(response=Response.BRANCH, max_attempts=9)
        out = [flow.call(key, ok(f"{key} live"))["payload"] for key in keys]
        house.clock.advance(TTL_S + 1)
        return out, flow.lane

    run(["a", "b", "c"])
    before = {k: v for k, v in house.state.rows.items() if k[0] == ""}
    _, one = run(["a", "x"])
    _, two = run(["a", "y"])
    assert len({"", one, two}) == 3
    assert {k: v for k, v in house.state.rows.items() if k[0] == "" and k[1]} == {
        k: v for k, v in before.items() if k[1]
    }, "K16: byte for byte"
    out, lane = run(["a", "y", "z"])
    assert lane == two
    assert out == ["a live", "y live", "z live"]


def test_k24_the_first_entry_is_no_recovery_and_each_later_one_is(house):
    counted = []
    for _ in range(3):
        flow = house.enter()
        counted.append(flow.recoveries)
        flow.fail()
    assert counted == [0, 1, 2]
    assert house.state.recoveries == 2


def test_o5_the_same_row_appended_twice_is_one_and_a_gap_is_never_passed_over(house):
    flow = house.enter()
    for key in "ab":
        flow.call(key, ok(key))
    for row in house.rows():
        house.journal.append(row)
    assert [e.key for e in house.rows()] == ["a", "b"]
    flow.fail()
    [row] = [e for e in house.rows() if e.key == "a"]
    house.memory.written = [w for w in house.memory.written if w.entry.entry != row.entry]  # never arrived
    again, ran = house.enter(), []
    for key in "ab":
        again.call(key, lambda key=key: ran.append(key) or ok(key)())
    assert ran == ["a"], "what is missing runs at its own place; the row behind it answers for itself only"


def test_o10_what_is_over_is_not_gone_on_with_and_a_dead_flow_says_why(house):
    flow = house.enter()
    flow.call("a", ok(1))
    flow.complete()
    assert house.enter().pure, "completed: replayed, never resumed (K26)"
    for _ in range(3):
        house.enter(other := Identity("nb:b", "args")).fail()
    for _ in range(2):
        with pytest.raises(DeadError) as refused:
            house.enter(other)
        assert refused.value.code == "E032"


def test_o11_a_flow_tried_again_begins_at_its_top_replays_what_ended_and_runs_the_rest(house):
    ran = []

    def attempt(breaks):
        flow = house.enter()
        for key in ("a", "b", "c"):

            def effect(key=key):
                ran.append(key)
                if key == "c" and breaks:
                    raise OSError
                return ok(key)()

            flow.call(key, effect)
        flow.complete()

    for _ in range(2):
        with pytest.raises(OSError):  # noqa: PT011 - the effect's own
            attempt(breaks=True)
        house.clock.advance(TTL_S + 1)  # its kernel is gone, and so is its lease
    attempt(breaks=False)
    assert ran == ["a", "b", "c", "c", "c"]
    assert house.state.attempts == 3


def test_o20_a_store_without_leases_works_uncoordinated(house):
    journal = MemoryJournal(house.memory, clock=house.clock, seal=SEAL)
    first, second = (enter(ID, journal=journal, clock=house.clock, lease=NoLease(), rules=Rules()) for _ in range(2))
    assert (first.pure, second.pure) == (False, False)
    assert first.call("a", ok(1)) == ok(1)()
    first.complete()
    assert enter(ID, journal=journal, clock=house.clock, lease=NoLease(), rules=Rules()).pure


def test_z26_the_call_above_the_cap_aborts_the_flow_and_does_not_happen(house):
    flow = house.enter(most_steps=2)
    assert [flow.call(f"c{n}", ok(n))["result"] for n in (1, 2)] == ["ok", "ok"]
    ran = []
    refused = flow.call("c3", lambda: ran.append(3))
    assert (refused["error"]["code"], ran) == ("KEEL-E061", [])
    assert house.state.status is FlowStatus.ABORTED
    with pytest.raises(StepCapError):
        flow.value(Kind.TIME, "now", 1.0)
    again = house.enter(most_steps=0)
    assert [again.call(f"c{n}", ok(n))["result"] for n in (1, 2, 3)] == ["ok", "ok", "ok"], "0: as many as there are"


def test_o29_a_version_of_ones_own_that_differs_fails_the_flow_and_frees_its_lease(house):
    seventh, eighth = (Identity("nb:a", "args", version=version) for version in ("7", "8"))
    house.enter(seventh)  # and it crashes
    house.clock.advance(TTL_S + 1)
    with pytest.raises(VersionError) as refused:
        house.enter(eighth)
    assert all(name in str(refused.value) for name in ("app:7", "app:8"))
    assert (house.state.status, house.state.attempts) == (FlowStatus.FAILED, 1)
    assert house.lease() is None or house.lease().holder is None
    house.enter(seventh).complete()
    assert house.enter(eighth).pure, "completed: replayed, whatever the version"


def test_o29_a_stamp_without_the_prefix_is_overwritten(house):
    flow = house.enter(Identity("nb:a", "args"))
    flow._mark("flow:version", {"version": "c0ffee"})
    flow.fail()
    house.enter(Identity("nb:a", "args", version="7")).fail()
    assert house.state.version == "app:7"
