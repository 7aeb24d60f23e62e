"""What a step gave when it was executed again, beside its record (``keel verify``). Pure.

A verified step has one of six verdicts. *Same* is said only where every name could be compared; what has no digest is
listed, and counts neither way.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from keel_notebook.core.chosen import LEFT_OUT
from keel_notebook.core.decide import Difference
from keel_notebook.core.fileholds import same
from keel_notebook.core.model import Entry, Status, Write
from keel_notebook.core.ports import Message


class Verdict(StrEnum):
    """What came of executing a step again."""

    SAME = "same"
    """It gave what is recorded, as far as that can be compared."""
    DIFFERS = "differs"
    """Code, inputs and files are those of the record, and it gave something else."""
    CHANGED = "changed"
    """Its code, inputs or files are not those of the record: it may well give something else."""
    FAILED = "failed"
    """It ended in an error."""
    NEW = "new"
    """There is no record to compare it with."""
    PUT_BACK = "not compared"
    """It must not happen twice: its record was put back, and it was not executed."""


HOLDS = frozenset({Verdict.SAME, Verdict.NEW, Verdict.PUT_BACK})
"""Verdicts under which no record is contradicted."""


class Verified(Struct, frozen=True):
    """One step after it was executed again."""

    step: str
    verdict: Verdict
    record: str = ""
    """Id of the entry that it was compared with."""
    changed: tuple[str, ...] = ()
    """What differs before it ran: code, inputs, files, in words."""
    names: tuple[str, ...] = ()
    """What it left that differs, in words."""
    outputs: str = ""
    """How what it showed differs; empty where it does not."""
    unknown: tuple[str, ...] = ()
    """Names that cannot be compared."""
    causes: tuple[str, ...] = ()
    """What may make it give something else each time, as far as keel saw."""
    error: str = ""
    """Class of the exception that it ended in."""

    @property
    def well(self) -> bool:
        """Whether the record holds."""
        return self.verdict in HOLDS

    def to_dict(self) -> dict[str, Any]:
        """The step as plain values."""
        return {
            "step": self.step,
            "verdict": str(self.verdict),
            "record": self.record or None,
            "changed": list(self.changed),
            "names": list(self.names),
            "outputs": self.outputs,
            "unknown": list(self.unknown),
            "causes": list(self.causes),
            "error": self.error,
        }

    def __str__(self) -> str:
        """One line for people."""
        parts = [*self.changed, *self.names, *([self.outputs] if self.outputs else [])]
        said = f"{self.verdict} {self.error}".rstrip() if self.error else str(self.verdict)
        if parts:
            said += ": " + "; ".join(parts)
        if self.causes and self.verdict is Verdict.DIFFERS:
            said += f" ({', '.join(self.causes)})"
        if self.unknown:
            said += f"; cannot be compared: {', '.join(self.unknown)}"
        return f"{self.step}: {said}"


_CAUSES = {
    "network": "it used the network",
    "children": "it started other programs",
    "unsure": "it did more than keel could see",
}
_GENERATORS = {
    "random": "it draws from the module random",
    "numpy_random": "it draws from numpy's generator",
    "torch_random": "it draws from torch's generator",
}


def verified(
    now: Entry,
    record: Entry | None,
    differences: Sequence[Difference],
    *,
    shown: Sequence[Message],
    recorded: Sequence[Message] | None,
) -> Verified:
    """Compare what a step left now with its record.

    Args:
        now: the entry of the execution that has just ended.
        record: the record that it is compared with; None where there is none.
        differences: how the step differed from ``record`` before it ran.
        shown: what it showed now.
        recorded: what the record says that it showed; None where that cannot be read.
    """
    if now.status is not Status.OK:
        error = now.error.type if now.error is not None else str(now.status)
        return Verified(now.step, Verdict.FAILED, record.entry if record else "", error=error)
    if record is None:
        return Verified(now.step, Verdict.NEW)
    changed = tuple(map(str, differences))
    names, unknown = _names(now, record)
    outputs = "" if recorded is None else _outputs(shown, recorded)
    verdict = Verdict.CHANGED if changed else Verdict.DIFFERS if names or outputs else Verdict.SAME
    return Verified(now.step, verdict, record.entry, changed, names, outputs, unknown, _causes(now, record))


def _names(now: Entry, record: Entry) -> tuple[tuple[str, ...], tuple[str, ...]]:
    ours, theirs = ({write.name: write for write in entry.writes} for entry in (now, record))
    differ, unknown = [], []
    for name in sorted(ours.keys() | theirs.keys()):
        mine, recorded = ours.get(name), theirs.get(name)
        if mine is None or recorded is None:
            differ.append(f"{name} is {'no longer left' if mine is None else 'left now'}")
        elif mine.digest is None or recorded.digest is None:
            unknown.append(name)
        elif not same(mine.digest, recorded.digest):
            differ.append(_in_words(name, recorded, mine))
    differ += [f"{name} is no longer deleted" for name in sorted({*record.deleted} - {*now.deleted})]
    differ += [f"{name} is deleted now" for name in sorted({*now.deleted} - {*record.deleted})]
    lost = {item.name for entry in (now, record) for item in entry.not_stored if not item.reason.startswith(LEFT_OUT)}
    return tuple(differ), tuple(sorted({*unknown, *lost} - {"_"}))


def _in_words(name: str, recorded: Write, mine: Write) -> str:
    was, now = recorded.preview or recorded.type, mine.preview or mine.type
    return f"{name} {was} -> {now}" if was != now else f"{name} ({now}) holds something else"


_LINE = 60


def _outputs(shown: Sequence[Message], recorded: Sequence[Message]) -> str:
    mine, theirs = _comparable(shown), _comparable(recorded)
    if mine == theirs:
        return ""
    if len(mine) != len(theirs):
        return f"{len(theirs)} outputs -> {len(mine)}"
    at = next(at for at, pair in enumerate(zip(mine, theirs, strict=True)) if pair[0] != pair[1])
    was, now = (str(found[at][0]) for found in (theirs, mine))
    return f"output {at + 1} ({now if was == now else f'{was} -> {now}'}) shows something else"


def _comparable(messages: Sequence[Message]) -> list[tuple[str, Any, Any]]:
    """Messages without what differs in every kernel: ids of displays and of widgets, and the count of cells."""
    found = []
    for message in messages:
        if message.kind.startswith("comm"):
            continue
        content = {name: part for name, part in message.content.items() if name not in {"transient", "execution_count"}}
        content.pop("metadata", None)
        found.append((message.kind, content, message.buffers))
    return found


def _causes(now: Entry, record: Entry) -> tuple[str, ...]:
    saw = {word for entry in (now, record) for word in entry.ambient.get("saw", ())}
    drew = {name for entry in (now, record) for name in _GENERATORS if name in entry.ambient}
    return (*(_CAUSES[word] for word in sorted(saw) if word in _CAUSES), *(_GENERATORS[name] for name in sorted(drew)))
