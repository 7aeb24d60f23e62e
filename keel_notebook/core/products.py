"""What the steps below a step left in files: a file that a later step rewrote is no change of an earlier one's product.

*Below* must be sure. A step that was above and executed anew may have left a new input, and a record must not hold
over that. So a step counts as below only if, in every run that saw both, this one was met first (DESIGN 6, Files).
"""

from __future__ import annotations

from collections.abc import Sequence

from keel_notebook.core.model import Digest, Entry, Kind, Status

_MET = frozenset({Kind.STEP, Kind.MARKER})


def left_below(
    candidates: Sequence[Entry], entries: Sequence[Entry], step: str, *, run: int
) -> dict[str, frozenset[Digest]]:
    """By path, what steps below ``step`` left in files that its records wrote, by the newest record of each.

    Args:
        candidates: the records of the step that may be replayed.
        entries: all of its flow.
        step: its name.
        run: the run of this kernel.
    """
    if not any(seen.role == "write" for entry in candidates for seen in entry.files):
        return {}
    writers: dict[str, Entry] = {}
    for entry in entries:
        if entry.step != step and entry.kind is Kind.STEP and entry.status is Status.OK and _left(entry):
            writers[entry.step] = entry
    if not writers:
        return {}
    met = _first_met(entries, {step, *writers})
    mine = met.get(step, {})
    found: dict[str, set[Digest]] = {}
    for name, entry in writers.items():
        theirs = met.get(name, {})
        both = mine.keys() & theirs.keys()
        if run in theirs and run not in mine:
            continue  # it was met in this kernel, and this step comes only now
        if both and all(mine[each] < theirs[each] for each in both):
            for path, digest in _left(entry).items():
                found.setdefault(path, set()).add(digest)
    return {path: frozenset(digests) for path, digests in found.items()}


def _left(entry: Entry) -> dict[str, Digest]:
    return {seen.path: seen.digest for seen in entry.files if seen.role == "write" and seen.digest is not None}


def _first_met(entries: Sequence[Entry], steps: set[str]) -> dict[str, dict[int, int]]:
    met: dict[str, dict[int, int]] = {}
    for entry in entries:
        if entry.step in steps and entry.kind in _MET:
            seqs = met.setdefault(entry.step, {})
            seqs[entry.run] = min(entry.seq, seqs.get(entry.run, entry.seq))
    return met
