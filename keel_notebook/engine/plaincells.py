"""What a cell of auto mode leaves that is no step: kept where that costs little, so that ``restore`` finds the session.

A cheap cell runs in every Run All, so nothing here decides anything; it looks before and after, and writes one plain
entry with the values that are small or worth their time. What is not kept is named, with the cell that makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from keel_notebook.core.auto import AUTO
from keel_notebook.core.dotted import PATCHED, value_at
from keel_notebook.core.model import Entry, FileSeen, FlowId, Input, Kind, NotStored, Problem, Status, entry_id
from keel_notebook.core.ports import Changed
from keel_notebook.core.reads import CellNames
from keel_notebook.core.within import identities_within
from keel_notebook.engine.attempt import Attempt, Outcome
from keel_notebook.engine.parts import Parts
from keel_notebook.errors import KeelError

SMALL = 1 << 20
"""Bytes up to which a value is kept whatever it took to make."""
BYTES_PER_SECOND = 15 << 20
"""What a value may weigh for each second that its cell took: writing it then stays below 3 % of that."""


def worth_keeping(size: int, took_s: float) -> bool:
    """Whether a value of this size is kept after a cell that took so long."""
    return size <= max(SMALL, took_s * BYTES_PER_SECOND)


class Budget(Struct):
    """Time for looking at large values and for keeping them: a share of what the notebook's own cells took."""

    share: float = 0.02
    bytes_per_second: float = 5e8
    _left: float = 0.1
    """Seconds; a tenth of one to begin with."""

    def earn(self, took_s: float) -> None:
        """A cell took so long."""
        self._left += took_s * self.share

    def spend(self, size: int) -> bool:
        """Whether a value of this size may be looked at; if so, that is paid for."""
        cost = size / self.bytes_per_second
        if cost > self._left:
            return False
        self._left -= cost
        return True


class PlainNow(Struct, frozen=True):
    """A plain cell as it stands now."""

    flow: FlowId
    cell_id: str
    count: int
    """Its execution count: the number that people are told."""
    source: str
    parsed: Any
    """``.code`` and ``.names`` of the analysed cell."""
    looks: Mapping[str, str] = field(default_factory=dict)
    """How its inputs looked before it ran."""


def plain_entry(now: PlainNow, *, run: int, seq: int, at: float, ambient: Mapping[str, Any]) -> Entry:
    """The entry of a plain cell as it begins: its text, and what it may read. No values. ``at`` is wall time."""
    return Entry(
        entry=entry_id(run, seq),
        flow=now.flow,
        run=run,
        seq=seq,
        step="",
        kind=Kind.PLAIN,
        status=Status.RUNNING,
        occurrence=now.count,
        key=now.cell_id,
        code=now.parsed.code,
        source=now.source,
        inputs=tuple(Input(name, None) for name in sorted(now.parsed.names.reads)),
        ambient=ambient,
        started_at=at,
    )


class PlainAttempt(Struct, frozen=True):
    """A cheap cell that is running."""

    now: PlainNow
    entry: Entry
    snapshot: Any
    ambient: Any
    began: float


class Left(Struct, frozen=True):
    """What a cell of auto mode left: its entry, and what it did to the namespace."""

    now: PlainNow
    entry: Entry
    changed: Changed


