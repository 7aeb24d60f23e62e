"""Steps that have only a cell's id, in a kernel: how they are shown, and which one a person means."""

from __future__ import annotations

from keel_notebook.core.labels import labels, step_at
from keel_notebook.session import Session


def labels_here(session: Session) -> dict[str, str]:
    """What people call the steps of this notebook that have only a cell's id. Nothing is opened for it."""
    leader = session._leader
    if leader is None:
        return {}
    attached = leader.attached
    return labels(attached.journal.records(attached.flow.id).entries, attached.file.cells())


_TAKE_A_STEP = frozenset({"why", "diff", "rerun", "forget", "revive", "accept"})


def named_steps(session: Session, command: str, words: list[str]) -> list[str]:
    """The words with `cell 5` as the step that people call so."""
    if command not in _TAKE_A_STEP or "cell" not in words[:-1]:
        return words
    at = words.index("cell")
    step = step_at(" ".join(words[at : at + 2]), labels_here(session))
    return words if step is None else [*words[:at], step, *words[at + 2 :]]
