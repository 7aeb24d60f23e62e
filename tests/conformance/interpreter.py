"""Tells the JSON stories through the engine: calls under a policy, and strict flows with a journal and a lease.

The format is the one described in the README of the handed stories. An interpreter must be general: it knows the
fields, not the files. ``tell`` gives every way in which the engine did not do what the story says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keel_notebook.core.callrules import layer
from keel_notebook.core.decide import Response
from keel_notebook.core.flowstate import FlowState, flow_state
from keel_notebook.core.model import Entry, Kind, Status, entry_id
from keel_notebook.engine.callpolicy import PolicyEngine, Request
from keel_notebook.engine.lease import TTL_S, Holder, Lease
from keel_notebook.engine.strict import Identity, Rules, StrictFlow, enter
from keel_notebook.errors import KeelError
from tests.support.kernels import SEAL, ManualClock

LANES_AT = 1_000_000
"""Where the stories put the rows of another lane: lane and position are one number there."""
KINDS = {Kind.CALL: "effect", Kind.TIME: "time", Kind.RANDOM: "random", Kind.MARKER: "marker"}
STATUSES = {Status.OK: "ok", Status.FAILED: "error", Status.RUNNING: "running"}


def subset(actual: Any, expected: Any, where: str = "$") -> Iterator[str]:
    """Where ``actual`` is not what is expected: objects by the keys that are given, all else exactly."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key, value in expected.items():
            if key not in actual:
                yield f"{where}.{key}: missing, expected {value!r}"
            else:
                yield from subset(actual[key], value, f"{where}.{key}")
    elif actual != expected or isinstance(actual, bool) != isinstance(expected, bool):
        yield f"{where}: {actual!r}, expected {expected!r}"


def tell(story: Mapping[str, Any], *, folder: Path, journal_of: Callable[[ManualClock], Any]) -> list[str]:
    """Tell one story; what went otherwise. ``journal_of`` opens a journal for the next kernel."""
    if story.get("tier", 1) == 2:
        return FlowStory(story, folder=folder, journal_of=journal_of).tell()
    return list(_calls(story))


# ---- stories about calls


def _calls(story: Mapping[str, Any]) -> Iterator[str]:
    clock = ManualClock()
    try:
        engine = _engine(story["policy"], clock)
    except KeelError as error:
        if f"KEEL-{error.code}" != story.get("expect_configure_error"):
            yield f"configuring it: {error}"
        return
    if "expect_configure_error" in story:
        yield f"configuring it was to fail with {story['expect_configure_error']}"
    for number, step in enumerate(story["steps"]):
        where = f"step {number}"
        match step:
            case {"call": call}:
                yield from subset(_call(engine, call), call.get("expect", {}), where)
            case {"advance_ms": ms}:
                clock.advance(ms / 1000)
            case {"report_expect": expected}:
                yield from subset(engine.report(), expected, where)
            case {"layer": asked, "expect": expected}:
                found = layer(story["policy"], asked["target"], asked["key"])
                if found != expected:
                    yield f"{where}: {found!r}, expected {expected!r}"
            case _:
                raise NotImplementedError(f"{where}: {sorted(step)}")


def _engine(policy: Mapping[str, Any], clock: ManualClock) -> PolicyEngine:
    start = clock.now()
    return PolicyEngine(
        policy,
        now_ms=lambda: round((clock.now() - start) * 1000),
        sleep_ms=lambda ms: clock.advance(ms / 1000),
        chance=lambda: 1.0,
    )


def _call(engine: PolicyEngine, call: Mapping[str, Any]) -> dict[str, Any]:
    request = call["request"]
    asked = Request(call["target"], request.get("op", ""), request.get("idempotent", False), request.get("args_hash"))
    answers = iter(call["effect"])
    return engine.call(asked, lambda _: next(answers))


# ---- stories about flows


