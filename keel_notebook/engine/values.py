"""Value steps: clock and chance that are recorded once and given again to every attempt of a step (K43, C76).

They hold for one *sitting* of a step: from its last ok attempt on, under the same code and inputs. So a kernel that
dies leaves the next attempt the same id and the same "now", while a step that executes anew (edited, rerun, other
inputs) gets fresh ones. In the implicit step of a plain cell they hold where a dead run is gone on with.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from keel_notebook.core.model import Digest, Entry, Kind, Payload, Status, entry_id
from keel_notebook.engine import plain
from keel_notebook.engine.calls import Calls


def value(calls: Calls, kind: Kind, key: str, live: Callable[[], Any]) -> Any:
    """The recorded value of a value step, or the live one, recorded now. ``live`` gives a plain value."""
    with calls.parts.lock:
        here, records = calls.records()
        place = here.place(f"{kind}", key)
        found = records.sitting.get((kind, key, place.occurrence))
        if found is not None and found.code == here.identity and found.payload is not None:
            return plain.opened(calls.journal.read(found.payload.head))
        fresh = live()
        raw = plain.envelope(fresh)
        assert raw is not None
        journal = calls.journal
        now, seq = calls.parts.clock.now(), journal.next_seq()
        entry = Entry(
            entry=entry_id(journal.run, seq),
            flow=calls.parts.flow,
            run=journal.run,
            seq=seq,
            step=here.step,
            kind=kind,
            status=Status.OK,
            occurrence=place.occurrence,
            call=f"keel.{key}",
            key=key,
            attempt=0,
            code=Digest(here.identity),
            payload=Payload(journal.blob(raw), (), (), len(raw)),
            started_at=now,
            ended_at=now,
        )
        calls.keep(entry, here)
        return fresh


def now(calls: Calls) -> datetime:
    """The wall clock, as an aware datetime in UTC."""
    return datetime.fromtimestamp(value(calls, Kind.TIME, "now", calls.parts.clock.now), UTC)


def time(calls: Calls) -> float:
    """The wall clock, seconds since the epoch."""
    return float(value(calls, Kind.TIME, "time", calls.parts.clock.now))


def randbytes(calls: Calls, n: int) -> bytes:
    """``n`` random bytes."""
    return bytes(value(calls, Kind.RANDOM, f"randbytes {n}", lambda: calls.parts.entropy(n)))


def random(calls: Calls) -> float:
    """A random number from 0 (included) to 1."""
    return float(value(calls, Kind.RANDOM, "random", lambda: _unit(calls.parts.entropy(7))))


def uuid4(calls: Calls) -> uuid.UUID:
    """A random UUID."""
    return uuid.UUID(bytes=value(calls, Kind.RANDOM, "uuid4", lambda: calls.parts.entropy(16)), version=4)


def _unit(raw: bytes) -> float:
    return (int.from_bytes(raw, "big") >> 3) / (1 << 53)
