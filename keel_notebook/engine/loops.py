"""``keel.loop``: a loop that goes on after its last finished turn, with the state that it had then (DESIGN 3.2, C75).

After every turn the named variables are packed as one graph, so that an optimizer still points into its model, and
one entry is written. A loop resumes only within one sitting of its step: same code, same inputs, and the attempt
before did not end. Then the recorded state is put into the notebook before the first turn that is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from keel_notebook.core.calls import Place
from keel_notebook.core.model import Digest, Entry, Input, Kind, Status, entry_id
from keel_notebook.core.ports import Known
from keel_notebook.engine.calls import Calls
from keel_notebook.engine.scope import StepScope
from keel_notebook.errors import CannotStoreError, DamagedError, KeelError, SettingsError

T = TypeVar("T")


def loop(calls: Calls, items: Iterable[T], state: Sequence[str], key: str) -> Iterator[T]:
    """The turns that are left.

    Raises SettingsError (E001) where a named variable is not there at the end of a turn, CannotStoreError (E020)
    where it cannot be stored: a loop that could not go on must say so at its first turn.
    """
    if isinstance(state, str):
        raise SettingsError(where="keel.loop", detail='state is a list of names: state=["model", "opt"]')
    with calls.parts.lock:
        here, records = calls.records()
        place = here.place("keel.loop", key)
        found = records.sitting.get((Kind.LOOP, key, place.occurrence))
    finished = 0
    if found is not None and found.code == here.identity and found.status is Status.OK:
        finished = _put_back(calls, found)
    ambient = calls.parts.ambient
    before = ambient.before() if ambient is not None else None
    for turn, item in enumerate(items):
        if turn < finished:
            continue
        began = calls.parts.clock.monotonic()
        yield item
        entry = _turn(calls, here, place, turn, state)
        entry = replace(entry, took_s=calls.parts.clock.monotonic() - began)
        if ambient is not None:
            entry = replace(entry, ambient=dict(entry.ambient) | {"state": ambient.after(before)})
        calls.keep(entry, here)


def _turn(calls: Calls, here: StepScope, place: Place, turn: int, state: Sequence[str]) -> Entry:
    namespace, journal = calls.parts.namespace, calls.journal
    gone = [name for name in state if name not in namespace]
    if gone:
        raise SettingsError(where="keel.loop", detail=f"state names {gone[0]}, which is no variable of the notebook")
    with calls.parts.lock:
        packed = calls.parts.codec.pack({name: namespace[name] for name in state}, result=None, known={})
        if packed.not_stored:
            first = packed.not_stored[0]
            raise CannotStoreError(name=first.name, type=first.type, step=here.step, reason=first.reason, case="loop")
        now, seq = calls.parts.clock.now(), journal.next_seq()
        return Entry(
            entry=entry_id(journal.run, seq), flow=calls.parts.flow, run=journal.run, seq=seq, step=here.step,
            kind=Kind.LOOP, status=Status.OK, occurrence=place.occurrence, call=place.call, key=place.key, attempt=1,
            code=Digest(here.identity), inputs=tuple(Input(name, None) for name in state), ambient={"turn": turn},
            writes=packed.writes, payload=packed.payload, started_at=now, ended_at=now,
        )  # fmt: skip


def _put_back(calls: Calls, entry: Entry) -> int:
    """Put the state after the last finished turn into the notebook; how many turns are finished."""
    parts = calls.parts
    assert entry.payload is not None
    try:
        found = parts.codec.unpack(entry.payload, resolve=_nothing_known)
    except KeelError as error:
        parts.say(f"the loop starts again from its first turn: its record cannot be read ({error})")
        return 0
    parts.namespace.update(found.names)
    found.wake()
    if parts.ambient is not None and "state" in entry.ambient:
        parts.ambient.apply(entry.ambient["state"])
    turn = int(entry.ambient["turn"])
    parts.say(f"{entry.step or 'this loop'} goes on with turn {turn + 2}: {turn + 1} were recorded")
    return turn + 1


def _nothing_known(known: Known) -> Any:
    raise DamagedError(what=f"the state of a loop ({known.entry})", detail="it refers to a value elsewhere")
