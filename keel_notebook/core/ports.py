"""The ports between the layers: what the engine and the session ask of the outer parts (DESIGN 9).

``journal``, ``payload`` and ``capture`` never import each other; they meet here, and ``session.py`` puts them
together. Each port has one real form and one in-memory form for tests, and both pass the same contract suite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from keel_notebook.core.live import Live
from keel_notebook.core.model import Blob, Digest, Entry, EntryId, FlowId, NotStored, Payload, Write
from keel_notebook.errors import KeelError


class Clock(Protocol):
    """Time as an argument. Only ``session.py`` builds the real one."""

    def now(self) -> float:
        """Wall time, seconds since the epoch. Only for stamps that people read and for ``--ttl``."""

    def monotonic(self) -> float:
        """Seconds that never jump. For durations and freshness (K33)."""


class RunStart(Struct, frozen=True):
    """Who writes a segment: kept in the first frame of it, for the question "is its kernel alive?"."""

    run: int
    host: str
    pid: int
    boot: str
    """The machine's boot id: a pid says nothing after a reboot."""
    started: float
    """Start time of the process as the system knows it, so that a reused pid is not taken for it."""
    notebook: str = ""
    cwd: str = ""


class RunEnd:
    """How the run of a segment ended, as far as its own kernel could say (Deaths, DESIGN 5)."""

    OPEN = "open"
    """Its kernel lives: the segment's lock is held."""
    CLEAN = "clean"
    """A shutdown on request, or the interpreter's own exit."""
    ASKED = "asked"
    """A shutdown was asked for and the kernel had to be killed while it was still busy."""
    DIED = "died"
    """The kernel vanished by itself on this boot: the only end that counts as a death."""
    VANISHED = "vanished"
    """Another host or another boot: the machine went away, nobody's fault."""


class RunSeen(Struct, frozen=True):
    """A run as a reader finds it, with the memory (bytes) and the time when its kernel was last seen; 0 if never."""

    start: RunStart
    end: str
    rss_last: int = 0
    seen_at: float = 0.0


class FlowRecords(Struct, frozen=True):
    """All that a kernel needs of one flow: every entry that may still be asked for, in the order written.
    Superseded entries (a ``running`` one whose ``ok`` exists under the same id) are not in it."""

    flow: FlowId
    entries: Sequence[Entry]
    runs: Mapping[int, RunSeen]
    untrusted: frozenset[EntryId] = frozenset()
    """Entries whose seal is not the owner's: listed, never unpickled (DESIGN 8)."""


class Seal(Protocol):
    """The owner's seal on entries: a MAC, checked before anything is unpickled (DESIGN 8).

    An entry names its payload and buffers by digest, so that sealing its bytes seals all of it.
    """

    def sign(self, body: bytes) -> bytes:
        """16 bytes that only the owner's key can make."""

    def verify(self, body: bytes, mac: bytes) -> bool:
        """Whether the owner's key made ``mac`` for ``body``; constant time."""


