"""What a front end may have done: flags that are set, entries that are written, names that come back (FRONTEND.md).

Each deed answers with a sentence for people. ``on_main`` says which of them the main thread must do, between two cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.core.auto import MIN_SECONDS
from keel_notebook.core.lifecycle import FORGET, REVIVE, newest_ok
from keel_notebook.core.model import EntryId
from keel_notebook.core.ports import FlowRecords
from keel_notebook.core.retention import Plan, Wishes
from keel_notebook.core.units import count, size
from keel_notebook.core.why import why
from keel_notebook.engine.shared import SharedJournal
from keel_notebook.engine.waits import look_again
from keel_notebook.errors import NotNowError, UnknownPromiseError
from keel_notebook.front import lineage, wishes
from keel_notebook.front.approving import approve
from keel_notebook.journal import collect
from keel_notebook.journal.disk import DiskJournal
from keel_notebook.session import Session

CAN = ("replay", "rerun", "accept", "forget", "revive", "trust", "auto", "approve", "branch", "recover", "gc")
"""What a front end may offer. ``replay`` runs a cell: nothing is asked of the kernel for it."""
_ON_MAIN = frozenset({"recover", "forget", "revive", "trust", "auto", "branch", "use", "gc"})
"""These write or touch the notebook's names."""
_FLAGS = frozenset({"rerun", "accept"})
"""These set a flag; only where no journal is open yet they open it, which is the main thread's as well."""

Ask = Mapping[str, Any]
Answer = dict[str, Any]


def on_main(ask: Ask, *, opened: bool) -> bool:
    """Whether the main thread must answer, between two cells. ``opened``: the kernel's journal is open."""
    word = ask.get("ask")
    return word in _ON_MAIN or (word in _FLAGS and not opened)


class JournalSeen(Struct, frozen=True):
    """The journal as the desk reads it."""

    folder: Callable[[], Path]
    """Raises NotNowError (E006) where there is none yet."""
    records: Callable[[], FlowRecords]
    flow: Callable[[Ask], Answer]
    """The whole flow, as the view reads it."""


