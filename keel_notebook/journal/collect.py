"""Lets objects go that no record needs any more (``keel gc``). May be killed at any moment.

Objects are shared: a kernel that records equal content uses the one that is there, before its entry says so. So
nothing is let go while another kernel may be at work, and objects are first moved aside and only deleted when no kernel
has come meanwhile. A kernel claims its segment before it writes its first object: one that came before the move shows
in the inbox, one that came after it found nothing to use. The kernel that asks may be at work itself, between two
cells: it says what it claims and what it has put back, and what its threads record meanwhile is noticed. What a killed
collection had moved is put back by the next.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, Protocol

from msgspec.structs import replace

from keel_notebook.core.model import Digest
from keel_notebook.core.ports import Clock
from keel_notebook.core.retention import Held, Plan, Wishes, plan
from keel_notebook.errors import JournalUnreachableError
from keel_notebook.journal import letgo, locks, spawn
from keel_notebook.journal.cursor import Cursor
from keel_notebook.journal.damage import troubles
from keel_notebook.journal.faults import spoken
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.listing import stamp_of
from keel_notebook.journal.liveness import Life
from keel_notebook.journal.reader import read_journal

_WAIT_S: Final = 60.0
_TRIES: Final = 5
_BUDGET: Final = 20_000_000_000
_SHARE: Final = 0.1
_ASIDE: Final = ".going"


class Own(Protocol):
    """The journal of the kernel that collects, between two of its cells."""

    @property
    def run(self) -> int:
        """Its run number; 0 while it records nothing."""

    @property
    def claims(self) -> frozenset[Digest]:
        """Objects that it has put and that no entry names yet."""

    def flush(self, timeout_s: float | None = None) -> bool:
        """Make everything power-safe; whether it is."""


class _Changed(Exception):
    """Something was recorded while objects were moved aside."""


def planned(folder: Path, wishes: Wishes, *, clock: Clock) -> Plan:
    """What ``collect`` would let go now. Nothing is touched. Raises JournalUnreachableError (E054)."""
    place = Folder(folder)
    with spoken(place.path):
        reader = read_journal(folder, seal=None)
        try:
            flows = {flow.id: reader.history(flow.id) for flow in reader.flows()}
        finally:
            reader.close()
        whole = not troubles(place.path)
        held = {digest: _held(path) for digest, path in objects_in(place)}
        return plan(flows, held, replace(wishes, orphans=wishes.orphans and whole), now=clock.now())


def default_budget(folder: Path) -> int:
    """Bytes that the objects of a journal may take where nobody says otherwise: 20 GB, or 10 % of the disk."""
    seen = os.statvfs(folder)
    return min(_BUDGET, int(_SHARE * seen.f_blocks * seen.f_frsize))


def hold_budget(folder: Path, budget: int | None, *, clock: Clock) -> Plan | None:
    """After an ingest: keep the journal within its budget (None: the default one). None where nothing was to be done.

    What is younger than the retention goes as well, oldest first, but never what is needed. Raises as ``collect``.
    """
    place = Folder(folder)
    with spoken(place.path):
        allowed = default_budget(folder) if budget is None else budget
        if sum(_held(path).bytes for _, path in objects_in(place)) <= allowed:
            return None
    return _collected(place, folder, Wishes(keep_s=math.inf, budget=allowed), clock=clock)


def collect(folder: Path, wishes: Wishes, *, clock: Clock, own: Own | None = None) -> Plan:
    """Let go what no record needs, as far as ``wishes`` say, and return what went.

    Args:
        folder: the journal's folder.
        wishes: what is to be kept.
        clock: tells how old things are.
        own: the journal of the kernel that asks: it may be at work, and its ``wishes.keep`` names what it has put back.

    Raises JournalUnreachableError (E054) where another kernel uses the journal, DiskFullError (E053).
    """
    place = Folder(folder)
    _nobody(place, own)
    # What takes the place of an older record must be safe before that goes.
    if own is not None and not own.flush(_WAIT_S):
        raise JournalUnreachableError(
            journal=place.path, detail="what was recorded last is not on the disk yet", case="gc"
        )
    spawn.ingest_now(place.path, _WAIT_S)
    return _collected(place, folder, wishes, clock=clock, own=own)


def _collected(place: Folder, folder: Path, wishes: Wishes, *, clock: Clock, own: Own | None = None) -> Plan:
    for _ in range(_TRIES):
        with _alone(place, own):
            put_back(place)
        before = _state(place)
        claimed = wishes.claimed if own is None else wishes.claimed | own.claims
        found = planned(folder, replace(wishes, claimed=claimed), clock=clock)
        with _alone(place, own):
            if _state(place) == before:  # else a kernel came and went while it was planned
                with contextlib.suppress(_Changed):
                    _let_go(place, found.objects, before, own, at=clock.now())
                    return found
    raise JournalUnreachableError(journal=place.path, detail="kernels keep coming and going", case="gc")


@contextlib.contextmanager
def _alone(place: Folder, own: Own | None) -> Iterator[None]:
    """No ingest and no other kernel works on the journal, as far as one can tell beforehand."""
    with spoken(place.path):
        try:
            with locks.hold(place.lock, wait_s=_WAIT_S):
                _nobody(place, own)
                yield
        except locks.StillLockedError:
            raise JournalUnreachableError(journal=place.path, detail="another process works on it", case="gc") from None


def _state(place: Folder) -> list[object]:
    """What changes when a kernel writes an entry, and when an ingest takes one in."""
    segments = [(run, os.stat(place.segment(run)).st_size) for run in place.runs()]
    return [*segments, stamp_of(place.index)]


def put_back(place: Folder) -> int:
    """Put back what a collection that was killed had moved aside; how many objects."""
    count = 0
    for digest in set_aside_by_gc(place):
        source, target = f"{place.objects}/{_ASIDE}/{digest}", f"{place.objects}/{digest[:2]}/{digest[2:]}"
        if os.path.exists(target):
            os.unlink(source)  # recorded anew meanwhile
        else:
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            os.rename(source, target)
            count += 1
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(f"{place.objects}/{_ASIDE}")
    return count


def _let_go(place: Folder, objects: Collection[Digest], before: list[object], own: Own | None, *, at: float) -> None:
    os.makedirs(f"{place.objects}/{_ASIDE}", mode=0o700, exist_ok=True)
    for digest in objects:
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{place.objects}/{digest[:2]}/{digest[2:]}", f"{place.objects}/{_ASIDE}/{digest}")
    try:
        _nobody(place, own)
        # A thread of our own kernel may have met an object just before it was moved: it claims it, or has named it.
        if own is not None and (not own.claims.isdisjoint(objects) or _state(place) != before):
            raise _Changed
    except (JournalUnreachableError, _Changed):
        put_back(place)
        raise
    letgo.note(place, objects, at=at)
    for digest in set_aside_by_gc(place):
        os.unlink(f"{place.objects}/{_ASIDE}/{digest}")
    os.rmdir(f"{place.objects}/{_ASIDE}")


def _nobody(place: Folder, own: Own | None = None) -> None:
    """Raises JournalUnreachableError (E054) where a kernel works with the journal, or where that cannot be told.

    ``own`` is the one that asks, and no hindrance.
    """
    for run in place.runs():
        if own is not None and run == own.run:
            continue
        try:
            cursor = Cursor(place, run)
        except FileNotFoundError:
            continue
        try:
            life = cursor.life()
            if life is Life.GONE:
                continue
            who = f"pid {cursor.start.pid} on {cursor.start.host}" if cursor.start.pid else f"run {run}"
        finally:
            cursor.close()
        detail = f"a kernel works with it ({who})"
        raise JournalUnreachableError(journal=place.path, detail=detail, case="gc")


def set_aside_by_gc(place: Folder) -> list[Digest]:
    """What a collection has moved aside and not deleted yet."""
    try:
        return [Digest(name) for name in os.listdir(f"{place.objects}/{_ASIDE}")]
    except FileNotFoundError:
        return []


def objects_in(place: Folder) -> Iterator[tuple[Digest, str]]:
    """Every object with its path."""
    for part in sorted(os.listdir(place.objects)):
        folder = f"{place.objects}/{part}"
        if not part.startswith(".") and os.path.isdir(folder):
            for name in sorted(os.listdir(folder)):
                yield Digest(part + name), f"{folder}/{name}"


def _held(path: str) -> Held:
    seen = os.stat(path)
    return Held(seen.st_size, max(seen.st_mtime, seen.st_ctime))
