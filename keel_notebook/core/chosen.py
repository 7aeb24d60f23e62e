"""What a step's line asks for, beside what its cell did (DESIGN 3.1): what ``--outputs`` leaves out, slips of the pen.

Pure. A name that is left out counts like one that cannot be stored: no older value stands in for it, and where
something reads it the step executes again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from keel_notebook.core.model import Entry
from keel_notebook.core.options import StepOptions

LEFT_OUT = "left out by --outputs"
"""How the reason of such a name begins in ``Entry.not_stored``."""


def chosen(
    outputs: Sequence[str], written: Sequence[str], *, free: Callable[[str], bool]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of the names that a cell wrote: those to record, and those that ``--outputs`` leaves out.

    What costs nothing (``free``: imports) is recorded all the same, and so is what a cell set inside a class or
    module (dotted names), because nothing could take that back on replay.
    """
    if not outputs:
        return tuple(written), ()
    kept = tuple(name for name in written if name in outputs or "." in name or free(name))
    return kept, tuple(name for name in written if name not in kept)


def asked_for_now(records: Iterable[Entry], outputs: Collection[str]) -> frozenset[str]:
    """Names that a record leaves out and the step's line of now does not."""
    left_out = {item.name for entry in records for item in entry.not_stored if item.reason.startswith(LEFT_OUT)}
    return frozenset(left_out if not outputs else left_out & {*outputs})


class Afterwards(Struct, frozen=True):
    """What can be told when a step has ended."""

    names: Collection[str]
    """Names that are there now."""
    wrote: Collection[str]
    """Names that the cell wrote, or might have written had it gone another way."""
    files: Callable[[str], Sequence[str] | None]
    """None where a path or pattern names something that is there; else what lies in its folder."""


def slips(options: StepOptions, now: Afterwards) -> Iterator[str]:
    """What a step's line names and nobody finds, a line each. Said after the step; nothing depends on it."""
    for name in options.outputs:
        if name in now.wrote:
            continue
        if name in now.names:
            yield f"--outputs {name}: the cell neither binds nor changes it, so that it is not recorded with this step"
        else:
            yield f"--outputs {name}: the cell makes no such name{_meant(name, now.wrote)}"
    for word, names in (("--inputs", options.inputs), ("--ignore", options.ignore)):
        for name in names:
            if name.partition(".")[0] not in {*now.names, *now.wrote}:
                yield f"{word} {name}: there is no such name{_meant(name, now.names)}"
    for word, paths, said in (("--uses", options.uses, ""), ("--makes", options.makes, "the step ended and ")):
        for path in paths:
            beside = now.files(path)
            if beside is not None and any(sign in path for sign in "*?["):
                yield f"{word} {path}: {said}it matches no file"
            elif beside is not None:
                yield f"{word} {path}: {said}there is no such file{_meant(path, beside)}"


def _meant(said: str, known: Collection[str]) -> str:
    import difflib  # noqa: PLC0415 - a kernel that loads keel never needs it

    near = difflib.get_close_matches(said, [word for word in known if not word.startswith("_")], n=1)
    return f"; did you mean {near[0]}?" if near else ""
