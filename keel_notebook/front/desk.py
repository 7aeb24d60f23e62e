"""Answers what a front end asks, beside running user code (FRONTEND.md, Comm target).

A question may arrive on a thread of its own while a cell runs (JupyterLab sends comm messages over subshells). So
reading is done with a journal reader of the desk's own and never with the kernel's journal, names of the notebook are
never looked at. What is set or done is in ``deeds``; what must happen on the main thread, the caller sees to.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from keel_notebook import __version__
from keel_notebook.core.done import StepDone
from keel_notebook.core.ids import default_flow, named_flow
from keel_notebook.core.labels import labels
from keel_notebook.core.lanes import Lanes, lanes_in
from keel_notebook.core.model import Entry, EntryId, FlowId
from keel_notebook.core.ports import FlowRecords
from keel_notebook.core.report import status
from keel_notebook.core.states import edited_steps
from keel_notebook.core.why import why
from keel_notebook.engine.lease import Holder, Lease, LeaseSeen
from keel_notebook.errors import KeelError, NotNowError, SettingsError
from keel_notebook.front import lineage
from keel_notebook.front.deeds import CAN, Answer, Ask, Deeds, JournalSeen, on_main
from keel_notebook.front.tables import local_time
from keel_notebook.journal import liveness
from keel_notebook.journal.flows import known_flows
from keel_notebook.journal.reader import JournalReader, read_journal
from keel_notebook.payload.seal import KEY_BYTES, OwnerSeal
from keel_notebook.session import Session
from keel_notebook.wiring import journal_folder, notebook_path

MOST_TEXT = 20_000
"""Characters of one recorded output that are shown."""
MOST_PICTURE = 200_000
"""Base64 characters of one recorded picture that are shown."""


class Desk:
    """One front end's questions to one session. Safe to use from any thread, except where ``on_main`` says so."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._reader: tuple[Path, JournalReader] | None = None
        self._cells: dict[str, str] = {}
        """Step name to source, in the order of the notebook, as the front end last told."""
        self._questions: dict[str, Callable[[Ask], Answer]] = {
            "hello": self._hello,
            "status": self._status,
            "cells": self._told_cells,
            "why": self._why,
            "timeline": self._timeline,
            "storage": self._storage,
            "waiting": self._waiting,
        } | Deeds(session, JournalSeen(self._folder, self._existing, self._flow)).questions

    def answer(self, ask: Ask) -> Answer:
        """The answer to one question: ``{"ok": true, "answer": …}`` or ``{"ok": false, "error": {code, text}}``.

        Never raises: an exception here would be lost in a message handler.
        """
        question = self._questions.get(str(ask.get("ask", "")))
        try:
            if question is None:
                raise SettingsError(where="a front end's question", detail="this version does not know it")
            with self._lock:
                return {"ok": True, "answer": question(ask)}
        except KeelError as error:
            return {"ok": False, "error": {"code": error.code, "text": str(error)}}
        except Exception as error:  # noqa: BLE001 said to the front end, which shows it
            return {"ok": False, "error": {"code": "E040", "text": f"keel failed: {type(error).__name__}"}}

    def on_main(self, ask: Ask) -> bool:
        """Whether this question must be answered on the main thread, between cells."""
        return on_main(ask, opened=self._session._leader is not None)

    def close(self) -> None:
        """Let go of the journal's files."""
        with self._lock:
            if self._reader is not None:
                self._reader[1].close()
                self._reader = None

    # ---- what is read

    def _hello(self, ask: Ask) -> Answer:
        flow = self._told_cells(ask) if "cells" in ask else self._flow(ask)
        return {"version": __version__, "can": list(CAN), "flow": flow}

    def _status(self, ask: Ask) -> Answer:
        return self._flow(ask)

    def _told_cells(self, ask: Ask) -> Answer:
        told = ask["cells"]
        self._cells = {str(cell["name"]): str(cell["source"]) for cell in told}
        return self._flow(ask)

    def _flow(self, _: Ask) -> Answer:
        session = self._session
        notebook = notebook_path(session.shell, session.cwd)
        records = self._records()
        now = session.clock.now()
        if records is None:
            return lineage.empty_view(now=now, notebook=str(notebook or "")) | {"auto": session.auto_s}
        own = self._own_run()
        lanes, done = lanes_in(records.entries), self._done()
        records = _in_lane(records, lanes)
        report = status(
            records,
            done=done,
            now=now,
            live=own is not None,
            notebook=str(notebook or ""),
            order=[*self._cells] or self._order(),
            run=own,
            unsynced=self._saving(),
            edited=edited_steps(records, self._cells),
            restored=self._restored(),
        )
        view = lineage.flow_view(report, records, own_run=own, memory_limit=memory_limit())
        held = lineage.held_view(self._held(records.flow), done)
        leader = session._leader
        called = labels(records.entries, leader.attached.file.cells() if leader else ())
        more = {
            "auto": self._auto_s(notebook),
            "labels": called,
            "lanes": lineage.lanes_view(lanes, records.entries),
            "held": held,
        }
        return view | more

    def _why(self, ask: Ask) -> Answer:
        name = str(ask.get("step", ""))
        records = self._existing()
        records = _in_lane(records, lanes_in(records.entries))
        done = self._done()
        report = why(name, records, done, run=self._own_run(), when=local_time)
        wanted = {report.record, getattr(lineage.newest_attempt(records, name), "entry", None)}
        outputs = {e.entry: self._outputs(e, records) for e in records.entries if e.entry in wanted}
        return lineage.details_view(report, records, done, cell=self._cells.get(name), outputs=outputs)

    def _timeline(self, ask: Ask) -> Answer:
        most = max(1, int(ask.get("most", 200)))
        return lineage.timeline_view(self._existing(), most=most, now=self._session.clock.now())

    def _waiting(self, _: Ask) -> Answer:
        records = self._existing()
        told = {"waits": lineage.waiting_view(records), "answered": lineage.answers_view(records)}
        return told | {"now": self._session.clock.now()}

    def _storage(self, _: Ask) -> Answer:
        records = self._existing()
        assert self._reader is not None
        folder, reader = self._reader
        sizes = reader.sizes()
        told = {"objects": sizes.objects, "segments": sizes.segments, "duckdb": sizes.duckdb}
        return {"folder": str(folder), "steps": lineage.storage_view(records)} | told

    def _outputs(self, entry: Entry, records: FlowRecords) -> Sequence[Answer]:
        if entry.outputs is None or entry.entry in records.untrusted:
            return ()  # what a stranger recorded is not rendered (DESIGN 8)
        from keel_notebook.capture.outputs import unpack_messages  # noqa: PLC0415 only when somebody looks
        from keel_notebook.front.show import outputs_of  # noqa: PLC0415 only when somebody looks

        assert self._reader is not None
        messages = unpack_messages(self._reader[1].read(entry.outputs))
        shown: list[Answer] = []
        for message in messages:
            for output in outputs_of([message]):
                one: Answer = {"kind": output.kind, "text": output.text[:MOST_TEXT]}
                if len(output.text) > MOST_TEXT:
                    one["cut"] = len(output.text) - MOST_TEXT
                picture = message.content.get("data", {}).get("image/png")
                if isinstance(picture, str) and len(picture) <= MOST_PICTURE:
                    one["png"] = picture.replace("\n", "")
                shown.append(one)
        return shown

    # ---- the journal

    def _folder(self) -> Path:
        """Where the journal is. Raises NotNowError (E006) where there is none yet."""
        if self._records() is None or self._reader is None:
            raise NotNowError(where="the journal", detail="nothing is recorded here yet")
        return self._reader[0]

    def _existing(self) -> FlowRecords:
        records = self._records()
        return FlowRecords(default_flow(), (), {}) if records is None else records

    def _records(self) -> FlowRecords | None:
        """What is recorded of this notebook; None where there is no journal yet. Never makes one."""
        session = self._session
        attached = session._leader.attached if session._leader else None
        notebook = notebook_path(session.shell, session.cwd)
        folder = attached.folder if attached else journal_folder(session.settings.journal, notebook, session.cwd)
        if not (folder / "inbox").is_dir():
            return None
        if self._reader is None or self._reader[0] != folder:
            if self._reader is not None:
                self._reader[1].close()
            self._reader = (folder, read_journal(folder, seal=_seal(session.settings.key_file)))
        flow = attached.flow.id if attached else _flow_of(folder, notebook, session.settings)
        return self._reader[1].records(flow)

    def _auto_s(self, notebook: Path | None) -> float | None:
        """Auto mode of this kernel; of its flow, as it is remembered, where no cell has asked yet."""
        session = self._session
        if session._leader is not None or self._reader is None:
            return session.auto_s
        flow = _flow_of(self._reader[0], notebook, session.settings)
        return next((seen.auto_s for seen in known_flows(self._reader[0]) if seen.id == flow), None)

    # The session's leader is peeked at, never made: opening the journal belongs to the main thread.

    def _own_run(self) -> int | None:
        leader = self._session._leader
        return leader.attached.journal.run or None if leader else None

    def _done(self) -> dict[str, StepDone]:
        leader = self._session._leader
        return dict(leader.ledger.done) if leader else {}

    def _restored(self) -> dict[str, EntryId]:
        leader = self._session._leader
        return dict(leader.ledger.restored) if leader else {}

    def _saving(self) -> frozenset[EntryId]:
        leader = self._session._leader
        return leader.attached.journal.saving if leader else frozenset()

    def _held(self, flow: FlowId) -> LeaseSeen | None:
        """Who else holds the flow's lease. A file that cannot be read tells of nobody: nothing is decided here."""
        assert self._reader is not None
        mine = Holder(liveness.host(), os.getpid(), liveness.boot())
        lease = Lease(self._reader[0] / "leases", flow, holder=mine, clock=self._session.clock)
        try:
            return lease.elsewhere()
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _order(self) -> list[str]:
        leader = self._session._leader
        return list(leader.ledger.order) if leader else []