class PlainCells:
    """Keeps what cheap cells leave."""

    def __init__(
        self,
        parts: Parts,
        about: Callable[[Any], int],
        still: Callable[[str, Callable[[int], bool]], bool],
        changed_files: Callable[[CellNames], tuple[FileSeen, ...]],
    ) -> None:
        """``about`` tells a value's size in bytes. ``still`` tells whether a large name surely holds what a step left
        in it; it asks before it looks at that many bytes. ``changed_files``: what the running cell did to files that
        steps left."""
        self._parts = parts
        self._changed_files = changed_files
        self._about = about
        self._still = still
        self.budget = Budget()

    def begin(self, now: PlainNow) -> PlainAttempt:
        """Write that the cell runs, and look at the namespace. Raises what the journal raises."""
        parts = self._parts
        entry = self._entry(now)
        parts.journal.append(entry)
        snapshot = parts.watch.before(now.parsed.names, self.is_small)
        return PlainAttempt(now, entry, snapshot, parts.ambient.before(), parts.clock.monotonic())

    def is_small(self, value: Any) -> bool:
        """Whether a value may be digested for a cheap cell."""
        return self._about(value) <= SMALL

    def finish(self, attempt: PlainAttempt, outcome: Outcome) -> Left:
        """Keep what the cell left. Raises KeelError where that failed; the cell's own result is not touched."""
        parts = self._parts
        took = parts.clock.monotonic() - attempt.began
        parts.ambient_inputs.cell_ran(attempt.now.source)
        ended = replace(_ended(attempt.entry, outcome, took), files=self.told(attempt.now))
        entry, changed = self._kept(ended, attempt.snapshot, attempt.ambient)
        parts.journal.append(entry)
        return Left(attempt.now, entry, changed)

    def finish_step(self, attempt: Attempt, now: PlainNow, outcome: Outcome) -> Left:
        """The same for a body that ran as a step and turned out to be cheap: its entry becomes a plain one."""
        parts = self._parts
        took = parts.clock.monotonic() - attempt.began
        parts.ambient_inputs.close(attempt.used, now.source)
        files = self.told(now)
        parts.tap.close()
        parts.world.close()
        plain = replace(_ended(self._entry(now, attempt.entry), outcome, took), files=files)
        entry, changed = self._kept(plain, attempt.snapshot, attempt.ambient)
        if attempt.recorded:
            parts.journal.append(entry)
        return Left(now, entry, changed)

    def told(self, now: PlainNow) -> tuple[FileSeen, ...]:
        """A plain cell ran, kept by whoever: what it told libraries counts. What it did to files of steps."""
        self._parts.ambient_inputs.ran_plainly(now.parsed.parsed.tree)
        return self._changed_files(now.parsed.names)

    def _entry(self, now: PlainNow, begun: Entry | None = None) -> Entry:
        journal = self._parts.journal
        seq, run = (journal.next_seq(), journal.run) if begun is None else (begun.seq, begun.run)
        at = self._parts.clock.now() if begun is None else begun.started_at
        return plain_entry(now, run=run, seq=seq, at=at, ambient={AUTO: dict(now.looks)})

    def _kept(self, entry: Entry, snapshot: Any, ambient: Any) -> tuple[Entry, Changed]:
        parts, took = self._parts, entry.took_s or 0.0
        self.budget.earn(took)
        changed = parts.watch.after(snapshot)
        there = {name: value_at(parts.namespace, name) for name in changed.written}
        sizes = {name: self._about(value) for name, value in there.items()}
        without = frozenset((*changed.written, *changed.unsure))
        known = parts.references.known(entry.flow, without=without, among=identities_within(there.values()))
        going_on = parts.at_work()
        unfinished = going_on.names.keys() & there.keys()
        small = {n: value for n, value in there.items() if n not in unfinished and self._keeps(sizes[n], took)}
        lost = [going_on.lost(name, type(there[name]).__qualname__) for name in unfinished]
        lost += [
            _not_kept(name, there[name], "large and quickly made") for name in there.keys() - small.keys() - unfinished
        ]
        lost += [
            _not_kept(name, parts.namespace[name], "large, and this cell may have changed it")
            for name in changed.unsure
            if not self._still(name, self.budget.spend)
        ]
        lost += [
            _not_kept(name, parts.namespace[name], "it changed with another value by memory that no record shares")
            for name in changed.apart
        ]
        own: dict[str, Any] = {"in_place": sorted(changed.in_place)}
        if changed.patched:
            own[PATCHED] = list(changed.patched)
        entry = replace(
            entry,
            ended_at=parts.clock.now(),
            deleted=changed.deleted,
            ambient=dict(entry.ambient) | parts.ambient.after(ambient) | own,
        )
        if small:
            packed = parts.codec.pack(small, result=None, known=known)
            entry = replace(entry, payload=packed.payload, writes=packed.writes)
            lost += packed.not_stored
        return replace(entry, not_stored=tuple(sorted(lost, key=lambda item: item.name))), changed

    def _keeps(self, size: int, took: float) -> bool:
        """Whether a value is kept: it is small, or worth the time it took to make, or there is time left for it."""
        return worth_keeping(size, took) or self.budget.spend(size)


def _not_kept(name: str, value: Any, reason: str) -> NotStored:
    return NotStored(name, type(value).__qualname__, reason)


def _ended(entry: Entry, outcome: Outcome, took: float) -> Entry:
    return replace(entry, status=outcome.status, took_s=took, error=_problem(outcome.error))


def _problem(error: BaseException | None) -> Problem | None:
    if error is None:
        return None
    return Problem(type(error).__qualname__, error.code if isinstance(error, KeelError) else "")
