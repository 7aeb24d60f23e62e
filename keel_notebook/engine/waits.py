"""Waiting that outlives the kernel: timers with their recorded instant, promises that another process resolves.

A timer writes down *when* it is due, and every later attempt waits for that instant, never for a newly passed one
(O24). A promise has an id that follows from its place, and a token that is shown once; the journal keeps only a hash
of it (Z31, Z32). Whoever has the token resolves it from any process, while the kernel is busy, asleep or dead.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import threading
from collections.abc import Generator
from typing import Any

from msgspec.structs import replace

from keel_notebook.core.ids import text_digest
from keel_notebook.core.model import Digest, Entry, FlowId, Kind, Payload, Status, entry_id
from keel_notebook.core.options import duration_s
from keel_notebook.core.ports import Clock, Journal
from keel_notebook.engine import host, plain
from keel_notebook.engine.calls import Calls
from keel_notebook.engine.scope import StepScope
from keel_notebook.errors import (
    CannotStoreError,
    DamagedError,
    PromiseRefusedError,
    SettingsError,
    UnansweredError,
    UnknownPromiseError,
)

POLL_S = 2.0
"""How often the journal is asked whether a promise was resolved by another process (Z34)."""
TOKEN_BYTES = 32


# ---- timers


def sleep(calls: Calls, duration: str | float) -> None:
    """Wait until the recorded instant."""
    entry = armed(calls, duration)
    while (left := entry.ambient["wake_at"] - calls.parts.clock.now()) > 0:
        calls.parts.sleep(min(left, 1.0))  # short looks: the machine may have slept, or a person set the clock
    fired(calls, entry)


async def asleep(calls: Calls, duration: str | float) -> None:
    """The same without blocking the event loop."""
    entry = armed(calls, duration)
    while (left := entry.ambient["wake_at"] - calls.parts.clock.now()) > 0:
        await asyncio.sleep(min(left, 1.0))
    fired(calls, entry)


def armed(calls: Calls, duration: str | float) -> Entry:
    """The timer at this place: the recorded one, else a new one (Z38, O24)."""
    text = duration if isinstance(duration, str) else f"{duration:g}s"
    try:
        seconds = duration_s(duration) if isinstance(duration, str) else float(duration)
    except ValueError as error:
        raise SettingsError(where="keel.sleep", detail=str(error)) from None
    with calls.parts.lock:
        here, records = calls.records()
        place = here.place("keel.sleep", text)
        found = records.sitting.get((Kind.SLEEP, text, place.occurrence))
        if found is not None:
            return found
        now = calls.parts.clock.now()
        entry = _entry(calls, here, Kind.SLEEP, text, place.occurrence)
        entry = replace(entry, status=Status.RUNNING, call="keel.sleep", ambient={"wake_at": now + seconds})
        calls.keep(entry, here, synced=True)
        return entry


def fired(calls: Calls, entry: Entry) -> None:
    """Note that a timer is over. Firing twice is harmless (Z38)."""
    if entry.status is Status.OK:
        return
    here = calls.records()[0]
    calls.keep(replace(entry, status=Status.OK, ended_at=calls.parts.clock.now()), here)


def _entry(calls: Calls, here: StepScope, kind: Kind, key: str, occurrence: int) -> Entry:
    journal, now = calls.journal, calls.parts.clock.now()
    seq = journal.next_seq()
    return Entry(
        entry=entry_id(journal.run, seq), flow=calls.parts.flow, run=journal.run, seq=seq, step=here.step, kind=kind,
        status=Status.OK, occurrence=occurrence, key=key, attempt=1, code=Digest(here.identity), started_at=now,
    )  # fmt: skip


# ---- promises


class _Waiters:
    """Wakes those who wait in this process at once; other processes are found by polling."""

    condition = threading.Condition()


class Promise:
    """Something that a person or another program decides. ``token`` is there only when the promise is new."""

    def __init__(self, calls: Calls | None, here: StepScope, name: str, promise_id: str, token: str | None) -> None:
        self._live = calls
        self._here = here
        self.name = name
        self.id = promise_id
        self.token = token

    def __repr__(self) -> str:
        return f"<keel.Promise {self.name} {self.id}>"  # never the token (Z30)

    @property
    def _calls(self) -> Calls:
        """What reads the journal; looked for when it is first needed by a promise that came back from a record."""
        if self._live is None:
            found = host.installed()
            self._live = found.calls(needed=True) if found is not None else None
        if self._live is None:
            raise UnknownPromiseError(promise=self.id)  # no journal is open: nobody can tell
        return self._live

    def kept(self) -> tuple[str, str, str, str]:
        """What a record holds of the promise: never the token (Z30)."""
        return self.name, self.id, self._here.step, self._here.identity

    @classmethod
    def restored(cls, kept: tuple[str, str, str, str]) -> Promise:
        """The promise behind what a record holds."""
        name, promise_id, step, identity = kept
        return cls(None, StepScope(step, identity), name, promise_id, None)

    def peek(self) -> tuple[Any] | None:
        """The answer in a tuple of one, or None while there is none. Does not wait (Z35)."""
        parts = self._calls.parts
        with parts.lock:
            found = parts.journal.records(parts.flow)
        answer = next((e for e in reversed(found.entries) if _answers(e, self.id)), None)
        if answer is None:
            return None
        if answer.payload is None or answer.entry in found.untrusted:
            raise DamagedError(
                what=f"the answer to a promise of step {self._here.step}", detail="it is not sealed by you"
            )
        return (plain.opened(parts.journal.read(answer.payload.head)),)

    def result(self, timeout: float | None = None) -> Any:
        """The answer. Waits for it; raises UnansweredError (E016) after ``timeout`` seconds."""
        parts = self._calls.parts
        began = parts.clock.monotonic()
        with _Waiters.condition:
            while (answer := self.peek()) is None:
                left = None if timeout is None else timeout - (parts.clock.monotonic() - began)
                if left is not None and left <= 0:
                    raise UnansweredError(what=f"promise {self.name}", timeout=f"{timeout:g} s")
                _Waiters.condition.wait(POLL_S if left is None else min(left, POLL_S))
        return answer[0]

    def __await__(self) -> Generator[Any, None, Any]:
        return self._awaited().__await__()

    async def _awaited(self) -> Any:
        while (answer := self.peek()) is None:
            await asyncio.sleep(min(POLL_S, 0.25))
        return answer[0]

    def claim_notice(self) -> bool:
        """True once over all restarts: for the one mail that says "please approve". Takes no place (Z36)."""
        with self._calls.parts.lock:
            records = self._calls.records()[1]
            if any(entry.call == "notice" for entry in records.promises.get(self.id, ())):
                return False
            entry = replace(_entry(self._calls, self._here, Kind.PROMISE, self.id, 0), call="notice")
            self._calls.keep(entry, self._here, synced=True)
            return True


def promise(calls: Calls, name: str) -> Promise:
    """The promise at this place: attached to again on resume, never a second one (Z31)."""
    with calls.parts.lock:
        here, records = calls.records()
        place = here.place("keel.promise", name)
        occurrence = str(place.occurrence)
        tail = text_digest("promise", here.step, here.identity, name, occurrence, str(records.generation))[:20]
        promise_id = f"{calls.parts.flow}:{tail}"
        if records.promises.get(promise_id):
            return Promise(calls, here, name, promise_id, None)
        token = calls.parts.entropy(TOKEN_BYTES).hex()
        kept = {"token_hash": token_hash(calls.parts.flow, promise_id, token), "name": name}
        entry = replace(_entry(calls, here, Kind.PROMISE, promise_id, place.occurrence), call="promise", ambient=kept)
        entry = replace(entry, status=Status.RUNNING)
        if not calls.keep(entry, here, synced=True):
            raise UnknownPromiseError(promise=promise_id)  # nobody could ever resolve it
        return Promise(calls, here, name, promise_id, token)


def token_hash(flow: FlowId, promise_id: str, token: str) -> str:
    """What is kept of a token: bound to promise and flow, so that it opens nothing else (Z32)."""
    bound = f"{len(flow)}:{flow}{len(promise_id)}:{promise_id}".encode()
    return hashlib.blake2b(token.encode(), key=hashlib.sha256(bound).digest(), digest_size=32).hexdigest()


def flow_of(promise_id: str) -> FlowId:
    """The flow that a promise belongs to. Raises UnknownPromiseError (E071) for what is no promise id."""
    flow, colon, tail = promise_id.rpartition(":")
    if not colon or not flow or len(tail) != 20:
        raise UnknownPromiseError(promise=promise_id)
    return FlowId(flow)


def resolve(journal: Journal, clock: Clock, *, promise_id: str, token: str, value: Any = None) -> bool:
    """Answer a promise, from any process that can open its journal. All that a token allows (Z37).

    True if this was the answer, False if it had been answered before. Raises UnknownPromiseError (E071),
    PromiseRefusedError (E070), CannotStoreError (E020) where the value is not plain.
    """
    made = _made(journal, promise_id)
    # Z33: the token first, in constant time; only who has it learns whether there is an answer already.
    if not hmac.compare_digest(token_hash(made.flow, promise_id, token), str(made.ambient.get("token_hash", ""))):
        raise PromiseRefusedError(promise=promise_id)
    return _answer(journal, clock, made, value, by="token")


def approve(journal: Journal, clock: Clock, *, promise_id: str, value: Any = None) -> bool:
    """Answer a promise as the owner of the journal, who may have lost the token or never had one to look up.

    Whoever has the owner's key could write any record, so this opens nothing that was closed; the answer says that
    no token was used. Only promises that this key sealed: another person's wait for their token. True if this was
    the answer, False if it had been answered before. Raises as ``resolve`` does.
    """
    made = _made(journal, promise_id)
    if made.entry in journal.records(made.flow).untrusted:
        raise PromiseRefusedError(promise=promise_id)
    return _answer(journal, clock, made, value, by="owner")


def _of(journal: Journal, promise_id: str) -> list[Entry]:
    found = journal.records(flow_of(promise_id)).entries
    return [entry for entry in found if entry.kind is Kind.PROMISE and entry.key == promise_id]


def _made(journal: Journal, promise_id: str) -> Entry:
    made = next((entry for entry in _of(journal, promise_id) if entry.call == "promise"), None)
    if made is None:
        raise UnknownPromiseError(promise=promise_id)
    return made


def _answer(journal: Journal, clock: Clock, made: Entry, value: Any, *, by: str) -> bool:
    if any(_answers(entry, made.key) for entry in _of(journal, made.key)):
        return False
    raw = plain.envelope(value)
    if raw is None:
        kind = type(value).__qualname__
        reason = "plain values only"
        raise CannotStoreError(name="the answer", type=kind, step=made.step, reason=reason, case="answer")
    now, seq = clock.now(), journal.next_seq()
    answer = Entry(
        entry=entry_id(journal.run, seq), flow=made.flow, run=journal.run, seq=seq, step=made.step, kind=Kind.PROMISE,
        status=Status.OK, key=made.key, call="answer", payload=Payload(journal.blob(raw), (), (), len(raw)),
        ambient={"by": by}, started_at=now, ended_at=now,
    )  # fmt: skip
    journal.append(answer, synced=True)
    look_again()
    return True


def look_again() -> None:
    """Wake who waits here: an answer was written, by this process or by another one."""
    with _Waiters.condition:
        _Waiters.condition.notify_all()


def _answers(entry: Entry, promise_id: str) -> bool:
    return entry.kind is Kind.PROMISE and entry.key == promise_id and entry.call == "answer"
