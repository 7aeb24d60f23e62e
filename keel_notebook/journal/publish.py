"""What an ingest puts where kernels read it, and what it deletes then: heads, index, segments, in this order.

A reader lists the inbox, then reads index and head, then segments (views.py). So nothing is ever out of sight: a
segment goes only when the heads that hold its entries are in place, power-safe.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

from keel_notebook.core.model import FlowId
from keel_notebook.journal import heads, liveness, wire
from keel_notebook.journal.cursor import Resume
from keel_notebook.journal.damage import note, set_aside
from keel_notebook.journal.flowlog import FlowLog
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.heads import FlowLine, Head, Index
from keel_notebook.journal.liveness import Life
from keel_notebook.journal.pruning import pruned
from keel_notebook.journal.takein import TakeIn, Taken
from keel_notebook.journal.views import said
from keel_notebook.journal.wholefiles import create_whole, replace_whole

_RUNS_KEPT = 200


def publish_heads(place: Folder, taken: TakeIn, *, generation: int, totals: dict[FlowId, int], resumable: bool) -> None:
    """Write the heads that changed, then the index. Raises OSError.

    ``resumable``: the record file holds what the heads do, and is checkpointed and closed. Otherwise the next
    ingest has to read every segment from its beginning.
    """
    os.makedirs(place.heads, mode=0o700, exist_ok=True)
    before = taken.index or Index()
    resumes = _resumes(taken) if resumable else {}
    lines = dict(before.flows)
    for log in taken.changed():
        head = _head(log, totals.get(log.flow, len(log)), resumes)
        replace_whole(place.head(log.flow), heads.encode_head(head))
        lines[log.flow] = FlowLine(len(head.entries), head.total, log.newest, tuple(sorted(head.runs)))
    index = Index(generation, taken.top, lines, {run: at for run, at in resumes.items() if run not in leaving(taken)})
    if index != before or taken.index is None:
        replace_whole(place.index, heads.encode_index(index))


def clear_away(place: Folder, taken: TakeIn) -> None:
    """Delete what heads and record file hold now, and set damage aside. Raises OSError."""
    going = leaving(taken)
    for run, segment in taken.segments.items():
        for fault in segment.cursor.faults:
            note(place, said(run, fault))
        damaged = bool(segment.cursor.faults) and _finished(segment)
        if damaged or run in going:
            with _nobody_writes(place, run, segment) as sure:
                if sure and damaged:
                    set_aside(place, [place.segment(run), place.side(run)], f"The segment of run {run} was damaged.")
                elif sure:
                    _unlink(place.segment(run), place.side(run))
            if damaged and run not in going:
                create_whole(place.segment(run), b"")
    _sweep(place, taken)


@contextlib.contextmanager
def _nobody_writes(place: Folder, run: int, segment: Taken) -> Iterator[bool]:
    # A kernel may have claimed an empty segment since we took it for a dead one. It locks before it writes, and
    # looks whether its file is still there; so whoever holds the lock and finds nothing new may delete.
    try:
        fd = os.open(place.segment(run), os.O_RDWR)
    except FileNotFoundError:
        yield False
        return
    try:
        yield liveness.take_now(fd) is not False and os.fstat(fd).st_size == segment.size
    finally:
        os.close(fd)


def _unlink(*paths: str) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def leaving(taken: TakeIn) -> set[int]:
    """Runs whose segments can go once the heads are written.

    The highest number stays as a file, so that it is never given out again even if the index is lost.
    """
    newest = max(taken.segments, default=0)
    return {run for run, segment in taken.segments.items() if _finished(segment) and run != newest}


def _resumes(taken: TakeIn) -> dict[int, Resume]:
    found = {run: segment.cursor.resume(segment.seen) for run, segment in taken.segments.items()}
    return {run: resume for run, resume in found.items() if resume is not None}


def _head(log: FlowLog, total: int, resumes: dict[int, Resume]) -> Head:
    kept = pruned(log.written())
    named = {digest for item in kept for digest in wire.objects_of(item.entry)}
    needed = {item.entry.run for item in kept} | set(sorted(log.runs)[-_RUNS_KEPT:])
    return Head(
        log.flow,
        total,
        tuple(wire.Stored(item.stamp, item.fence, item.macs, item.body) for item in kept),
        {run: seen for run, seen in log.runs.items() if run in needed},
        {digest: stamp for digest, stamp in log.vouched.items() if digest in named},
        {run: resume for run, resume in resumes.items() if log.flow in resume.flows},
    )


def _finished(segment: Taken) -> bool:
    # Nobody can write to it any more. Where that cannot be told, its own last frame may say so.
    return segment.life is Life.GONE or (segment.life is Life.UNKNOWN and segment.cursor.ended)


def _sweep(place: Folder, taken: TakeIn) -> None:
    # Unfinished objects of kernels that are gone, and unfinished heads: nobody else writes those.
    alive = {run for run, segment in taken.segments.items() if not _finished(segment)}
    for name in _scratch(place.objects):
        run = name[1:].split(".")[0]
        if run.isdecimal() and int(run) not in alive and int(run) <= taken.top:
            _unlink(f"{place.objects}/{name}")
    _unlink(*(f"{place.heads}/{name}" for name in _scratch(place.heads)))


def _scratch(folder: str) -> Iterable[str]:
    with contextlib.suppress(FileNotFoundError):
        return [name for name in os.listdir(folder) if name.startswith(".") and name.endswith(".tmp")]
    return []
