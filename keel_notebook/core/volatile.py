"""Volatile names of a plain cell: what a clock or entropy made, and nothing else (DESIGN 5, Volatile). Pure.

``t0 = time.time()``, ``run_id = uuid4().hex``, ``rng = default_rng()`` and what is worked out from them alone. In a run
that goes on with one that died they get the values back that they had then. Whatever reads a file, the network, a
child process or a connection is none of them: a repaired input file is never overwritten by an old value. So only
code that is known to do nothing of the kind counts; what is not known is not volatile.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping

from keel_notebook.core.cellcode import ParsedCell
from keel_notebook.core.clocks import UNSEEDED, of_name
from keel_notebook.core.fingerprint import code_digest
from keel_notebook.core.harmless import words
from keel_notebook.core.ids import text_digest
from keel_notebook.core.model import Digest, Entry, Kind
from keel_notebook.core.provenance import Statement, statements
from keel_notebook.core.seeding import dotted

STORIES = "volatile"
"""The ``ambient`` key of a marker that keeps such names: how each of them was made."""


def volatile_names(entries: Iterable[Entry]) -> frozenset[str]:
    """The names that plain cells made from clocks and entropy, in any run."""
    stories = (entry.ambient.get(STORIES) for entry in entries if entry.kind is Kind.MARKER)
    return frozenset(name for story in stories if story for name in story)


Story = str
"""How a volatile name was made, as a digest: equal code, equal inputs, equal sources."""

_MODULES = words(
    "datetime uuid math cmath decimal fractions re string hashlib base64 itertools collections secrets random"
)
"""Modules of which every function is done with what it is given."""
_CALLS = words(
    """
    str int float bool complex repr format len dict list tuple set frozenset sorted min max sum abs hex oct bin round
    zip range enumerate reversed divmod pow isinstance any all map filter ord chr bytes bytearray
    Timestamp Timedelta DateOffset Period to_datetime date_range datetime64 timedelta64 PurePath Path SimpleNamespace
    perf_counter monotonic perf_counter_ns monotonic_ns process_time
    """
)
_REACH_OUT = tuple(words("read open load write save dump exists is_ stat lstat glob rglob iter"))
_REACH_OUT_TOO = words(
    """
    resolve absolute samefile home cwd owner connect execute query sql get post put send recv request fetch fetchone
    fetchall run call submit result mkdir touch unlink rename replace_file from_file tofile fromfile to_csv to_parquet
    """
)
"""Methods that may reach a file or another program, whatever they belong to."""


def told(  # noqa: PLR0913 - what it asks, by name
    parsed: ParsedCell,
    known: Mapping[str, Story],
    *,
    full: Callable[[str], str],
    code_behind: Callable[[str], ast.AST | None],
    draws: Callable[[ast.AST], bool],
    digests: Callable[[Statement], Mapping[str, Digest | None]],
) -> dict[str, Story]:
    """The volatile names that a cell which ran made, each with its story.

    Args:
        parsed: the cell.
        known: volatile names of earlier cells that still hold what those left.
        full: the full name behind a dotted one.
        code_behind: the code of a function or class of the notebook behind a dotted name; None for any other.
        draws: whether code reads a clock or entropy, in itself or in what it calls.
        digests: what the names that a statement reads, and those that its functions read, hold now.
    """
    found = dict(known)
    made: set[str] = set()
    for node, statement in zip(parsed.tree.body, statements(parsed), strict=True):
        if statement.anything:
            found, made = {}, set()
            continue
        touched = statement.binds | statement.changes
        story = None
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            reads = (statement.names.reads | statement.names.late_reads) & found.keys()
            if (draws(node) or reads) and _is_clean(node.value, full, code_behind):
                story = _story(node, statement, found, digests)
        made -= touched
        found = {name: told for name, told in found.items() if name not in touched}
        if story is not None and statement.names.stores == touched:
            found |= dict.fromkeys(touched, story)
            made |= touched
    return {name: found[name] for name in sorted(made)}


def _story(
    node: ast.stmt,
    statement: Statement,
    found: Mapping[str, Story],
    digests: Callable[[Statement], Mapping[str, Digest | None]],
) -> Story | None:
    parts = [code_digest(ParsedCell("", ast.Module([node], []))) or "?"]
    for name, digest in sorted(digests(statement).items()):
        if (what := found.get(name, digest)) is None:
            return None
        parts += (name, what)
    return text_digest("volatile", *parts)


def _is_clean(
    code: ast.AST, full: Callable[[str], str], code_behind: Callable[[str], ast.AST | None], depth: int = 5
) -> bool:
    """Whether code calls nothing but what is known to stay inside of the process."""
    if any(isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.Global | ast.With) for node in ast.walk(code)):
        return False
    if any(isinstance(node, ast.Attribute) and node.attr in {"environ", "argv", "stdin"} for node in ast.walk(code)):
        return False
    return all(_is_harmless(call, full, code_behind, depth) for call in _calls(code))


def _calls(code: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(code) if isinstance(node, ast.Call))


def _is_harmless(
    call: ast.Call, full: Callable[[str], str], code_behind: Callable[[str], ast.AST | None], depth: int
) -> bool:
    name = dotted(call.func)
    inner = code_behind(name) if name else None
    if inner is not None:
        return depth > 0 and _is_clean(inner, full, code_behind, depth - 1)
    whole = full(name) if name else ""
    last_two = ".".join(whole.split(".")[-2:])
    last = whole.rpartition(".")[2]
    reads = of_name(whole)
    if reads.clock or reads.entropy or last_two in UNSEEDED or last in _CALLS:
        return True
    if whole.partition(".")[0] in _MODULES:
        return True
    if isinstance(call.func, ast.Attribute) and not whole:  # a method of a value: what that is, its story tells
        method = call.func.attr
        return not method.startswith(_REACH_OUT) and method not in _REACH_OUT_TOO
    return False
