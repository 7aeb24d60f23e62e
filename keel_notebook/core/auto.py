"""Auto mode: every cell is a step, no annotation (DESIGN 3.1). What a cell is then, and when it counts as cheap.

Pure. A cell that was quick before, with inputs that look as they did, is *cheap*: it runs again in every Run All, like
a plain cell, and its inputs are not digested. Every other one goes the way of a step. What a cheap cell leaves is kept
where that costs little, so that ``restore`` finds the session; it is never replayed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum, auto

from keel_notebook.core.harmless import RUN_ONCE_MAGICS, words
from keel_notebook.core.model import Digest, Entry, Kind, Status

MIN_SECONDS = 1.0
"""Cells slower than this are replayed, unless `--min-seconds` says otherwise."""

AUTO = "auto"
"""The ``ambient`` key under which an automatic cell's plain entry keeps how its inputs looked."""


class Role(Enum):
    """What auto mode makes of a cell."""

    NOTHING = auto()
    """Empty, or it speaks to keel only: no part of the notebook's story."""
    PLAIN = auto()
    """It must really run in every pass: it talks to a shell, to a person, or to IPython itself."""
    STEP = auto()


_MEASURING = RUN_ONCE_MAGICS | {"timeit"}
"""Cell magics whose body is the person's own Python."""
_OF_THE_CELL = words("time timeit prun mprun memit run matplotlib cd env set_env pwd precision who whos who_ls")
"""Line magics that leave nothing behind but what a step records: the others change IPython itself."""
_MAGIC_CALL = re.compile(r"get_ipython\(\)\.run_(?:line|cell)_magic\('(\w[^']*)'")
_SHELL = re.compile(r"get_ipython\(\)\.(?:system|getoutput)\(")
_TO_A_SHELL = re.compile(r"^[ \t]*(?:[\w., \t]+=[ \t]*)?!", re.MULTILINE)
_LINE_MAGIC = re.compile(r"^[ \t]*(?:[\w., \t]+=[ \t]*)?%(\w+)", re.MULTILINE)
_ASKS = re.compile(r"(?<![\w.])(?:input|breakpoint)\s*\(|\bgetpass\s*\(|\bset_trace\s*\(")


def only_about_keel(source: str) -> bool:
    """Whether a cell holds nothing but lines that speak to keel: it is no part of the notebook's story."""
    lines = _lines(source)
    return bool(lines) and all(line.startswith(("%keel", "%load_ext keel_notebook")) for line in lines)


def role_of(source: str, transformed: str) -> Role:
    """What auto mode makes of a cell, from its text and from that text as IPython compiles it."""
    lines = _lines(source)
    if not lines or only_about_keel(source):
        return Role.NOTHING
    if _SHELL.search(transformed) or _ASKS.search(transformed):
        return Role.PLAIN
    if lines[0].startswith("%%"):
        magic, *body = lines
        if magic[2:].split()[:1] == [] or magic[2:].split()[0] not in _MEASURING:
            return Role.PLAIN
        if any(line.startswith(("!", "%%")) for line in body):
            return Role.PLAIN
        return Role.STEP if all(_magic_of(line) in _OF_THE_CELL for line in body if line[0] == "%") else Role.PLAIN
    called = set(_MAGIC_CALL.findall(transformed))
    return Role.STEP if called <= _OF_THE_CELL else Role.PLAIN


def role_as_written(source: str) -> Role:
    """What auto mode would make of a cell, from its text alone: where there is no IPython to compile it."""
    called = [f"get_ipython().run_line_magic('{name}'" for name in _LINE_MAGIC.findall(source)]
    if _TO_A_SHELL.search(source):
        called.append("get_ipython().system(")
    return role_of(source, "\n".join([source, *called]))


def _lines(source: str) -> list[str]:
    return [line.strip() for line in source.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def _magic_of(line: str) -> str:
    return line[1:].split(maxsplit=1)[0] if line[1:].split() else ""


def is_cheap(entries: Iterable[Entry], code: Digest | None, looks: Mapping[str, str], *, min_s: float) -> bool:
    """Whether a cell of this code surely needs no record: it never took long, and its inputs look as they did.

    Args:
        entries: those of the flow, in the order written.
        code: the cell's code digest; unknown code is never cheap.
        looks: how its inputs look now, by name: small ones by content, large ones by type and size.
        min_s: seconds from which on a cell is worth a replay.
    """
    if code is None:
        return False
    alike = False
    for entry in entries:
        if entry.code != code or entry.took_s is None or entry.kind not in (Kind.PLAIN, Kind.STEP):
            continue
        if entry.took_s >= min_s:
            return False
        alike = alike or (entry.status is Status.OK and entry.ambient.get(AUTO) == dict(looks))
    return alike


def is_automatic(entry: Entry) -> bool:
    """Whether an entry says what a cell of auto mode left that is no step."""
    return entry.kind is Kind.PLAIN and AUTO in entry.ambient and entry.status is not Status.RUNNING