class Journal(Protocol):
    """Where entries are kept. One object per kernel; every method may be called from the main thread only,
    except ``request_shutdown`` and ``saving``.

    Raises from every method: ``JournalUnreachableError`` (E054) where the folder cannot be used,
    ``DiskFullError`` (E053) where it is full, ``DamagedError`` (E051) where what was read is not what was written.
    "I could not read" is never answered with "there is nothing".
    """

    salt: bytes
    """32 bytes kept in the journal's folder: input digests hold wherever the folder goes (DESIGN 8)."""
    fence: int
    """The fence of the lease that this kernel holds, 0 without one: goes into every frame (O12)."""

    @property
    def run(self) -> int:
        """This kernel's run number; 0 while nothing can be recorded."""

    @property
    def problem(self) -> KeelError | None:
        """Why nothing is recorded, or nothing is made power-safe; None while all is well."""

    @property
    def saving(self) -> frozenset[EntryId]:
        """Entries that survive ``kill -9`` already and a power cut not yet (state ``saving``)."""

    def next_seq(self) -> int:
        """The seq of the next entry of this run: 1, 2, …; 0 is reserved (K3). Claimed at the call (K4)."""

    def append(self, entry: Entry, *, synced: bool = False) -> None:
        """Write the entry so that it survives ``kill -9``; with ``synced`` also a power cut (Z4; Z24: ``Barrier``)."""

    def records(self, flow: FlowId) -> FlowRecords:
        """What is recorded of a flow, other kernels' newest entries included."""

    def put(self, parts: Iterable[memoryview | bytes]) -> Digest:
        """Write one object (the parts joined) and return its digest. Equal content is written once."""

    def blob(self, content: bytes | memoryview) -> Blob:
        """Small content inline, larger content as an object."""

    def read(self, blob: Blob) -> bytes:
        """The content of a blob, checked against its digest."""

    def map(self, digest: Digest) -> memoryview:
        """An object as private copy-on-write memory: writable, the file is never changed. Checked first
        unless a synced frame vouches for it on a local disk (DESIGN 7)."""

    def flush(self, timeout_s: float | None = None) -> bool:
        """Make everything written so far power-safe; False if that took longer than the timeout."""

    def trust(self, flow: FlowId) -> int:
        """Add the owner's seal to every entry of a flow that lacks it; how many. Older seals stay valid (DESIGN 8)."""

    def request_shutdown(self) -> None:
        """Note that the kernel was asked to stop. May come from another thread while a cell runs."""

    def close(self, *, clean: bool) -> None:
        """End the run. ``clean`` writes the closing frame. Safe to call twice."""


class Digested(Struct, frozen=True):
    """The digest of a value, or why there is none (``digest`` None: unknown, never equal)."""

    digest: Digest | None
    weak: bool = False
    reason: str = ""
    reaches: frozenset[str] = frozenset()
    """Global names of the notebook that functions and classes inside the value read: inputs as well."""
    outline: bool = False
    """The value has no digest: this is one of what can be compared of it, and counts only with its provenance."""
    inward: bool = False
    """Of an outline: what has no digest in it are locks and their like, which lead nowhere out of this process."""


class Definition(Struct, frozen=True):
    """The code of a function or class of the notebook, as it was executed."""

    code: Digest
    """Of the normalised source (AST), never of byte code."""
    reads: frozenset[str]
    """Global names that its code may read, nested code included."""
    source: str


class Definitions(Protocol):
    """Where the code of functions, classes and modules comes from."""

    def belongs(self, thing: Any) -> bool:
        """Whether a function or class was defined in the notebook (or by ``exec`` in it), not in a module."""

    def of(self, thing: Any) -> Definition | None:
        """The definition of a notebook function or class; None where its source cannot be found for sure."""

    def module(self, name: str) -> Digested:
        """A module: installed ones by name (version is a note), local ones by the source that was *loaded*."""

    def modules_at_once(self) -> Callable[[str], Digested]:
        """``module`` for many names while nobody changes anything."""

    def is_local(self, module: str) -> bool:
        """Whether a module counts by its source: the person's own."""


class Digester(Protocol):
    """Structural, type-tagged digests of values, equal in every process that shares the journal's salt."""

    def digest(self, value: Any) -> Digested:
        """The digest of one value. Never raises: what cannot be digested says why."""


class Packed(Struct, frozen=True):
    """Values turned to bytes and written: what goes into the entry."""

    payload: Payload
    writes: tuple[Write, ...]
    not_stored: tuple[NotStored, ...]


PLAIN = EntryId("")
"""Stands for the entry of a value that a plain cell made: only the notebook itself holds it."""


class Known(Struct, frozen=True):
    """A value of the notebook that an earlier entry already holds: referred to, not stored again."""

    entry: EntryId
    name: str
    digest: Digest


