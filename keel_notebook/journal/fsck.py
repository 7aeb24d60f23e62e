"""Looks at everything in a journal, and says what is not as it was written (``keel fsck``, issue 4, 8).

Repair never invents and never deletes: what is damaged moves to ``damaged/``, heads are built anew from the record
file, and what a collection that was killed had moved aside comes back. A step whose value is gone executes again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from keel_notebook.core.model import Digest
from keel_notebook.errors import DamagedError, JournalUnreachableError, KeelError
from keel_notebook.journal import heads, letgo, locks, spawn, wire
from keel_notebook.journal.collect import objects_in, put_back, set_aside_by_gc
from keel_notebook.journal.damage import set_aside, troubles
from keel_notebook.journal.faults import spoken
from keel_notebook.journal.folder import SALT_BYTES, Folder
from keel_notebook.journal.objects import Objects
from keel_notebook.journal.reader import read_journal

_WAIT_S: Final = 60.0


class Finding(Struct, frozen=True):
    """Something that is not as it was written."""

    what: str
    """``salt``, ``head``, ``object``, ``missing``, ``aside``, ``record`` or ``note``."""
    name: str
    says: str
    mended: bool = False
    """Whether it was put right just now."""


class Checked(Struct, frozen=True):
    """What was looked at."""

    flows: int
    entries: int
    objects: int
    bytes: int
    findings: tuple[Finding, ...]
    let_go: int = 0
    """Values that are not there because a collection let them go: no fault."""

    @property
    def well(self) -> bool:
        """Whether nothing is wrong that was not put right: notes of the past are no fault."""
        return all(found.mended or found.what == "note" for found in self.findings)


def check(folder: Path, *, fix: bool) -> Checked:
    """Read everything. ``fix``: put right what can be. Raises JournalUnreachableError (E054) where nothing can be read.

    Objects are compared with the digests that they are named by; entries were checked frame by frame when they were
    taken in. What kernels write meanwhile is no fault.
    """
    place = Folder(folder)
    with spoken(place.path):
        findings = [*_salt(place), *_heads(place, fix=fix), *_aside(place, fix=fix)]
        try:
            spawn.ingest_now(place.path, _WAIT_S)  # reads every segment, rebuilds what is lost
        except JournalUnreachableError as error:
            findings.append(Finding("record", "journal.duckdb", str(error)))
        held = dict(objects_in(place))
        damaged = list(_damaged(place, held, fix=fix))
        reader = read_journal(folder, seal=None)
        try:
            flows = {flow.id: reader.history(flow.id) for flow in reader.flows()}
        finally:
            reader.close()
        entries = [entry for found in flows.values() for entry in found]
        gone = {found.name for found in damaged if found.mended}
        by_decision, let_go = letgo.read(place), set[Digest]()
        for entry in entries:
            for digest in wire.objects_of(entry):
                if (digest not in held or digest in gone) and not os.path.exists(_path(place, digest)):
                    if digest not in gone and (entry.ended_at or entry.started_at or 0.0) <= by_decision.get(
                        digest, -1.0
                    ):
                        let_go.add(digest)
                        continue
                    says = f"a value of {entry.step or 'a plain cell'} ({entry.entry}) is not there: it executes again"
                    findings.append(Finding("missing", digest, says, mended=digest in gone))
        findings += damaged
        findings += [Finding("note", "damaged/notes.txt", line) for line in troubles(place.path)]
        sizes = sum(os.stat(path).st_size for path in held.values() if os.path.exists(path))
    return Checked(len(flows), len(entries), len(held), sizes, tuple(findings), len(let_go))


def _salt(place: Folder) -> Iterator[Finding]:
    try:
        found = place.read_salt()
    except ValueError:
        found = b""
    if found is None or len(found) != SALT_BYTES:
        yield Finding("salt", "salt", "it is not whole: recorded inputs cannot be compared, and every step executes")


def _heads(place: Folder, *, fix: bool) -> Iterator[Finding]:
    """Heads that cannot be read: set aside, so that the ingest builds them anew."""
    try:
        lines = heads.read_index(place.index).flows
    except FileNotFoundError:
        return
    except heads.Unreadable as error:
        yield _spoiled(place, place.index, str(error), fix=fix)
        return
    for flow in lines:
        try:
            heads.read_head(place.head(flow), flow)
        except FileNotFoundError:
            continue  # the ingest builds it anew
        except heads.Unreadable as error:
            yield _spoiled(place, place.head(flow), str(error), fix=fix)


def _spoiled(place: Folder, path: str, why: str, *, fix: bool) -> Finding:
    if fix:
        with locks.hold(place.lock, wait_s=_WAIT_S):
            set_aside(place, [path], f"A head could not be read ({why}) and was built anew.")
    return Finding("head", os.path.relpath(path, place.path), f"it cannot be read ({why})", mended=fix)


def _aside(place: Folder, *, fix: bool) -> Iterator[Finding]:
    if moved := set_aside_by_gc(place):
        if fix:
            with locks.hold(place.lock, wait_s=_WAIT_S):
                put_back(place)
        yield Finding("aside", "objects", f"a `keel gc` was killed with {len(moved)} objects moved aside", mended=fix)


def _damaged(place: Folder, held: dict[Digest, str], *, fix: bool) -> Iterator[Finding]:
    objects = Objects(place, run=0, vouched=lambda _: 0)
    for digest, path in held.items():
        try:
            objects.check(digest)
        except DamagedError as error:
            if not os.path.exists(path):
                continue  # let go meanwhile
            if fix:
                set_aside(place, [path], f"Object {digest[:12]} was not what was written.")
            yield Finding("object", digest, str(error), mended=fix)
        except KeelError as error:
            yield Finding("object", digest, str(error))


def _path(place: Folder, digest: Digest) -> str:
    return f"{place.objects}/{digest[:2]}/{digest[2:]}"
