"""Durable calls of a kernel: puts the engine's parts on the open journal, and tells it which cell runs.

The session is asked for this at the first durable call; a kernel that makes none pays nothing.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from keel_notebook.core.ambient_ports import Ambient
from keel_notebook.core.cellcode import ParsedCell
from keel_notebook.core.decide import Mode
from keel_notebook.core.effects import step_identity
from keel_notebook.core.fingerprint import code_digest
from keel_notebook.core.ids import default_flow
from keel_notebook.core.model import Input
from keel_notebook.core.ports import Clock, Codec, Definitions, Digester, FlowRecords
from keel_notebook.core.resuming import resumed_runs
from keel_notebook.core.units import day_of
from keel_notebook.engine.callparts import CallParts
from keel_notebook.engine.calls import Calls
from keel_notebook.engine.counting import Vouch
from keel_notebook.engine.guard import Guard
from keel_notebook.engine.guarded import Key
from keel_notebook.engine.lease import Holder, Lease
from keel_notebook.engine.scope import StepScope
from keel_notebook.engine.shared import SharedJournal
from keel_notebook.engine.waits import Promise
from keel_notebook.journal import liveness
from keel_notebook.journal.flows import FlowSeen
from keel_notebook.payload import registry
from keel_notebook.payload.preview import preview

registry.register(Promise, Promise.kept, Promise.restored)  # p = keel.promise(…) in a step is a value like any other


def calls_of(  # noqa: PLR0913 - the parts, by name
    *,
    journal: SharedJournal,
    codec: Codec,
    digester: Digester,
    vouch: Vouch,
    definitions: Definitions,
    ambient: Ambient,
    clock: Clock,
    namespace: dict[str, Any],
    flow: FlowSeen,
    leases: Any,
    mode: Mode,
    say: Callable[[str], None],
) -> Calls:
    """What carries out the durable calls of a kernel on its open journal. ``leases`` is the folder of its leases."""
    guard = None
    if flow.id != default_flow():  # else nobody told which notebook this is: what must not happen twice is refused
        holder = Holder(liveness.host(), os.getpid(), liveness.boot())
        lease = Lease(leases, flow.id, holder=holder, clock=clock, title=flow.title)
        guard = Guard(lease, journal=journal)
        os.register_at_fork(after_in_child=guard.forget_in_child)  # else a child keeps the lock of a dead kernel
    return Calls(
        CallParts(
            journal=journal,
            codec=codec,
            digester=digester,
            vouch=vouch,
            definitions=definitions,
            clock=clock,
            namespace=namespace,
            flow=flow.id,
            flow_key=flow.key,
            guard=guard,
            ambient=ambient,
            sleep=time.sleep,
            chance=random.Random().random,  # noqa: S311 - spreads waits; not the notebook's own generator
            entropy=os.urandom,
            mode=mode,
            say=say,
            preview=preview,
            lock=journal.lock,
        )
    )


def step_scope(step: str, key: Key, attempt: str, cell: ParsedCell) -> StepScope:
    """The scope of a step's body. Set it with ``scope.enter`` right before the body runs."""
    return StepScope(step, key.identity, idempotency_key=key.idempotency_key, attempt=attempt, cell=cell)


def plain_scope(
    name: str,
    cell: ParsedCell,
    *,
    inputs: Mapping[str, Input],
    went_on: frozenset[int],
    unrecorded: bool = False,
) -> StepScope:
    """The implicit step of a plain cell that makes durable calls; ``went_on``: runs that this one goes on with."""
    identity = step_identity("", code_digest(cell), inputs)
    return StepScope(name, identity, implicit=True, unrecorded=unrecorded, resumed=went_on, cell=cell)


def resumed(records: FlowRecords, run: int, now: float, *, alone: bool) -> frozenset[int]:
    """The runs that this one goes on with, asked for or not; ``alone``: no front end is there that could ask."""
    asked = alone or os.environ.get("KEEL_RESUME") == "1"
    return resumed_runs(records, run, now, day=day_of, asked=asked)
