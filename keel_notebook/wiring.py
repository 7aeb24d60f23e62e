"""Opens a journal and puts the middle layers together on it: the only place that knows every real part."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.calling import calls_of, resumed
from keel_notebook.capture.ambient_inputs import state_without_a_name
from keel_notebook.capture.between import Between
from keel_notebook.capture.definitions import NotebookDefinitions
from keel_notebook.capture.files import Files
from keel_notebook.capture.filewatch import FileWatch
from keel_notebook.capture.names import NameWatch
from keel_notebook.capture.notebookfile import NotebookFile
from keel_notebook.capture.opens import Opens
from keel_notebook.capture.outputs import make_tap, pack_messages, unpack_live, unpack_messages
from keel_notebook.capture.running import now_at_work
from keel_notebook.capture.world import World
from keel_notebook.core.atwork import NOBODY, AtWork
from keel_notebook.core.decide import Mode
from keel_notebook.core.fileholds import ABSENT, same
from keel_notebook.core.ids import journal_id
from keel_notebook.core.model import Digest, FlowId, Input
from keel_notebook.core.ports import Clock, Digested, FlowRecords, Journal
from keel_notebook.core.reads import CellNames
from keel_notebook.core.redact import redacted
from keel_notebook.core.resuming import of_root
from keel_notebook.core.retention import budget_of
from keel_notebook.core.units import count
from keel_notebook.engine.calls import Calls
from keel_notebook.engine.guarded import EffectParts, Guarded
from keel_notebook.engine.lanes import LaneKeeper
from keel_notebook.engine.ledger import Ledger
from keel_notebook.engine.parts import Parts
from keel_notebook.engine.plaincells import PlainCells
from keel_notebook.engine.provenance import Provenance, WhileRunning
from keel_notebook.engine.references import References
from keel_notebook.engine.runner import Runner
from keel_notebook.engine.shared import SharedJournal
from keel_notebook.engine.stepparts import Seen, Senses
from keel_notebook.engine.stepper import Stepper
from keel_notebook.errors import DiskFullError, JournalUnreachableError, KeelError
from keel_notebook.journal.disk import open_journal
from keel_notebook.journal.flows import (
    FlowSeen,
    adopt,
    find_flow,
    known_flows,
    note_auto,
    note_first_step,
    seen_flow,
)
from keel_notebook.journal.overlay import OverlayJournal
from keel_notebook.payload import sizes
from keel_notebook.payload.codec import GraphCodec
from keel_notebook.payload.digest import StructuralDigester
from keel_notebook.payload.outlines import OrOutline
from keel_notebook.payload.preview import preview
from keel_notebook.payload.seal import OwnerSeal, seal_of
from keel_notebook.payload.small import NO_DATA, is_small_data
from keel_notebook.senses import (
    StepFiles,
    VolatileSense,
    changed_by_plain,
    file_senses,
    kind_of,
    origin_senses,
    value_of,
    volatile_sense,
)


class Attached(Struct, frozen=True):
    """A journal that this kernel writes to, and what works on it."""

    folder: Path
    flow: FlowSeen
    notebook: Path | None
    journal: Journal
    runner: Runner
    stepper: Stepper
    calls_on: Callable[[FlowSeen], Calls]
    """What carries out the durable calls of this kernel, on the flow that they belong to."""
    guarded_on: Callable[[Calls], Guarded]
    """What decides about steps that must not happen twice, with the lease of these calls."""
    close: Callable[[], None]
    """Ends the run in the journal and lets go of what watches files. Safe to call twice."""
    file: NotebookFile
    """The notebook's file as it was last saved."""
    reach: Callable[[frozenset[str], CellNames], frozenset[str]]
    """The names, and those that functions and classes among them read; values are not looked into."""
    holds: Callable[[str, Digest | None], bool]
    """Whether a name surely still holds the content of this digest; not looked at, and so False, where it is large."""
    digest: Callable[[Any], Digest | None]
    """The digest of a value; None where it has none."""
    plain: PlainCells
    """What keeps the cells of auto mode that are no steps."""
    went_on: Callable[[FlowRecords, str], frozenset[int]]
    """Runs that this one goes on with; see ``Senses``."""
    volatile: VolatileSense
    """What finds and keeps the volatile names of plain cells."""
    at_work: Callable[[], AtWork]
    """What live threads and tasks may change right now."""
    looks: Callable[[Any], tuple[Mapping[str, str], Seen]]
    """How a cell's inputs look: small ones by content, large ones by type and size; with what was seen."""
    trust: str
    """The id of a journal that is trusted beforehand (KEEL_TRUST)."""
    say: Callable[[str], None]

    def with_auto(self, min_s: float | None) -> Attached:
        """The same, with auto mode remembered as on (seconds) or off (None); said where it cannot be (K42)."""
        try:
            return replace(self, flow=note_auto(self.flow, min_s))
        except (DiskFullError, JournalUnreachableError) as error:
            self.say(f"auto mode is not remembered: {error}")
            return self

    def with_first_step(self, code: Digest | None) -> tuple[Attached, bool]:
        """The same, with its flow settled by the first step that runs in it, and whether it was renamed (C90).

        A notebook whose path is unknown takes over the one flow with equal first-step code whose notebook is
        gone; otherwise the code is noted, for the day on which this one is renamed.
        """
        flow, notebook = self.flow, self.notebook
        if flow.first_code is None and notebook is not None and not flow.name:
            found = adopt(self.folder, notebook=notebook, first_code=code, key=flow.key)
            if found is not None:
                return replace(self, flow=found).trusted(), True
        return replace(self, flow=note_first_step(flow, code)), False

    def trusted(self) -> Attached:
        """The same, with its flow's records sealed if a person or a job said beforehand that they are to be trusted."""
        told = self.trust
        if told and told == journal_id(self.journal.salt) and (sealed := self.journal.trust(self.flow.id)):
            self.say(f"{count(sealed, 'record')} of another key trusted (KEEL_TRUST)")
        return self

    @staticmethod
    def kept_source(source: str) -> str:
        """A cell's text as the journal keeps it: without what looks like a credential (C103)."""
        return redacted(source)