class Unpacked(Struct, frozen=True):
    """What a payload gives back: the names, and the value of the cell's last expression if it had one."""

    names: Mapping[str, Any]
    result: Any = None
    has_result: bool = False
    gone: Mapping[str, str] = {}
    """Names that cannot be read back, each with the reason, where only a part was asked for."""
    awake: frozenset[str] = frozenset()
    """Names of live widgets: the object that comes back is the one to bind."""
    wake: Callable[[], Sequence[str]] = tuple
    """Connects live widgets, when the values are put back. Gives what could not be, in words."""


class Codec(Protocol):
    """One payload graph per step: aliases between its names survive."""

    def pack(
        self,
        names: Mapping[str, Any],
        *,
        result: tuple[Any] | None,
        known: Mapping[int, Known],
        digested: bool = True,
        shown: Sequence[Any] = (),
    ) -> Packed:
        """Write the values of ``names`` (and the one-element tuple ``result``, and widgets ``shown``) as one graph.

        ``known`` maps ``id(object)`` to where it is journaled already; without ``digested`` no digests are found out.
        What cannot be stored is left out and named in ``not_stored``. Raises what the journal raises.
        """

    def unpack(self, payload: Payload, *, resolve: Callable[[Known], Any], partly: bool = False) -> Unpacked:
        """The values back; ``resolve`` gives the object behind a reference.

        With ``partly``, what cannot be read is named in ``gone`` instead of an error. Raises DamagedError (E051) where
        bytes do not decode, UntrustedError (E050) before anything is unpickled that the owner's key did not seal.
        """


class Message(Struct, frozen=True):
    """One message that a cell sent to the front end, as the journal keeps it."""

    kind: str
    """``stream``, ``display_data``, ``update_display_data``, ``execute_result``, ``clear_output``, ``comm_open`` …"""
    content: Mapping[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    buffers: tuple[bytes, ...] = ()


class Tap(Protocol):
    """Records what a cell shows while it is shown."""

    def open(self) -> None:
        """Start recording the messages of the running cell."""

    def close(self) -> tuple[Message, ...]:
        """Stop, and give the messages: folded, capped, in order."""

    def live(self) -> Live:
        """What the cell that was closed last showed of live widgets."""

    def replay(self, messages: Sequence[Message], live: Sequence[Message] = ()) -> None:
        """Send recorded messages again as the cell's own; ``live`` where all its widgets live here."""


class Changed(Protocol):
    """What a cell did to the namespace."""

    @property
    def written(self) -> tuple[str, ...]:
        """Names bound again or changed in place."""

    @property
    def in_place(self) -> tuple[str, ...]:
        """Of ``written``: names whose object is still the same one, with other content."""

    @property
    def deleted(self) -> tuple[str, ...]:
        """Names that are gone."""

    @property
    def ambiguous(self) -> tuple[str, ...]:
        """Names that a branch or loop may have bound to the object that they had, or not at all: inputs."""

    @property
    def apart(self) -> tuple[str, ...]:
        """Names that changed with a written one, whose memory no record can make them share again."""

    @property
    def patched(self) -> tuple[str, ...]:
        """Classes whose change is told by dotted names (``Cfg.lr``) in ``written`` and ``deleted``."""

    @property
    def unknown(self) -> tuple[str, ...]:
        """What changed and cannot be named or put back: the step executes every time."""

    @property
    def unsure(self) -> tuple[str, ...]:
        """Names that may have been changed in place and were too large to be looked at."""

    @property
    def objects(self) -> Mapping[str, Any]:
        """Which names shared objects before, as ``core.sharing`` compares it: goes into ``Entry.ambient``."""


class Watch(Protocol):
    """Tells which names a cell wrote."""

    def before(self, cell: Any, small: Callable[[Any], bool] | None = None) -> Any:
        """A snapshot, taken before the body runs. ``cell`` is the analysed cell; only ``small`` values are digested."""

    def after(self, snapshot: Any) -> Changed:
        """What changed since the snapshot."""
