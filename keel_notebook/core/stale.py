"""Which steps would execute because something above them differs (DESIGN 2: stale).

Only what the records prove counts. A step is stale if it read a value that an older record of another step left,
while the record of that step which holds now left a different one; or if it read the value of a step that would
itself execute. A value that a plain cell made in between matches no record and proves nothing: whether that step
is stale is unknown, and unknown is not said to be stale (it is still never replayed without being compared).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from keel_notebook.core.decide import same
from keel_notebook.core.model import Digest, Entry


@dataclass(slots=True)
class _Makers:
    """Who last wrote each name, going through the notebook from the top; and everything each step ever left."""

    last: dict[str, str] = field(default_factory=dict)
    ever: dict[str, set[tuple[str, Digest]]] = field(default_factory=dict)


def stale_reasons(
    order: Sequence[str],
    holds: Mapping[str, Entry],
    history: Mapping[str, Sequence[Entry]],
    *,
    changed: Collection[str],
) -> dict[str, str]:
    """Why each stale step is stale, as a clause: ``"reads df, which load changed since"``.

    Args:
        order: step names from the top of the notebook to its end.
        holds: the record of each step that holds now.
        history: every record of each step.
        changed: steps that would execute for a reason of their own (edited, refused as diverged).
    """
    makers = _Makers()
    for step, records in history.items():
        makers.ever[step] = {(w.name, w.digest) for record in records for w in record.writes if w.digest is not None}
    found: dict[str, str] = {}
    for step in order:
        record = holds.get(step)
        if record is None:
            continue
        reason = _reason(record, makers, holds, would_execute={*changed, *found})
        if reason and step not in changed:
            found[step] = reason
        for write in record.writes:
            makers.last[write.name] = step
    return found


def _reason(record: Entry, makers: _Makers, holds: Mapping[str, Entry], *, would_execute: Collection[str]) -> str:
    for read in record.inputs:
        maker = makers.last.get(read.name)
        if maker is None or read.digest is None or (read.name, read.digest) not in makers.ever.get(maker, ()):
            continue
        if maker in would_execute:
            return f"reads {read.name}, made by {maker}, which differs"
        now = next((write.digest for write in holds[maker].writes if write.name == read.name), None)
        if not same(read.digest, now):
            return f"reads {read.name}, which {maker} changed since"
    return ""