def _in_lane(records: FlowRecords, lanes: Lanes) -> FlowRecords:
    """The records, those of the lane in use as the newest ones."""
    return replace(records, entries=lanes.ordered(records.entries))


def _flow_of(folder: Path, notebook: Path | None, settings: Any) -> FlowId:
    """The flow that this kernel will attach to, found without making one."""
    if settings.flow:
        return named_flow(settings.flow, settings.flow_key)
    if notebook is not None:
        own = str(notebook.parent.resolve() / notebook.name)
        for seen in known_flows(folder):
            if seen.notebook == own and not seen.name and seen.key == settings.flow_key:
                return seen.id
    return default_flow()


def _seal(key_file: str) -> OwnerSeal:
    """The owner's seal, without making a key: looking needs none, and then nothing counts as the owner's."""
    from keel_notebook.front.cli_open import key_file as usual  # noqa: PLC0415 one place knows where keys are

    try:
        where = Path(key_file).expanduser() if key_file else usual()
        return OwnerSeal(bytes.fromhex(where.read_text("ascii").strip()))
    except (OSError, ValueError):
        return OwnerSeal(secrets.token_bytes(KEY_BYTES))


def memory_limit() -> int:
    """Bytes that processes may use here: the machine's, or less where a control group says so. 0 if unknown."""
    import psutil  # noqa: PLC0415 asked for once per question, not at load

    limit = int(psutil.virtual_memory().total)
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limit = min(limit, int(Path(file).read_text("ascii")))
        except (OSError, ValueError):
            continue
    return limit


__all__ = ["Desk", "memory_limit"]
