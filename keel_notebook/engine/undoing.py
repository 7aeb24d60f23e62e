"""``keel.undo``, `%%keel_undo` and `%keel undo`: what steps did to the world, taken back in reverse (O26-O28).

The write order: ``compensating`` with the steps concerned, synced, before the first undo (O27); each undo is a
journaled step of its own, ``undo:NAME``, running before and ok after; then its step is retired, so that it executes
when it is wanted again. A kernel that dies in between is followed by one that replays the steps that are still to be
undone, executes nothing (O28), and goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from keel_notebook.core import undo as u
from keel_notebook.core.decide import Mode
from keel_notebook.core.done import EXECUTED
from keel_notebook.core.flowstate import STATUS, FlowStatus
from keel_notebook.core.lifecycle import NEW_KEY, UNDONE
from keel_notebook.core.model import Entry, Kind, Problem, Status, entry_id
from keel_notebook.core.ports import FlowRecords, Known
from keel_notebook.core.why import near
from keel_notebook.engine import scope
from keel_notebook.engine.calls import Calls
from keel_notebook.engine.ledger import Ledger
from keel_notebook.errors import (
    CannotStoreError,
    DamagedError,
    JournalUnreachableError,
    KeelError,
    NotNowError,
    UndoFailedError,
)

CELL = "%%keel_undo"
"""The ``call`` of a registration that a cell made; its text is in the notebook."""


def register(calls: Calls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Register an undo of the step that is running (``keel.undo``).

    Raises NotNowError (E006) outside a step, CannotStoreError (E020) where the call cannot be journaled: an undo
    that could not be found again after a death must say so now. Raises what the journal raises.
    """
    with calls.parts.lock:
        here = calls.scope()
        if here.unrecorded:
            detail = "nothing of this step is recorded, so that its undo could never be found again"
            raise calls.journal.problem or JournalUnreachableError(
                journal="of this notebook", detail=detail, case="heads"
            )
        if here.implicit or not here.attempt:
            raise NotNowError(where="keel.undo", detail="it belongs to a step, and is called inside it", case="outside")
        name = getattr(function, "__name__", type(function).__name__)
        place = here.place("keel.undo", name)
        packed = calls.parts.codec.pack({"undo": (function, args, dict(kwargs))}, result=None, known={})
        if packed.not_stored:
            lost = packed.not_stored[0]
            raise CannotStoreError(
                name=f"the undo {name}", type=lost.type, step=here.step, reason=lost.reason, case="undo"
            )
        entry = _entry(calls, here.step, here.attempt, name)
        entry = replace(entry, occurrence=place.occurrence, payload=packed.payload, writes=packed.writes)
        calls.journal.append(entry, synced=True)


def _entry(calls: Calls, step: str, attempt: str, name: str) -> Entry:
    journal, now = calls.journal, calls.parts.clock.now()
    seq = journal.next_seq()
    return Entry(
        entry=entry_id(journal.run, seq), flow=calls.parts.flow, run=journal.run, seq=seq, step=step, kind=Kind.UNDO,
        status=Status.OK, call=name, key=u.REGISTERED, ambient={"of": attempt}, started_at=now, ended_at=now,
    )  # fmt: skip


