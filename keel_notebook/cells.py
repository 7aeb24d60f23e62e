"""What a cell says: read before it runs, told after it ran. No state, nothing is written."""

from __future__ import annotations

import functools
import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from keel_notebook.core import decide as d
from keel_notebook.core.cellcode import parse_cell
from keel_notebook.core.fingerprint import code_digest
from keel_notebook.core.model import Digest, Entry, Status
from keel_notebook.core.options import StepOptions
from keel_notebook.core.reads import CellNames, analyse
from keel_notebook.engine.attempt import Outcome


@dataclass(frozen=True, slots=True)
class Analysis:
    """A cell, read without running it."""

    code: Digest | None
    reads: frozenset[str]
    names: CellNames


@functools.lru_cache(maxsize=512)
def _analysis(transformed: str, transform: Any) -> Analysis:
    parsed = parse_cell(transformed, transform=transform)
    names = analyse(parsed)
    return Analysis(code_digest(parsed), names.reads, names)


def analysis_of(transformed: str, transform: Any) -> Analysis:
    """What a cell's text says about it, remembered by the text."""
    return _analysis(transformed, transform)


def is_closed_file(value: object) -> bool:
    """Whether a value is a file that was closed."""
    return isinstance(value, io.IOBase) and value.closed


def only_about_keel(source: str) -> bool:
    """Whether a cell holds nothing but lines that speak to keel: it is no part of the notebook's story."""
    lines = [line.strip() for line in source.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return bool(lines) and all(line.startswith(("%keel", "%load_ext keel_notebook")) for line in lines)


def shortcomings(entry: Entry, *, ended: Collection[str]) -> Iterator[str]:
    """What a record lacks, in a line each: values, state without a name, the late doings of threads (C19, C50).

    ``ended`` are names of files that are closed: what ``with open(…) as f`` leaves is nobody's loss.
    """
    lost = [item for item in entry.not_stored if item.name not in ended]
    if lost:
        listed = "; ".join(f"{item.name} ({item.type}): {item.reason}" for item in lost)
        yield f"not stored: {listed}"
    if state := entry.ambient.get("unrestorable"):
        yield f"a replay cannot put back: {'; '.join(state)}"
    if left := entry.ambient.get("threads_left"):
        yield f"threads of it still run ({left}): what they do from now on is not recorded"


def outcome(status: Status, result: Any) -> Outcome:
    """How a body ended, from IPython's result (None where the cell was cancelled)."""
    if result is None:
        return Outcome(status)
    error = result.error_in_exec or result.error_before_exec
    return Outcome(status, error, (result.result,) if result.result is not None else None)


def policy(mode: str, options: StepOptions) -> d.Policy:
    """How a step's differences are answered."""
    response = d.Response(options.on_divergence) if options.on_divergence else d.Response.WARN
    return d.Policy(d.Mode(mode), response, options.max_attempts)
