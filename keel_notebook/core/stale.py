"""Which steps would execute because something above them differs (DESIGN 2: stale).

Only what the records prove counts, whatever the order in which cells were run. A value that a step read was made by
the steps whose records hold just that name and content. The step is stale if none of them holds it any more, or if
all that do would themselves execute. A value that no record holds (a plain cell made it) proves nothing: whether that
step is stale is unknown, and unknown is not said to be stale. It is still never replayed without being compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set

from keel_notebook.core.fileholds import same
from keel_notebook.core.model import Digest, Entry, Input

Makers = Mapping[tuple[str, Digest], Collection[str]]
"""Name and content to the steps that ever left it."""


def stale_reasons(
    holds: Mapping[str, Entry],
    history: Mapping[str, Sequence[Entry]],
    *,
    changed: Set[str],
    where: Callable[[int], str] = lambda _run: "",
) -> dict[str, str]:
    """Why each stale step is stale, as a clause: ``"reads df, which load changed since in run 7"``.

    Args:
        holds: the record of each step that holds now.
        history: every record of each step.
        changed: steps that would execute for a reason of their own (edited, refused as diverged).
        where: in which run a record was made, in words; empty for the run that is looked at.
    """
    makers = _makers(history)
    readers: dict[str, dict[str, None]] = {}
    for step, record in holds.items():
        for read in record.inputs:
            for maker in makers.get((read.name, read.digest), ()) if read.digest is not None else ():
                readers.setdefault(maker, {})[step] = None
    found: dict[str, str] = {}
    to_look_at = list(holds)
    while to_look_at:
        step = to_look_at.pop(0)
        executing = changed | found.keys()
        if step not in executing and (reason := _reason(step, holds, makers, executing, where)):
            found[step] = reason
            to_look_at += readers.get(step, ())
    return found


def _makers(history: Mapping[str, Sequence[Entry]]) -> Makers:
    makers: dict[tuple[str, Digest], dict[str, None]] = {}
    for step, records in history.items():
        for record in records:
            for write in record.writes:
                if write.digest is not None:
                    makers.setdefault((write.name, write.digest), {})[step] = None
    return makers


def _reason(
    step: str,
    holds: Mapping[str, Entry],
    makers: Makers,
    executing: Collection[str],
    where: Callable[[int], str],
) -> str:
    for read in holds[step].inputs:
        if read.digest is None:
            continue
        made_by = [maker for maker in makers.get((read.name, read.digest), ()) if maker != step and maker in holds]
        still = [maker for maker in made_by if _left(holds[maker], read)]
        if made_by and not still:
            return f"reads {read.name}, which {made_by[-1]} changed since{where(holds[made_by[-1]].run)}"
        if still and all(maker in executing for maker in still):
            return f"reads {read.name}, made by {still[-1]}, which differs"
    return ""


def _left(record: Entry, read: Input) -> bool:
    return any(write.name == read.name and same(write.digest, read.digest) for write in record.writes)