def notebook_path(shell: Any, cwd: Path) -> Path | None:
    """The notebook of this kernel, where somebody tells: a Jupyter server, or VS Code (C92)."""
    told = os.environ.get("JPY_SESSION_NAME") or shell.user_ns.get("__vsc_ipynb_file__")
    if not isinstance(told, str) or not told.endswith(".ipynb"):
        return None
    return (cwd / told).resolve()


def journal_folder(setting: str, notebook: Path | None, cwd: Path) -> Path:
    """Where the journal is: the setting, else ``.keel`` beside the notebook, else in the working directory."""
    if setting:
        return (cwd / Path(setting).expanduser()).resolve()
    beside = notebook.parent if notebook is not None and notebook.parent.is_dir() else cwd
    return beside / ".keel"


class Kernel(Struct, frozen=True):
    """What a session brings along from the start of its kernel."""

    shell: Any
    cwd: Path
    clock: Clock
    ledger: Ledger
    definitions: NotebookDefinitions
    say: Callable[[str], None]
    fault: Callable[[BaseException], None]
    """Keeps where keel itself failed."""


def kernel_of(
    shell: Any, *, cwd: Path, clock: Clock, say: Callable[[str], None], fault: Callable[[BaseException], None]
) -> Kernel:
    """The kernel of a shell, with an empty ledger."""
    return Kernel(shell, cwd, clock, Ledger(), NotebookDefinitions(shell), say, fault)


