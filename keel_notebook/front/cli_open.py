"""Finds the journal that a command line means, and what in it (DESIGN 3.4). Nothing here unpickles.

A command names a notebook, a folder or a journal. The journal is KEEL_JOURNAL where that is set, else ``.keel``
beside the notebook or in the folder. In it, the notebook's own flow is meant; where nobody told keel which notebook
ran, the folder's default flow.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from keel_notebook.core.entries import RECORDS
from keel_notebook.core.ids import default_flow, named_flow
from keel_notebook.core.kernels import newest_run
from keel_notebook.core.lifecycle import known_step, newest_ok, steps_in
from keel_notebook.core.model import Entry, EntryId
from keel_notebook.core.plans import PlannedCell, notebook_cells
from keel_notebook.core.ports import FlowRecords, Message, RunEnd
from keel_notebook.core.report import StatusReport, status
from keel_notebook.core.states import edited_steps
from keel_notebook.core.units import middle, one_line
from keel_notebook.core.why import hint
from keel_notebook.errors import DamagedError, JournalUnreachableError, KeelError, UnknownNameError
from keel_notebook.journal.flows import FlowSeen
from keel_notebook.journal.reader import JournalReader, read_journal
from keel_notebook.payload.seal import KEY_BYTES, OwnerSeal

NO_NOTEBOOK = "; it must be a file that ends with .ipynb"
NO_FILE = "; there is no such file"
LOOK_AGAIN = {
    "why": "Every notebook has records of its own: keel does not guess which one you meant.",
    "next": "Look at the path. `keel status FOLDER` lists the notebooks that are recorded in a folder.",
}
_NO_PARAMETERS = "no parameters"
_NOT_THERE = "it is not there; nothing was recorded here yet"
_ENTRY_ID = re.compile(r"\d+\.\d+")


class Place(Struct, frozen=True):
    """What a person pointed at."""

    journal: Path
    notebook: Path | None
    """None where a folder was named: then every flow in it is meant."""


def place_of(target: str, environ: Mapping[str, str] = os.environ) -> Place:
    """The journal behind a notebook, a folder or a journal's own folder."""
    named = Path(os.path.abspath(Path(target).expanduser()))
    told = environ.get("KEEL_JOURNAL", "")
    if named.is_dir() or not named.suffix:
        if named.name == ".keel" or (named / "inbox").is_dir():
            return Place(named, None)
        return Place(Path(os.path.abspath(Path(told).expanduser())) if told else named / ".keel", None)
    notebook = Path(os.path.realpath(named.parent)) / named.name
    return Place(Path(os.path.abspath(Path(told).expanduser())) if told else notebook.parent / ".keel", notebook)


def key_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the owner's key is kept. Never made here: looking does not need a key."""
    if told := environ.get("KEEL_KEY_FILE", ""):
        return Path(told).expanduser()
    configured = environ.get("XDG_CONFIG_HOME", "")
    home = Path(configured) if os.path.isabs(configured) else Path(environ.get("HOME") or "~").expanduser() / ".config"
    return home / "keel" / "owner.key"


def _seal(key: Path) -> OwnerSeal:
    """The owner's seal. Without a readable key nothing counts as sealed by its owner."""
    try:
        return OwnerSeal(bytes.fromhex(key.read_text("ascii").strip()))
    except (OSError, ValueError):
        return OwnerSeal(secrets.token_bytes(KEY_BYTES))


def existing(journal: Path) -> Path:
    """The journal's folder, if it is there. Raises JournalUnreachableError (E054)."""
    try:
        there = journal.is_dir()
    except OSError as error:
        raise JournalUnreachableError(journal=journal, detail=error.strerror) from None
    if not there:
        raise JournalUnreachableError(journal=journal, detail=_NOT_THERE, case="missing")
    return journal


def open_reader(journal: Path, *, key: Path | None = None) -> JournalReader:
    """A reader of the journal; ``key``: the file with its reader's key, by default the one that the environment names.

    Raises JournalUnreachableError (E054), also where there is no journal.
    """
    return read_journal(existing(journal), seal=_seal(key or key_file()))


class Wanted(Struct, frozen=True):
    """Which flow a person named."""

    flow: str = ""
    """Its name or id; empty: that of the notebook."""
    key: str | None = None
    """Its key, which its parameters make; empty: that without parameters; None: any."""

    def __bool__(self) -> bool:
        return bool(self.flow) or self.key is not None


class OpenFlow(Struct, frozen=True):
    """One flow with its records, and the notebook's cells where its file can be read."""

    seen: FlowSeen
    records: FlowRecords
    cells: tuple[PlannedCell, ...]

    @property
    def title(self) -> str:
        """What people call it."""
        name = self.seen.notebook or self.seen.name or self.seen.id
        return f"{name} [{self.seen.key}]" if self.seen.key else name

    def report(self, now: float) -> StatusReport:
        """Where the flow stands, as the journal tells it."""
        run = self.records.runs.get(newest_run(self.records))
        return status(
            self.records,
            done={},
            now=now,
            live=run is not None and run.end == RunEnd.OPEN,
            notebook=self.title,
            order=[cell.step for cell in self.cells if cell.step],
            edited=edited_steps(self.records, {cell.step: cell.source for cell in self.cells if cell.step}),
        )