class Undos:
    """What one kernel knows of undos: the texts of its undo cells, and which steps it ran or put back."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._texts: dict[str, str] = {}
        self._going: bool | None = None

    def going(self, records: FlowRecords) -> bool:
        """Whether steps of this flow are being undone. Looked for once, then kept up by ``undo``."""
        if self._going is None:
            self._going = u.undoing(reversed(records.entries)) is not None
        return self._going

    def cell(self, calls: Calls, step: str, source: str, kept: str) -> None:
        """Register a cell's text as the undo of a step that was done here; ``kept`` is what the journal keeps of it.

        Raises NotNowError (E006), and what the journal raises.
        """
        [done] = [one for one in self._done(calls) if one.step == step] or [self._unknown(step, ())]
        self._texts[step] = source
        with calls.parts.lock:
            calls.journal.append(replace(_entry(calls, done.step, done.attempt, CELL), source=kept), synced=True)

    def undo(
        self,
        calls: Calls,
        steps: Sequence[str],
        run_cell: Callable[[str], BaseException | None],
        *,
        by_hand: Sequence[str] = (),
    ) -> tuple[str, ...]:
        """Undo the named steps, or all that were done here, last done first; the undos that ran.

        ``by_hand``: steps of an undoing that was begun, which a person took back: their undos do not run any more.
        Raises UndoFailedError (E062), LeaseError (E030), NotNowError (E006).
        """
        if calls.parts.mode is Mode.VERIFY:  # nothing of it would be recorded, so that it would be done once more
            detail = "nothing is taken back in verify mode: ask in a live kernel"
            raise NotNowError(where="%keel undo", detail=detail)
        done = self._done(calls)
        for step in steps:
            if all(one.step != step for one in done):
                self._unknown(step, [one.step for one in done])
        self._going = None
        last = next((self._ledger.done[step] for step in reversed(self._ledger.order)), None)
        failed = last is not None and last.decision == EXECUTED and last.entry is None
        wanted = [one for one in done if not steps or one.step in steps]
        undoer = Undoer(calls, run_cell=run_cell, texts=self._texts)
        return undoer.undo(wanted, code="failed" if failed else "asked", by_hand=by_hand)

    def _done(self, calls: Calls) -> list[u.Done]:
        """The steps that ran or came back here, in the order in which they were done, each with its attempt.

        A replay is no doing: a step that came back below others was done when its attempt was.
        """
        entries = calls.journal.records(calls.parts.flow).entries
        newest = {e.step: e for e in entries if e.kind is Kind.STEP and e.run == calls.run}
        found = []
        for step in self._ledger.order:
            attempt = self._ledger.done[step].entry or (newest[step].entry if step in newest else None)
            if attempt is not None:
                found.append(u.Done(step, attempt))
        return u.in_order(found)

    @staticmethod
    def _unknown(step: str, here: Iterable[str]) -> u.Done:
        detail = "no step of that name ran or came back here yet" + near(step, here)
        raise NotNowError(where=f"the undo of {step}", detail=detail, case="undo_order")


class Undoer:
    """Undoes steps of one kernel's flow."""

    def __init__(
        self, calls: Calls, *, run_cell: Callable[[str], BaseException | None], texts: Mapping[str, str]
    ) -> None:
        """``run_cell`` runs a text in the notebook and gives its error; ``texts`` are the undo cells by step."""
        self._calls = calls
        self._run_cell = run_cell
        self._texts = texts

    def undo(self, done: Sequence[u.Done], *, code: str, by_hand: Sequence[str] = ()) -> tuple[str, ...]:
        """Undo these steps (in the order in which they were done), or go on with an undoing that was begun.

        The undos of steps that were taken back ``by_hand`` do not run, and their steps need not be back.

        Raises NotNowError (E006) where a step that is still to be undone is not back in this kernel, LeaseError (E030),
        UndoFailedError (E062) where an undo fails: what is left is undone by asking again.
        """
        parts = self._calls.parts
        if parts.guard is None:
            raise NotNowError(
                where="%keel undo", detail="it needs a notebook that is known: `%keel flow NAME` first", case="unnamed"
            )
        parts.guard.take()
        try:
            return self._undo(done, code, by_hand)
        finally:
            parts.guard.give_back()

    def _undo(self, done: Sequence[u.Done], code: str, by_hand: Sequence[str]) -> tuple[str, ...]:
        entries = self._calls.journal.records(self._calls.parts.flow).entries
        going = u.undoing(reversed(entries))
        for step in by_hand:
            if going is None or all(one.step != step for one in going.steps):
                detail = f"no undo of {step} is waiting: only what an undoing left in the middle is taken as done"
                detail += near(step, [one.step for one in going.steps] if going is not None else ())
                raise NotNowError(where="%keel undo --skip", detail=detail, case="undo_skip")
        if going is None:
            going = u.Undoing(tuple(one for one in done if u.registered(entries, one)), code)
            if not going.steps:
                return ()
            self._mark(FlowStatus.COMPENSATING, going.steps, going.code)  # O27: before the first
        left = [(one, u.registered(entries, one)) for one in reversed(going.steps)]
        gone = [one.step for one, undos in left if undos and one not in done and one.step not in by_hand]
        if gone:
            raise NotNowError(
                where="%keel undo",
                detail=f"run the cells up to {gone[-1]} first: it is not back yet",
                case="undo_order",
            )
        ran: list[str] = []
        for one, undos in left:
            for registration in undos:
                if one.step in by_hand:
                    self._take_as_done(one, registration)
                    continue
                self._one(one, registration)
                ran.append(f"{one.step} ({registration.call})")
            self._retire(entries, one)
        self._mark(FlowStatus.FAILED, going.steps, going.code)
        return tuple(ran)

    def _own_entry(self, done: u.Done, registration: Entry) -> Entry:
        entry = _entry(self._calls, u.PREFIX + done.step, done.attempt, registration.call)
        return replace(entry, key=registration.entry, occurrence=registration.occurrence)

    def _take_as_done(self, done: u.Done, registration: Entry) -> None:
        skipped = replace(self._own_entry(done, registration), status=Status.SKIPPED, why=u.BY_HAND)
        self._calls.journal.append(skipped, synced=True)

    def _one(self, done: u.Done, registration: Entry) -> None:
        journal, clock = self._calls.journal, self._calls.parts.clock
        began = clock.monotonic()
        running = replace(self._own_entry(done, registration), status=Status.RUNNING, ended_at=None)
        journal.append(running, synced=True)
        error = self._carry_out(done, registration)
        ended = replace(running, ended_at=clock.now(), took_s=clock.monotonic() - began)
        if error is None:
            journal.append(replace(ended, status=Status.OK), synced=True)
            return
        code = error.code if isinstance(error, KeelError) else type(error).__name__
        journal.append(replace(ended, status=Status.FAILED, error=Problem(type(error).__qualname__, code)), synced=True)
        raise UndoFailedError(step=done.step, error=f"its undo failed (compensate:{code})", case="failed") from error

    def _carry_out(self, done: u.Done, registration: Entry) -> BaseException | None:
        # One idempotency key for the undo, however often a death makes it start again.
        token = scope.enter(scope.StepScope(u.PREFIX + done.step, u.identity(done, registration)))
        try:
            if registration.call == CELL:
                return self._run_cell(self._texts[done.step])
            assert registration.payload is not None
            names = self._calls.parts.codec.unpack(registration.payload, resolve=_unknown).names
            function, args, kwargs = names["undo"]
            function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 the person's own, told with the undo that it came from
            return error
        finally:
            scope.leave(token)
        return None

    def _retire(self, entries: Sequence[Entry], done: u.Done) -> None:
        retired = (e for e in entries if e.kind is Kind.RETIRE and e.step == done.step and e.key == NEW_KEY)
        if not any(e.ambient.get("of") == done.attempt for e in retired):
            entry = replace(_entry(self._calls, done.step, done.attempt, ""), kind=Kind.RETIRE, key=NEW_KEY)
            self._calls.journal.append(replace(entry, why=UNDONE), synced=True)

    def _mark(self, status: FlowStatus, steps: Sequence[u.Done], code: str) -> None:
        kept = {"status": str(status), "code": code, "undo": [[one.step, one.attempt] for one in steps]}
        marker = replace(_entry(self._calls, "", "", ""), kind=Kind.MARKER, key=STATUS, ambient=kept)
        self._calls.journal.append(marker, synced=True)


def _unknown(known: Known) -> Any:
    raise DamagedError(what=f"an undo ({known.entry})", detail="it refers to a value elsewhere", case="undo")