def attach(kernel: Kernel, settings: Any) -> Attached:  # noqa: PLR0915 - all parts, in one place
    """Open the journal of a kernel. Raises KeelError where that cannot be done."""
    shell, cwd, clock, definitions = kernel.shell, kernel.cwd, kernel.clock, kernel.definitions
    folder = journal_folder(settings.journal, notebook := notebook_path(shell, cwd), cwd)
    seal = seal_of(settings.key_file, folder)
    journal, flow, leases = _opened(kernel, settings, folder, seal)
    digester = StructuralDigester(salt=journal.salt, definitions=definitions)
    compared = OrOutline(digester)
    watch = NameWatch(shell, compared, definitions)
    files = Files(root=cwd, salt=journal.salt, now_ns=lambda: int(clock.now() * 1e9))
    namespace: dict[str, Any] = shell.user_ns
    origins_watch = NameWatch(shell, compared, definitions)  # apart from the one that watches the running cell
    provenance = Provenance(kernel.ledger, origin_senses(namespace, digester, definitions, files, origins_watch))
    at_work = partial(now_at_work, shell)

    def went_on(records: FlowRecords, root: str) -> frozenset[int]:
        own = of_root(records, root) if root else records
        return resumed(own, journal.run, clock.now(), alone=is_alone(shell))

    def reached(names: Iterable[str], parsed: Any, seen: Seen) -> Mapping[str, Digested]:
        found = watch.reached(names, parsed.names, lambda value: seen.get(id(value)) or compared.digest(value))
        return at_work().unknown(provenance.vouched(found)) if found else found  # nobody can change what is not read

    def described(name: str, value: Any) -> str:
        return ", ".join(filter(None, (preview(name, value), definitions.note_on(value))))

    def kept_inputs(names: Sequence[str]) -> tuple[Input, ...]:
        going_on = at_work() if names else NOBODY
        return tuple(kept_input(name, going_on) for name in names)

    def kept_input(name: str, going_on: AtWork) -> Input:
        if name not in namespace:
            return Input(name, ABSENT, preview="absent")
        value = namespace[name]
        found = going_on.unknown({name: provenance.one(name, compared.digest(value))})[name]
        return Input(name, found.digest, found.weak, preview=preview(name, value), type=kind_of(value))

    file_watch = FileWatch(files, opens=Opens.make(), ignore=str(folder))
    lanes = LaneKeeper(journal, clock, kernel.say)
    cells = NotebookFile(notebook, shell.transform_cell)

    def holds(name: str, digest: Digest | None) -> bool:
        there = name in namespace and is_small_data(namespace[name])
        return there and name not in at_work().names and same(digest, digester.digest(namespace[name]).digest)

    def reach(names: frozenset[str], cell: CellNames) -> frozenset[str]:
        own = origins_watch.reached(
            names, cell, lambda value: digester.digest(value) if isinstance(value, NO_DATA) else Digested(None)
        )
        return frozenset(own)

    def digest_of(value: Any) -> Digest | None:
        return digester.digest(value).digest

    ambient, ambient_inputs = state_without_a_name(str(cwd), journal.salt, clock.now, namespace, definitions, digest_of)
    codec = GraphCodec(journal=journal, definitions=definitions, digester=digester, namespace=lambda: namespace)
    parts = Parts(
        journal=journal,
        codec=codec,
        tap=make_tap(shell),
        watch=watch,
        ambient=ambient,
        ambient_inputs=ambient_inputs,
        world=World(ignore=folder, changing=file_watch.changing),
        clock=clock,
        namespace=namespace,
        pack_messages=pack_messages,
        unpack_messages=unpack_messages,
        unpack_live=unpack_live,
        files=StepFiles(file_watch, namespace, definitions),
        lane=lambda: lanes.current,
        references=References(
            *(codec, namespace, digest_of, journal.records),
            *(kernel.ledger.stored, definitions.is_local, journal_id(journal.salt)),
        ),
        kept_inputs=kept_inputs,
        about=sizes.about,
        at_work=at_work,
        changed=kernel.ledger.origins.changed,
    )
    runner = Runner(parts)

    def still(name: str, may_look: Callable[[int], bool]) -> bool:
        left = kernel.ledger.digests.get(name)
        return left is not None and may_look(sizes.about(namespace[name])) and holds(name, left)

    between = Between(cells, namespace, definitions, shell.transform_cell)
    plain = PlainCells(parts, sizes.about, still, partial(changed_by_plain, files, between))

    def light(value: Any) -> Digested:
        return digester.digest(value) if plain.is_small(value) else Digested(None)

    def looks(parsed: Any) -> tuple[Mapping[str, str], Seen]:
        seen = watch.reached(parsed.reads, parsed.names, light)
        shown = {name: item.digest or sizes.look(namespace.get(name)) for name, item in seen.items()}
        there = {name: item for name, item in seen.items() if item.digest is not None and name in namespace}
        return shown, {id(namespace[name]): item for name, item in there.items()}

    volatile = volatile_sense(
        parts, digester=digester, definitions=definitions, watch=origins_watch, went_on=went_on, say=kernel.say
    )
    senses = Senses(
        reached=reached,
        value=partial(value_of, namespace),
        preview=described,
        kind_of=kind_of,
        surroundings=ambient_inputs.now,
        objects=lambda ambient: watch.objects.now(ambient, kernel.ledger.put_back() | volatile.names.came_back()),
        went_on=went_on,
        volatile=volatile.names.names,
        anew=partial(starts_anew, settings, shell),
        read_below=cells.read_below,
        tied=watch.tied,
        copyable=lambda name: name in namespace and is_small_data(namespace[name]),
        **file_senses(files, between),
        say=kernel.say,
        now=clock.now,
        monotonic=clock.monotonic,
    )
    stepper = Stepper(runner=runner, ledger=kernel.ledger, senses=senses, lanes=lanes, records=journal.records)

    def calls_on(found: FlowSeen) -> Calls:
        return calls_of(
            journal=journal,
            codec=codec,
            digester=compared,
            vouch=WhileRunning(provenance).one,
            definitions=definitions,
            ambient=ambient,
            clock=clock,
            namespace=namespace,
            flow=found,
            leases=leases,
            mode=Mode(settings.mode),
            say=kernel.say,
        )

    def copies() -> Sequence[FlowId]:
        if flow.name or not flow.file:
            return ()
        return [other.id for other in known_flows(folder) if not other.name and other.id != flow.id]

    def guarded_on(calls: Calls) -> Guarded:
        parts = EffectParts(
            journal=journal,
            runner=runner,
            clock=clock,
            guard=calls.parts.guard,
            flow_key=calls.parts.flow_key,
            copies=copies,
            say=kernel.say,
        )
        return Guarded(parts)

    def close() -> None:
        file_watch.close()
        journal.close(clean=True)

    kernel.ledger.journal_id = journal_id(journal.salt)
    attached = Attached(
        folder=folder,
        flow=flow,
        notebook=notebook,
        journal=journal,
        runner=runner,
        stepper=stepper,
        calls_on=calls_on,
        guarded_on=guarded_on,
        file=cells,
        reach=reach,
        holds=holds,
        digest=digest_of,
        plain=plain,
        went_on=went_on,
        at_work=at_work,
        volatile=volatile,
        looks=looks,
        close=close,
        trust=settings.trust,
        say=kernel.say,
    )
    return attached.trusted()