def flows_of(reader: JournalReader, place: Place, *, wanted: Wanted | str = "") -> list[OpenFlow]:
    """The flows that are meant, the one that ran last first. Raises UnknownNameError (E002) where there is none."""
    recorded = [flow for flow in reader.flows() if flow.newest is not None]
    wanted = Wanted(wanted) if isinstance(wanted, str) else wanted
    named = _chosen(recorded, place, wanted.flow)
    chosen = [flow for flow in named if wanted.key in (None, flow.key)]
    if named and not chosen:
        keys = {flow.key or _NO_PARAMETERS for flow in named}
        raise UnknownNameError(
            what="parameter set", name=wanted.key or _NO_PARAMETERS, hint=hint(wanted.key or "", keys)
        )
    if not chosen:
        flow = wanted.flow
        what, name = ("flow", flow) if flow else ("notebook", str(place.notebook or place.journal.parent))
        names = [flow.name or flow.notebook or flow.id for flow in recorded]
        raise UnknownNameError(what=what, name=name, hint=hint(name, names), **({} if wanted.flow else LOOK_AGAIN))
    return [OpenFlow(flow, reader.records(flow.id), cells_of(place.notebook or Path(flow.notebook))) for flow in chosen]


def which(flows: Sequence[OpenFlow], found: OpenFlow) -> str:
    """Which of several parameter sets an answer is about, and how to ask for another; empty where there is one only."""
    keys = {flow.seen.key for flow in flows if flow.seen.notebook == found.seen.notebook}
    if len(keys) < 2:
        return ""
    others = ", ".join(sorted(one_line(middle(key or _NO_PARAMETERS, 60)) for key in keys - {found.seen.key}))
    this = one_line(found.seen.key or _NO_PARAMETERS)
    return f"{this}, which ran last; also recorded: {others} (`-p NAME VALUE`, or `--key KEY`)"


def _chosen(flows: Sequence[FlowSeen], place: Place, wanted: str) -> list[FlowSeen]:
    if wanted:
        ids = {wanted, named_flow(wanted, "")}
        return [flow for flow in flows if flow.id in ids or flow.name == wanted]
    if place.notebook is None:
        return list(flows)
    own = [flow for flow in flows if flow.notebook == str(place.notebook)]
    if not own and not place.notebook.exists():
        return []
    return own or [flow for flow in flows if flow.id == default_flow()]


def cells_of(notebook: Path) -> tuple[PlannedCell, ...]:
    """The notebook's cells; none where its file is not there or is not a notebook."""
    try:
        found = json.loads(notebook.read_text("utf-8"))
        return notebook_cells(found)
    except (OSError, ValueError, AttributeError, TypeError):
        return ()


def messages_of(reader: JournalReader, entry: Entry) -> tuple[tuple[Message, ...], str]:
    """What an entry showed; or nothing, and why that cannot be read."""
    from keel_notebook.capture.outputs import unpack_messages  # noqa: PLC0415 - only `keel show` looks at outputs

    if entry.outputs is None:
        return (), ""
    try:
        return unpack_messages(reader.read(entry.outputs)), ""
    except DamagedError as error:
        return (), str(error)


def flow_with(flows: Sequence[OpenFlow], step: str) -> OpenFlow:
    """The newest flow that knows a step. Raises UnknownNameError (E002)."""
    for flow in flows:
        if known_step(flow.records, step):
            return flow
    known = {name for flow in flows for name in steps_in(flow.records)}
    raise UnknownNameError(what="step", name=step, hint=hint(step, known))


def entry_meant(flows: Sequence[OpenFlow], name: str) -> tuple[OpenFlow, Entry]:
    """The entry that a person means by a step's name (its newest record) or by an id like ``7.12``.

    Raises UnknownNameError (E002).
    """
    try:
        flow = flow_with(flows, name)
    except KeelError:
        if _ENTRY_ID.fullmatch(name) is None:
            raise
        return _entry_by_id(flows, EntryId(name))
    record = newest_ok(flow.records, name)
    if record is None:
        record = next(entry for entry in steps_in(flow.records)[name] if entry.kind in RECORDS)
    return flow, record


def _entry_by_id(flows: Sequence[OpenFlow], wanted: EntryId) -> tuple[OpenFlow, Entry]:
    for flow in flows:
        for entry in flow.records.entries:
            if entry.entry == wanted:
                return flow, entry
    raise UnknownNameError(what="entry", name=wanted, hint="; `keel log` lists the entries")