@dataclass
class FlowStory:
    """One flow that is entered again and again."""

    story: Mapping[str, Any]
    folder: Path
    journal_of: Callable[[ManualClock], Any]
    clock: ManualClock = field(default_factory=ManualClock)
    wrong: list[str] = field(default_factory=list)
    held: list[Any] = field(default_factory=list)

    def tell(self) -> list[str]:
        """All runs, in order."""
        self.engine = _engine(self.story["policy"], self.clock)
        self.policy = self.story["policy"]
        for number, run in enumerate(self.story["runs"]):
            self._run(run, f"run {number}")
        for journal in self.held:
            journal.close(clean=True)
        return self.wrong

    def _run(self, run: Mapping[str, Any], where: str) -> None:
        self.clock.advance(run.get("advance_before_ms", 0) / 1000)
        if "policy" in run:
            self.policy = run["policy"]
            self.engine.configure(self.policy)
        journal = self.journal_of(self.clock)
        try:
            flow = self._enter(run, journal)
        except KeelError as error:
            shown = {"code": f"KEEL-{error.code}", "message": str(error)}
            expected = run.get("expect_enter_error", {"code": "no error"})
            self.wrong += subset(shown, expected, f"{where} entry")
            journal.close(clean=True)
            return
        if "expect_enter_error" in run:
            self.wrong.append(f"{where}: it was entered, expected {run['expect_enter_error']}")
        self.calls = 0
        for number, step in enumerate(run.get("steps", ())):
            self._step(flow, step, f"{where} step {number}")
        if "expect_effect_calls" in run and self.calls != run["expect_effect_calls"]:
            self.wrong.append(f"{where}: {self.calls} effects ran, expected {run['expect_effect_calls']}")
        if "inject_running" in run:
            self._inject(journal, run["inject_running"])
        self._look(journal, run.get("expect_journal", ()), where)
        self._end(run, flow, journal)

    def _enter(self, run: Mapping[str, Any], journal: Any) -> StrictFlow:
        about = self.story["flow"]
        code = run.get("code_hash", about.get("code_hash"))
        self.identity = Identity(about["entrypoint"], about["args_hash"], about.get("key", ""), code)
        host, _, pid = run.get("holder", "host-a:pid-1").partition(":pid-")
        # Holders of a story are on hosts of their own, where locks do not reach: the expiry decides (K31).
        lease = Lease(
            self.folder, self.identity.flow, holder=Holder(host, int(pid or 1), "story"), clock=self.clock, locks=False
        )
        response = Response(self.policy.get("flows", {}).get("on_nondeterminism", "fail"))
        rules = Rules(response, self.story.get("max_attempts", 3))
        return enter(self.identity, journal=journal, clock=self.clock, lease=lease, rules=rules)

    def _step(self, flow: StrictFlow, step: Mapping[str, Any], where: str) -> None:
        if step.get("kind", "effect") != "effect":
            self._value(flow, step, where)
            return
        target, args = step["target"], step.get("args_hash")
        key = f"{target}#{args or '-'}"  # K6
        if "expect_recorded_key" in step:
            self.wrong += subset(flow.peek_key(key), step["expect_recorded_key"], f"{where} recorded key")
        request = Request(target, step.get("op", target), step.get("idempotent", True), args)
        outcome = flow.call(
            key, lambda: self.engine.call(request, self._effect(step)), idempotency_key=step.get("idempotency_key", "")
        )
        self.wrong += subset(outcome, step.get("expect", {}), where)

    def _effect(self, step: Mapping[str, Any]) -> Callable[[int], Mapping[str, Any]]:
        def attempt(number: int) -> Mapping[str, Any]:
            self.calls += 1
            scripted = step["effect"]
            return scripted[number - 1] if isinstance(scripted, list) else scripted

        return attempt

    def _value(self, flow: StrictFlow, step: Mapping[str, Any], where: str) -> None:
        try:
            found = flow.value(Kind(step["kind"]), step["key"], step["live_value"])
        except KeelError as error:
            expected = step.get("expect", {"error": {"code": "no error"}})
            self.wrong += subset({"result": "error", "error": {"code": f"KEEL-{error.code}"}}, expected, where)
            return
        self.wrong += subset({"result": "ok", "payload": found}, step.get("expect", {}), where)
        if "expect_value" in step:
            self.wrong += subset(found, step["expect_value"], where)

    def _inject(self, journal: Any, running: Mapping[str, Any]) -> None:
        seq = journal.next_seq()
        entry = Entry(
            entry_id(journal.run, seq), self.identity.flow, journal.run, seq, "", Kind.CALL, Status.RUNNING,
            occurrence=running["seq"], key=f"{running['target']}#{running.get('args_hash') or '-'}",
            idempotency_key=running.get("idempotency_key", ""), started_at=self.clock.now(),
        )  # fmt: skip
        journal.append(entry)

    def _look(self, journal: Any, expected: Any, where: str) -> None:
        rows = {row["seq"]: row for row in shown_rows(flow_state(journal.records(self.identity.flow).entries))}
        for row in expected:
            if row["seq"] not in rows:
                self.wrong.append(f"{where}: no row at {row['seq']}, there are {sorted(rows)}")
            else:
                self.wrong += subset(rows[row["seq"]], row, f"{where} row {row['seq']}")

    def _end(self, run: Mapping[str, Any], flow: StrictFlow, journal: Any) -> None:
        if run.get("hold"):
            self.held.append(journal)
            return
        match run.get("end", "success"):
            case "success":
                flow.complete()
            case "failed":
                flow.fail()
            case "crash":
                self.clock.advance(TTL_S + 1)  # the holder is gone, and its lease runs out
                journal.close(clean=False)
                return
            case other:
                raise NotImplementedError(f"end {other}")
        self.wrong += [f"a warning: {line}" for line in flow.warnings]
        journal.close(clean=True)


def shown_rows(state: FlowState) -> list[dict[str, Any]]:
    """The rows of a flow as the stories spell them."""
    rows = []
    for (lane, position), entry in state.rows.items():
        row = {
            "seq": position + (LANES_AT if lane else 0),
            "key": entry.key,
            "kind": KINDS.get(entry.kind, str(entry.kind)),
            "status": STATUSES.get(entry.status, str(entry.status)),
            "attempt": entry.attempt,
        }
        rows.append(row)
    return rows


def stories(folder: Path) -> list[Any]:
    """The story files of a folder, by name."""
    return sorted(folder.glob("*.json"))


def read(path: Path) -> dict[str, Any]:
    """One story."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


__all__ = ["SEAL", "read", "shown_rows", "stories", "subset", "tell"]