def is_alone(shell: Any) -> bool:
    """Whether nobody sits in front of the kernel: who sends the running cell can be asked nothing (nbclient and all
    that build on it)."""
    kernel = getattr(shell, "kernel", None)
    return kernel is not None and not kernel._allow_stdin


def starts_anew(settings: Any, shell: Any) -> bool:
    """Whether a step that reached the outside world executes once in every new run (``Keel.across_runs``)."""
    if settings.strict or settings.across_runs == "replay":
        return False
    return settings.across_runs == "execute" or is_alone(shell)


def _opened(kernel: Kernel, settings: Any, folder: Path, seal: OwnerSeal) -> tuple[SharedJournal, FlowSeen, Path]:
    """The journal, the flow of this notebook in it, and where leases lie. Who only compares changes none of them."""
    notebook, clock = notebook_path(kernel.shell, kernel.cwd), kernel.clock
    told, cwd, name, key = str(notebook or ""), str(kernel.cwd), settings.flow, settings.flow_key
    if settings.mode == Mode.VERIFY:
        flow = seen_flow(folder, notebook=notebook, name=name, key=key)
        overlay = OverlayJournal(folder, clock=clock, seal=seal, notebook=told, cwd=cwd)
        return SharedJournal(overlay), flow, overlay.scratch / "leases"
    journal = SharedJournal(
        open_journal(folder, clock=clock, seal=seal, notebook=told, cwd=cwd, budget=budget_of(settings.budget))
    )
    try:
        return journal, find_flow(folder, notebook=notebook, name=name, key=key), folder / "leases"
    except KeelError:
        journal.close(clean=True)
        raise