class Deeds:
    """What can be done with one session. Raises KeelError where it cannot."""

    def __init__(self, session: Session, seen: JournalSeen) -> None:
        self._session = session
        self._seen = seen
        self.questions: dict[str, Callable[[Ask], Answer]] = {
            "rerun": self._rerun,
            "accept": self._accept,
            "forget": lambda ask: self._retire(ask, FORGET, wishes.forget),
            "revive": lambda ask: self._retire(ask, REVIVE, wishes.revive),
            "recover": self._recover,
            "auto": self._auto,
            "trust": self._trust,
            "approve": self._approve,
            "branch": self._branch,
            "use": self._use,
            "room": self._room,
            "gc": self._collect,
        }

    # ---- steps

    def _rerun(self, ask: Ask) -> Answer:
        name = self._known(ask)
        self._session.ledger.rerun.add(name)
        self._session.ledger.accept.discard(name)
        return {"said": wishes.rerun(name, self._seen.records())}

    def _accept(self, ask: Ask) -> Answer:
        name = self._known(ask)
        if nothing := wishes.accepts(name, self._seen.records()):
            return {"said": nothing}
        self._session.ledger.accept.add(name)
        self._session.ledger.rerun.discard(name)
        return {"said": wishes.accept(name)}

    def _retire(self, ask: Ask, key: str, said: Callable[[str, FlowRecords], str]) -> Answer:
        name = self._known(ask)
        said_now = said(name, self._seen.records())
        self._session.retire(name, key)
        return {"said": said_now}

    def _branch(self, ask: Ask) -> Answer:
        name = self._known(ask)
        attached = self._session.attached()
        records, keeper = attached.journal.records(attached.flow.id), attached.stepper.lanes
        entry = newest_ok(keeper.seen(records), name)
        if entry is None:
            raise NotNowError(where=name, detail="it has no record yet, so that there is nothing to branch from")
        left = keeper.lanes(records).lanes[keeper.current].title
        lane = keeper.leave(name, "a person branched here", entry, records)
        return {"said": f"{lane} is in use: what executes is recorded in it, and the records of {left} stay"}

    def _use(self, ask: Ask) -> Answer:
        attached = self._session.attached()
        records = attached.journal.records(attached.flow.id)
        lane = attached.stepper.lanes.use(str(ask.get("lane", "")), records)
        return {"said": f"{lane.title} is in use: its records are the newest ones"}

    def _known(self, ask: Ask) -> str:
        name = str(ask.get("step", ""))
        leader = self._session._leader
        why(name, self._seen.records(), dict(leader.ledger.done) if leader else {})  # raises where none has this name
        return name

    # ---- promises

    def _approve(self, ask: Ask) -> Answer:
        """Answer an open promise as the journal's owner. In a process of its own: the kernel's may be in the midst."""
        promise = str(ask.get("promise", ""))
        wait = next((one for one in lineage.waiting_view(self._seen.records()) if one["id"] == promise), None)
        if not promise or wait is None:
            raise UnknownPromiseError(promise=promise)
        first = approve(self._seen.folder(), promise, ask.get("value"), key_file=self._session.settings.key_file)
        look_again()
        name = wait["name"]
        return {"said": f"{name} is answered" if first else f"{name} was answered before; that answer stays"}

    # ---- the whole notebook

    def _auto(self, _: Ask) -> Answer:
        """Auto mode on where it is off, and the other way round."""
        session = self._session
        session.set_auto(MIN_SECONDS if session.auto_s is None else None)
        return {"auto": session.auto_s}

    def _recover(self, ask: Ask) -> Answer:
        began = self._session.clock.monotonic()
        report = self._session.restore(tuple(str(name) for name in ask.get("names", ())))
        took = self._session.clock.monotonic() - began
        missing = [{"name": lost.name, "type": "", "reason": lost.reason} for lost in report.missing]
        return {
            "restored": list(report.restored),
            "missing": missing,
            "took_s": took,
            "flow": self._seen.flow(ask),
        }

    def _trust(self, _: Ask) -> Answer:
        sealed = self._session.trust()
        return {"said": f"{count(sealed, 'record')} trusted: from now on they are replayed"}

    # ---- room

    def _room(self, ask: Ask) -> Answer:
        """What ``gc`` would let go now; nothing is touched."""
        own = self._journal()
        wishes = replace(self._wishes(ask), claimed=own.claims if own else frozenset())
        return _room_view(collect.planned(self._seen.folder(), wishes, clock=self._session.clock))

    def _collect(self, ask: Ask) -> Answer:
        """Let go what no record needs; never what this kernel has put back or what the newest run needs."""
        clock = self._session.clock
        went = collect.collect(self._seen.folder(), self._wishes(ask), clock=clock, own=self._journal())
        said = f"{size(went.bytes)} went; {size(went.left)} are kept" if went.objects else "there was nothing to let go"
        return _room_view(went) | {"said": said}

    def _wishes(self, ask: Ask) -> Wishes:
        leader = self._session._leader
        if leader is None:
            return Wishes(keep_s=float(ask["keep_s"]))
        ledger = leader.ledger
        kept: set[EntryId] = {one.entry for one in ledger.done.values() if one.entry is not None}
        kept |= {known.entry for _, known in ledger.stored.values()} | {*ledger.restored.values()}
        return Wishes(keep_s=float(ask["keep_s"]), keep=frozenset(kept))

    def _journal(self) -> SharedJournal | None:
        leader = self._session._leader
        journal = leader.attached.journal if leader else None
        # One that compares and records nothing leaves the folder alone: it hinders nobody, and has nothing there.
        return journal if isinstance(journal, SharedJournal) and isinstance(journal.inner, DiskJournal) else None


def _room_view(plan: Plan) -> Answer:
    goes: Answer = {"bytes": plan.bytes, "left": plan.left, "records": len(plan.entries)}
    return goes | {"orphans": plan.orphans, "objects": len(plan.objects)}
