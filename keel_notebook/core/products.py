"""What recorded steps left in files: a file that a later step rewrote is no change of an earlier one's product.

*Below* must be sure. A step that was above and executed anew may have left a new input, and a record must not hold
over that. So a step counts as below only if, in every run that saw both, this one was met first (DESIGN 6, Files).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from keel_notebook.core.decide import Part
from keel_notebook.core.done import DECISION, REFUSED
from keel_notebook.core.fileholds import AHEAD, PLAIN, Later
from keel_notebook.core.model import Digest, Entry, EntryId, Kind, Status
from keel_notebook.core.units import ran_as

_MET = frozenset({Kind.STEP, Kind.MARKER, Kind.PLAIN})


Below = Mapping[str, Sequence[Later]]
"""By path: what steps below did with it."""
Elsewhere = Mapping[str, Mapping[Digest, str]]
"""By path: what it held, and which step left that."""


def left_by_others(
    candidates: Sequence[Entry], entries: Sequence[Entry], step: str, *, run: int
) -> tuple[Below, Elsewhere]:
    """What steps below ``step`` left in files that its records wrote, by the newest record of each, and plain cells
    that wrote them anew; and what any record ever left in them, of the step itself and of others.

    Args:
        candidates: the records of the step that may be replayed.
        entries: all of its flow.
        step: its name.
        run: the run of this kernel.
    """
    if not any(seen.role == "write" for entry in candidates for seen in entry.files):
        return {}, {}
    wrote = [entry for entry in entries if entry.kind is Kind.STEP and entry.status is Status.OK and _left(entry)]
    plain = [entry for entry in entries if entry.kind is Kind.PLAIN and _left(entry)]
    newest = {called(entry): entry for entry in (*wrote, *plain)}
    met = _first_met(entries, {step, *newest})
    below = {name for name in newest if name != step and _is_below(met.get(step, {}), met.get(name, {}), run)}
    return _later(newest[name] for name in sorted(below)), _by_path(wrote)


def called(entry: Entry) -> str:
    """What stands for a cell that changed a file: a step's name, or ``plain`` and the text of a plain cell."""
    return entry.step or PLAIN + entry.source


def changed_plainly(entries: Iterable[Entry]) -> dict[str, tuple[int, int, str]]:
    """By path: the run and the place in it of the last plain cell that changed a file of a step; and its prompt."""
    plain = (entry for entry in entries if entry.kind is Kind.PLAIN and entry.files)
    return {seen.path: (e.run, e.seq, ran_as(e.occurrence)) for e in plain for seen in e.files}


def unsettled(candidates: Sequence[Entry], entries: Sequence[Entry]) -> frozenset[EntryId]:
    """Of the records of a step that wrote files, those after which another step began and did not end well: it may
    have died in the middle of a file that it rewrote."""
    writers = [entry for entry in candidates if _left(entry)]
    if not writers:
        return frozenset()
    newest = {entry.step: entry for entry in entries if entry.kind is Kind.STEP and entry.step != writers[0].step}
    last = max(((e.run, e.seq) for e in newest.values() if e.status is not Status.OK), default=(0, 0))
    return frozenset(entry.entry for entry in writers if (entry.run, entry.seq) < last)


def _is_below(mine: Mapping[int, int], theirs: Mapping[int, int], run: int) -> bool:
    if run in theirs and run not in mine:
        return False  # it was met in this kernel, and this step comes only now
    both = mine.keys() & theirs.keys()
    return bool(both) and all(mine[each] < theirs[each] for each in both)


def plain_between(entries: Sequence[Entry], step: str, end: str) -> list[str]:
    """The texts of the plain cells that ran between two steps in the last run that met both."""
    met = _first_met(entries, {step, end})
    runs = met.get(step, {}).keys() & met.get(end, {}).keys()
    if not runs:
        return []
    run = max(runs)
    first, last = met[step][run], met[end][run]
    return [e.source for e in entries if e.kind is Kind.PLAIN and e.run == run and first < e.seq < last]


def asked_between(entries: Sequence[Entry], step: str, last: Mapping[str, str]) -> dict[str, str]:
    """By path, which recorded step between counts by more than a file's content: it imports it, or asks for its size
    or time; a clause. That step cannot be compared with what the file would be there, so it has to be there.

    Args:
        entries: all of the flow.
        step: the step above.
        last: the step below that changed each file last, by path.
    """
    newest = {e.step: e for e in entries if e.kind is Kind.STEP and e.status is Status.OK}
    asking = {name: paths for name, entry in newest.items() if (paths := _asked(entry, last))}
    if not asking:
        return {}
    met = _first_met(entries, {step, *last.values(), *asking})
    found = {}
    for name, paths in asking.items():
        for path in paths:
            mine, its, end = (met.get(each, {}) for each in (step, name, last[path]))
            run = max(mine.keys() & end.keys(), default=0)  # one that this run did not meet is no longer there
            if run in its and mine[run] < its[run] < end[run]:
                found[path] = f"step {name} imports it, or asks for its size or time"
    return found


def refused_for(entries: Iterable[Entry]) -> dict[str, str]:
    """By path, which step was refused last because the file held what a step below had left; a clause. The steps
    above execute in the next pass, so that it finds the file as they leave it."""
    newest = {e.step: e for e in entries if e.kind is Kind.STEP or (e.kind is Kind.MARKER and e.key == DECISION)}
    return {
        path: f"step {name} was refused for it"
        for name, entry in newest.items()
        if entry.kind is Kind.MARKER and entry.ambient.get("decision") == REFUSED
        for part, path, *_, detail in entry.ambient.get("differs", ())
        if part == Part.FILE and detail == AHEAD
    }


def _asked(entry: Entry, paths: Iterable[str]) -> set[str]:
    sized = {seen.path for seen in entry.files if seen.role == "stat"}
    imported = [f"/{item.name}" for item in entry.inputs if item.name.endswith(".py")]
    return {
        path for path in paths if path in sized or f"/{path}".replace("/__init__.py", ".py").endswith(tuple(imported))
    }


def _later(entries: Iterable[Entry]) -> Below:
    found: dict[str, list[Later]] = {}
    for entry in entries:
        read = {seen.path: seen.digest for seen in entry.files if seen.role == "found"}
        for path, digest in _left(entry).items():
            found.setdefault(path, []).append(Later(called(entry), digest, read.get(path)))
    return found


def _by_path(entries: Iterable[Entry]) -> Elsewhere:
    found: dict[str, dict[Digest, str]] = {}
    for entry in entries:
        for path, digest in _left(entry).items():
            found.setdefault(path, {})[digest] = entry.step
    return found


def _left(entry: Entry) -> dict[str, Digest]:
    return {seen.path: seen.digest for seen in entry.files if seen.role == "write" and seen.digest is not None}


def _first_met(entries: Sequence[Entry], steps: set[str]) -> dict[str, dict[int, int]]:
    met: dict[str, dict[int, int]] = {}
    for entry in entries:
        if entry.kind in _MET and (name := called(entry)) in steps:
            seqs = met.setdefault(name, {})
            seqs[entry.run] = min(entry.seq, seqs.get(entry.run, entry.seq))
    return met
