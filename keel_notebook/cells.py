"""What a cell says: read before it runs, told after it ran. No state, nothing is written."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.core import decide as d
from keel_notebook.core.cellcode import ParsedCell, parse_cell
from keel_notebook.core.chosen import LEFT_OUT
from keel_notebook.core.fingerprint import code_digest
from keel_notebook.core.model import Digest, Entry, Input, Status
from keel_notebook.core.options import StepOptions
from keel_notebook.core.reads import CellNames, analyse
from keel_notebook.engine.attempt import Outcome


class Analysis(Struct, frozen=True):
    """A cell, read without running it."""

    code: Digest | None
    reads: frozenset[str]
    names: CellNames
    parsed: ParsedCell


@functools.lru_cache(maxsize=512)
def _analysis(transformed: str, transform: Any) -> Analysis:
    parsed = parse_cell(transformed, transform=transform)
    names = analyse(parsed)
    return Analysis(code_digest(parsed), names.reads, names, parsed)


def analysis_of(transformed: str, transform: Any) -> Analysis:
    """What a cell's text says about it, remembered by the text."""
    return _analysis(transformed, transform)


def is_closed_file(value: object) -> bool:
    """Whether a value is a file that was closed."""
    return isinstance(value, io.IOBase) and value.closed


def shortcomings(entry: Entry, namespace: Mapping[str, Any]) -> Iterator[str]:
    """What a record lacks, in a line each: values, state without a name, the late doings of threads (C19, C50).

    Left out is what is nobody's loss: a file that is closed in the ``namespace`` (``with open(…) as f`` leaves one),
    a value that was only shown: its output is recorded, and what the step's line itself leaves out.
    """
    lost = [item for item in entry.not_stored if item.name != d.RESULT and not item.reason.startswith(LEFT_OUT)]
    lost = [item for item in lost if not is_closed_file(namespace.get(item.name))]
    if lost:
        listed = "; ".join(f"{item.name} ({item.type}): {item.reason}" for item in lost)
        yield f"not stored: {listed}"
    if state := entry.ambient.get("unrestorable"):
        yield f"a replay cannot put back: {'; '.join(state)}"
    if left := entry.ambient.get("threads_left"):
        yield f"threads of it still run ({left}): what they do from now on is not recorded"
    if unfinished := [seen.path for seen in entry.files if seen.role == "unfinished"]:
        yield f"still being written: {', '.join(unfinished)}; it executes again in the next run"


def show_result(shell: Any, value: Any) -> None:
    """Set ``_`` and ``Out`` to what a replayed cell ended in."""
    hook = shell.displayhook
    hook.update_user_ns(value)
    if getattr(hook, "exec_result", None) is not None:
        hook.exec_result.result = value


def outcome(status: Status, result: Any, failed_calls: int = 0) -> Outcome:
    """How a body ended, from IPython's result (None where the cell was cancelled) and what its calls left owing."""
    if result is None:
        return Outcome(status)
    error = result.error_in_exec or result.error_before_exec
    return Outcome(status, error, (result.result,) if result.result is not None else None, failed_calls)


def policy(mode: str, options: StepOptions) -> d.Policy:
    """How a step's differences are answered."""
    response = d.Response(options.on_divergence) if options.on_divergence else d.Response.WARN
    return d.Policy(d.Mode(mode), response, options.max_attempts)


_UNCHANGED_BY_USE = (FunctionType, BuiltinFunctionType, ModuleType, type)


def installed_modules(namespace: Mapping[str, Any], is_local: Callable[[str], bool]) -> dict[str, str]:
    """The names that hold a module of an installed package, with the module's own name."""
    found = {name: value.__name__ for name, value in list(namespace.items()) if type(value) is ModuleType}
    return {name: module for name, module in found.items() if not is_local(module)}


def what_is_left(
    names: CellNames, inputs: Mapping[str, Input], namespace: Mapping[str, Any]
) -> tuple[dict[str, Input], list[str]]:
    """The inputs of a cell that ran before anybody looked, and the names that it left.

    What it read counts as it is now. What it bound, or a call in it may have changed in place, has an unknown past.
    """
    bound = names.stores | names.maybe_stores
    changed = {name for name in names.mutation_suspects if not isinstance(namespace.get(name), _UNCHANGED_BY_USE)}
    lost = bound | changed
    known = {name: replace(item, digest=None) if name in lost else item for name, item in inputs.items()}
    return known, sorted(name for name in bound if name in namespace)
